"""The file `read.db`: its name, and the note that a reader leaves beside it when its pages are damaged.

Readers meet pages that the writer never reads. A reader that finds damage writes the file's inode into
`read.db.suspect`; the mirror looks for the note once a second and rebuilds. The inode names one generation of the file,
so that a late note does not condemn the next one.
"""

from pathlib import Path

READ_DB = "read.db"


def damage_note(path: Path) -> Path:
    return path.with_name(f"{path.name}.suspect")


def mark_damaged(path: Path, inode: int) -> None:
    damage_note(path).write_text(str(inode))


def is_marked_damaged(path: Path) -> bool:
    try:
        return int(damage_note(path).read_text()) == path.stat().st_ino
    except (OSError, ValueError):
        return False


def clear_damage_mark(path: Path) -> None:
    damage_note(path).unlink(missing_ok=True)
