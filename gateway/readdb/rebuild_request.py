"""How somebody asks for a rebuild: a file in the data directory that the gateway leaves and the mirror takes.

The mirror looks once a second. A file needs no line between the two, waits for a mirror that is just being restarted,
and however many ask, there is one of it.
"""

from pathlib import Path

REQUEST = "read.db.rebuild"


def leave(data_dir: Path) -> None:
    (data_dir / REQUEST).touch()


def take(data_dir: Path) -> bool:
    """Whether there was one."""
    try:
        (data_dir / REQUEST).unlink()
    except FileNotFoundError:
        return False
    return True
