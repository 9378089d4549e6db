"""The file `read.db`: its name, and the marker that a reader leaves beside it when pages are damaged.

Readers read pages that the writer never does. A reader that finds damage writes the file's inode into
`read.db.suspect`. The mirror checks for this marker once a second and rebuilds. The inode identifies one generation of
the file, so a late marker does not condemn the next one.
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
