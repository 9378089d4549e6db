"""Whether a `read.db` may be believed, and how one takes another's place.

    trusted   written within this boot of the machine, or closed cleanly (both noted inside), with our schema
    else      removed and built anew from the shards

A process crash is harmless: the kernel still has every page. A power cut under `synchronous=OFF` is not, and
`integrity_check` may call the wreck sound; hence the boot's id. An untrusted file is removed *before* the rebuild:
an answer "not available, try again in a second" is better than a wrong one.

A rebuild fills `read.db.new-{generation}`, which no reader knows. When it is complete it is checkpointed and closed,
so that the one file holds everything; then it is renamed. A write-ahead log is bound to its database by name only: if
the old log met the new file, SQLite would replay it there. So the three old files go first, the database before its
log, and nothing can open a database beside a log that is not its own. (A reader that had opened the old file holds
on to the old inodes until it looks at the path again; `answers/database.py` does so at every query.)

No file of a database that this process has open is ever opened directly: closing such a descriptor would drop
SQLite's own locks.
"""

import sqlite3
import time
from pathlib import Path

import msgspec

from gateway.mirror.database import MirrorDb
from gateway.mirror.schema import SCHEMA_VERSION

READ_DB = "read.db"
CHECKED_BYTES_MAX = 512 * 1024 * 1024  # about a second of checking; beyond it readers find damage and say so
CLOSE_PATIENCE_MS = 300  # twice this and the rest must fit into the second that the supervisor expects
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

OPEN_TRIES, OPEN_PAUSE_S = 10, 0.02


class Untrusted(Exception):
    """The file cannot be believed; the reason is a few words for the log."""


def read_boot_id() -> str:
    """Empty where the system has none: then only a clean close is trusted."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


def open_trusted(path: Path, boot_id: str, shards: int) -> MirrorDb:
    """The database, marked as open on disk before anything else is written to it."""
    if not path.exists():
        raise Untrusted("there is no file")
    database = None
    try:
        database = MirrorDb(path)
        meta = database.meta()
        if meta.schema_version != SCHEMA_VERSION:
            raise Untrusted(f"its schema is {meta.schema_version}, ours is {SCHEMA_VERSION}")
        if meta.shards != shards:
            raise Untrusted(f"it was made for {meta.shards} shards, the node has {shards}")
        if not meta.is_clean and (not boot_id or meta.boot_id != boot_id):
            raise Untrusted("the machine stopped while it was open")
        if path.stat().st_size <= CHECKED_BYTES_MAX and not database.is_sound():
            raise Untrusted("its pages are damaged")
        # The mark must be in the file itself and on disk: left in the log it could be overwritten there later,
        # unsynced, and a power cut would bring the old "closed cleanly" back.
        database.sync(True)
        database.put_meta(msgspec.structs.replace(meta, boot_id=boot_id, is_clean=False))
        if not database.checkpoint():
            raise Untrusted("readers would not let go of its log")
        database.sync(False)
        database.forget_the_moment()
    except sqlite3.Error as error:
        if database is not None:
            database.close()
        raise Untrusted(f"it cannot be read: {error}") from None
    except Untrusted:
        if database is not None:
            database.close()
        raise
    return database


def begin_rebuild(path: Path, boot_id: str, shards: int, now: int) -> MirrorDb:
    """An empty database beside the path, where nothing is left of the old one or of attempts before."""
    remove(path)
    for leftover in path.parent.glob(f"{path.name}.new-*"):
        leftover.unlink(missing_ok=True)
    suspicion(path).unlink(missing_ok=True)
    generation = f"{now:x}"
    database = MirrorDb(path.with_name(f"{path.name}.new-{generation}"))
    database.create(generation, boot_id, shards, now)
    return database


def publish(building: MirrorDb, path: Path) -> MirrorDb:
    """The finished build takes the name that readers open. The old object is closed, the new one returned."""
    if not building.checkpoint():
        raise sqlite3.OperationalError("somebody reads a database that is still being built")
    building.close()  # the last connection: SQLite removes the log and its index
    remove(path)
    building.path.rename(path)
    return _open_published(path)


def _open_published(path: Path) -> MirrorDb:
    """A reader that opens the file in this very moment makes its log and index too, and SQLite may tell whoever comes
    second of an I/O error."""
    for _ in range(OPEN_TRIES - 1):
        try:
            return MirrorDb(path)
        except sqlite3.OperationalError:
            time.sleep(OPEN_PAUSE_S)
    return MirrorDb(path)


def close_clean(database: MirrorDb) -> None:
    """Everything on disk, then the mark that says so, then the mark on disk.

    A reader that holds the log costs the mark, not the time: the file is then good for this boot only.
    """
    meta = database.meta()
    database.sync(True)
    database.forget_the_moment()  # also gives the checkpoint something to sync: pages moved earlier may not be on disk
    if database.checkpoint(CLOSE_PATIENCE_MS):
        database.put_meta(msgspec.structs.replace(meta, is_clean=True))
        database.checkpoint(CLOSE_PATIENCE_MS)
    database.close()


def remove(path: Path) -> None:
    for name in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        name.unlink(missing_ok=True)


def inodes(path: Path) -> tuple[int, int]:
    """Of the file and its log; 0 for what is not there. They change when somebody deletes or replaces a file."""
    return _inode(path), _inode(Path(f"{path}-wal"))


def suspicion(path: Path) -> Path:
    """Where readers note the inode of a file that they found damaged: they meet pages that the writer never does."""
    return path.with_name(f"{path.name}.suspect")


def is_suspected(path: Path) -> bool:
    try:
        return int(suspicion(path).read_text()) == path.stat().st_ino
    except (OSError, ValueError):
        return False


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0
