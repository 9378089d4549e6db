"""Whether a `read.db` may be believed, and how one takes another's place.

    trusted   written within this boot of the machine, or closed cleanly (both noted inside), with our schema
    else      removed and built anew from the shards

A process crash is harmless: the kernel still has every page. A power cut under `synchronous=OFF` is not, and
`integrity_check` may call the wreck sound; hence the boot's id. An untrusted file is removed *before* the rebuild:
an answer "not available, try again in a second" is better than a wrong one.

`read.db` is a symbolic link to `read.db.{generation}`. A write-ahead log is bound to its database by name only: if the
log of one met another file, SQLite would replay it there. SQLite resolves the link before it names the log, so each
generation has a name, a log and an index of its own, and a new link, renamed over the old one, shows readers the other
database from one instant to the next. The former one stays for a moment, for a reader that has resolved the link and
not yet opened the file; whoever has opened it keeps its inodes, and looks at the path again at the next question
(`answers/database.py`).

No file of a database that this process has open is ever opened directly: closing such a descriptor would drop
SQLite's own locks.
"""

import re
import sqlite3
import time
from pathlib import Path

import msgspec

from corvo.model.timestamps import to_rfc3339
from gateway.mirror.database import MirrorDb
from gateway.mirror.store import Remedy, UntrustedDatabase
from gateway.readdb.ddl import schema_version
from gateway.readdb.file import clear_damage_mark, is_marked_damaged

CHECKED_BYTES_MAX = 512 * 1024 * 1024  # about a second of checking; beyond it readers find damage and say so
CLOSE_PATIENCE_MS = 300  # twice this and the rest must fit into the second that the supervisor expects
FORMER_KEPT_S = 2.0  # far longer than a reader takes from the link to the file
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_OUTSIDE_FAULTS = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_BUSY})
_OF_A_GENERATION = re.compile(r"\.(new-)?[0-9a-f]+(-wal|-shm)?|-wal|-shm")  # behind the name; `new-` is of old versions


def read_boot_id() -> str:
    """Empty where the system has none: then only a clean close is trusted."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


class SqliteStore:
    """The store of an SQLite read database."""

    faults: tuple[type[Exception], ...] = (sqlite3.Error,)

    def __init__(self, path: Path, boot_id: str, shards: int) -> None:
        self.path = path
        self.name = path.name
        self._boot_id = boot_id
        self._shards = shards
        self._inodes = (0, 0)  # of what is published
        self._former: list[tuple[MirrorDb, float]] = []  # databases that were published, and when each may go

    def open_trusted(self) -> MirrorDb:
        """The database, marked as open on disk before anything else is written to it."""
        path = self.path
        if not path.exists():
            raise UntrustedDatabase("there is no file")
        self._remove_leftovers()
        database = None
        try:
            database = MirrorDb(path.resolve())
            meta = database.meta()
            if meta.schema_version != schema_version():
                raise UntrustedDatabase(f"its schema is {meta.schema_version}, ours is {schema_version()}")
            if meta.shards != self._shards:
                raise UntrustedDatabase(f"it was made for {meta.shards} shards, the node has {self._shards}")
            if not meta.is_clean and (not self._boot_id or meta.origin != self._boot_id):
                raise UntrustedDatabase("the machine stopped while it was open")
            if path.stat().st_size <= CHECKED_BYTES_MAX and not database.is_sound():
                raise UntrustedDatabase("its pages are damaged")
            # The mark must be in the file itself and on disk: left in the log it could be overwritten there later,
            # unsynced, and a power cut would bring the old "closed cleanly" back.
            database.sync(True)
            database.put_meta(msgspec.structs.replace(meta, origin=self._boot_id, is_clean=False))
            if not database.checkpoint():
                raise UntrustedDatabase("readers would not let go of its log")
            database.sync(False)
            database.forget_the_moment()
        except sqlite3.Error as error:
            if database is not None:
                database.close()
            raise UntrustedDatabase(f"it cannot be read: {error}") from None
        except UntrustedDatabase:
            if database is not None:
                database.close()
            raise
        self._inodes = inodes(path)
        return database

    def begin(self, now: int) -> MirrorDb:
        self._remove_leftovers()
        generation = f"{now:x}"
        database = MirrorDb(self.path.with_name(f"{self.name}.{generation}"))
        database.create(generation, self._boot_id, self._shards, now)
        return database

    def remove_published(self) -> None:
        remove(self.path)
        clear_damage_mark(self.path)

    def publish(self, building: MirrorDb, now: int) -> None:
        building.put_meta(msgspec.structs.replace(building.meta(), published_at=to_rfc3339(now)))
        link = self.path.with_name(f"{self.name}.link")
        link.unlink(missing_ok=True)
        link.symlink_to(building.path.name)
        link.rename(self.path)
        clear_damage_mark(self.path)
        self._inodes = inodes(self.path)

    def retire(self, former: MirrorDb) -> None:
        """Closed later as well: the last to close a database removes its log, under those who are just opening it."""
        self._former.append((former, time.monotonic() + FORMER_KEPT_S))

    def abandon(self, building: MirrorDb) -> None:
        _discard(building)

    def look(self, published: MirrorDb) -> None:
        found = inodes(self.path)
        if found != self._inodes or 0 in found:  # 0 on both sides: deleted before we had looked even once
            raise sqlite3.DatabaseError("the file was deleted or replaced")
        if is_marked_damaged(self.path):
            raise sqlite3.DatabaseError("a reader found it damaged")
        published.maybe_cut_log()
        while self._former and self._former[0][1] < time.monotonic():
            _discard(self._former.pop(0)[0])

    def close_clean(self, published: MirrorDb) -> None:
        """Everything on disk, then the mark that says so, then the mark on disk.

        A reader that holds the log costs the mark, not the time: the file is then good for this boot only.
        """
        self.release()
        meta = published.meta()
        published.sync(True)
        published.forget_the_moment()  # also gives the checkpoint something to sync: pages moved earlier may not be
        if published.checkpoint(CLOSE_PATIENCE_MS):
            published.put_meta(msgspec.structs.replace(meta, is_clean=True))
            published.checkpoint(CLOSE_PATIENCE_MS)
        published.close()

    def release(self) -> None:
        while self._former:
            _discard(self._former.pop()[0])

    def remedy(self, error: Exception) -> Remedy:
        """The disk is full, the memory used up: another file would fare no better."""
        return "end" if getattr(error, "sqlite_errorcode", 0) & 0xFF in _OUTSIDE_FAULTS else "rebuild"

    def _remove_leftovers(self) -> None:
        """Every generation but the published one, and those that somebody may be about to open."""
        kept = {former.path.name for former, _ in self._former}
        if self.path.exists():
            kept.add(self.path.resolve().name)
        for file in self.path.parent.glob(f"{self.name}*"):
            rest = file.name.removeprefix(self.name)
            is_kept = file.name.removesuffix("-wal").removesuffix("-shm") in kept
            if _OF_A_GENERATION.fullmatch(rest) and not is_kept:
                file.unlink(missing_ok=True)


def remove(path: Path) -> None:
    """The link first: nobody finds what is then taken away."""
    target = path.resolve()
    path.unlink(missing_ok=True)
    _remove_files(target)


def _discard(database: MirrorDb) -> None:
    _remove_files(database.path)
    database.close()


def _remove_files(path: Path) -> None:
    for name in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        name.unlink(missing_ok=True)


def inodes(path: Path) -> tuple[int, int]:
    """Of the file and its log; 0 for what is not there. They change when somebody deletes or replaces a file."""
    target = path.resolve()
    return _inode(target), _inode(Path(f"{target}-wal"))


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0
