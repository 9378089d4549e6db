"""When a `read.db` can be trusted, and how a new one replaces it.

    trusted     the schema version matches, and it was written since this boot or closed cleanly (both recorded inside)
    untrusted   removed and rebuilt from the shards

A process crash is harmless: the kernel still has every page. A power cut under `synchronous=OFF` is not, and
`integrity_check` may miss the damage; hence the boot id. An untrusted file is removed *before* the rebuild: "not
available, retry in a second" is better than a wrong answer.

`read.db` is a symbolic link to `read.db.{generation}`. SQLite finds a WAL by file name only: if the WAL of one database
lay beside another file, SQLite would replay it there. SQLite resolves the link before it names the WAL, so each
generation has its own name, WAL and shared-memory file. A new link is renamed over the old one, which switches readers
atomically. The former generation stays for a moment, for readers that have resolved the link but not opened the file.
Readers that have opened it keep its inodes, and check the path again at their next query (`gateway/search/sqlite.py`).

While this process has a database open, it never opens the file directly: closing that descriptor would drop SQLite's
locks.
"""

import re
import sqlite3
import time
from pathlib import Path

import msgspec

from corvo.model.timestamps import to_rfc3339
from gateway.mirror.database import MirrorDb
from gateway.mirror.store import AbsentDatabase, Remedy, UntrustedDatabase
from gateway.readdb.ddl import schema_version
from gateway.readdb.file import clear_damage_mark, is_marked_damaged

CHECKED_BYTES_MAX = 512 * 1024 * 1024  # about a second of checking; in larger files readers detect damage and report it
CLOSE_PATIENCE_MS = 300  # twice this and the rest must fit into the supervisor's one second
FORMER_KEPT_S = 2.0  # far longer than a reader needs to open the file behind the link
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_OUTSIDE_FAULTS = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_BUSY})
_OF_A_GENERATION = re.compile(r"\.(new-)?[0-9a-f]+(-wal|-shm)?|-wal|-shm")  # after the name; `new-`: old versions


def read_boot_id() -> str:
    """Empty if the system has none; then only a clean close is trusted."""
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
        self._inodes = (0, 0)  # of the published database
        self._former: list[tuple[MirrorDb, float]] = []  # formerly published, and when each may be removed

    def open_trusted(self) -> MirrorDb:
        """Opens the database and marks it on disk as open before any other write."""
        path = self.path
        if not path.exists():
            raise AbsentDatabase("the file does not exist")
        self._remove_leftovers()
        database = None
        try:
            database = MirrorDb(path.resolve())
            meta = database.meta()
            if meta.schema_version != schema_version():
                raise UntrustedDatabase(f"its schema version is {meta.schema_version}, not {schema_version()}")
            if meta.shards != self._shards:
                raise UntrustedDatabase(f"it was made for {meta.shards} shards, the node has {self._shards}")
            if not meta.is_clean and (not self._boot_id or meta.origin != self._boot_id):
                raise UntrustedDatabase("the machine stopped while it was open")
            if path.stat().st_size <= CHECKED_BYTES_MAX and not database.is_sound():
                raise UntrustedDatabase("its pages are damaged")
            # The mark must be in the file itself and on disk. If it stayed in the WAL, later unsynced writes could
            # overwrite it there, and a power cut would bring the old "closed cleanly" back.
            database.sync(True)
            database.put_meta(msgspec.structs.replace(meta, origin=self._boot_id, is_clean=False))
            if not database.checkpoint():
                raise UntrustedDatabase("readers held its WAL too long")
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
        """Closes it later too: the last connection to close removes the WAL, while readers may just be opening it."""
        self._former.append((former, time.monotonic() + FORMER_KEPT_S))

    def abandon(self, building: MirrorDb) -> None:
        _discard(building)

    def look(self, published: MirrorDb) -> None:
        found = inodes(self.path)
        if found != self._inodes or 0 in found:  # 0 in both: deleted before the first check
            raise sqlite3.DatabaseError("the file was deleted or replaced")
        if is_marked_damaged(self.path):
            raise sqlite3.DatabaseError("a reader reported damage")
        published.maybe_cut_log()
        while self._former and self._former[0][1] < time.monotonic():
            _discard(self._former.pop(0)[0])

    def close_clean(self, published: MirrorDb) -> None:
        """Syncs the data, then writes the clean mark, then syncs the mark.

        If a reader holds the WAL, the mark is skipped rather than waited for: the file is then trusted in this boot
        only.
        """
        self.release()
        meta = published.meta()
        published.sync(True)
        published.forget_the_moment()  # also makes the checkpoint sync pages that were copied earlier
        if published.checkpoint(CLOSE_PATIENCE_MS):
            published.put_meta(msgspec.structs.replace(meta, is_clean=True))
            published.checkpoint(CLOSE_PATIENCE_MS)
        published.close()

    def release(self) -> None:
        while self._former:
            _discard(self._former.pop()[0])

    def remedy(self, error: Exception) -> Remedy:
        """If the disk is full or memory is exhausted, a new file would fail too."""
        return "end" if getattr(error, "sqlite_errorcode", 0) & 0xFF in _OUTSIDE_FAULTS else "rebuild"

    def _remove_leftovers(self) -> None:
        """Removes every generation except the published one and those that a reader may be about to open."""
        kept = {former.path.name for former, _ in self._former}
        if self.path.exists():
            kept.add(self.path.resolve().name)
        for file in self.path.parent.glob(f"{self.name}*"):
            rest = file.name.removeprefix(self.name)
            is_kept = file.name.removesuffix("-wal").removesuffix("-shm") in kept
            if _OF_A_GENERATION.fullmatch(rest) and not is_kept:
                file.unlink(missing_ok=True)


def remove(path: Path) -> None:
    """Removes the link first, so that no reader finds a file that is about to go."""
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
    """The inodes of the file and its WAL, 0 if missing. They change when a file is deleted or replaced."""
    target = path.resolve()
    return _inode(target), _inode(Path(f"{target}-wal"))


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0
