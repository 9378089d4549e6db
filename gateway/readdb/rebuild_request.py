"""A rebuild request: a file in the data directory that the gateway creates and the mirror removes.

The mirror checks for it once a second. A file needs no connection between the two, survives a restart of the mirror,
and merges repeated requests.
"""

from pathlib import Path

REQUEST = "read.db.rebuild"


def leave(data_dir: Path) -> None:
    (data_dir / REQUEST).touch()


def take(data_dir: Path) -> bool:
    """Removes the request. True if there was one."""
    try:
        (data_dir / REQUEST).unlink()
    except FileNotFoundError:
        return False
    return True
