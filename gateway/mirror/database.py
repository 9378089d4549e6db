"""The writer of an SQLite read database: one connection, raw batched statements, one transaction per turn.

The rows of a batch and the shard's cursor are committed together. So after a crash of this process the file holds a
state that the shards once had, and following resumes there. `synchronous=OFF`: no write waits for the disk, because the
file is derived; `sqlite_store.py` decides when to trust it. Only this connection checkpoints: SQLite before 3.51.3 can
lose a WAL when two connections write or checkpoint at once.

`follow.py` is the only user. Every method may raise `sqlite3.Error`; after that only `close` is allowed.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from corvo.model.timestamps import to_rfc3339
from gateway.mirror import statements
from gateway.mirror.indexing import Indexing
from gateway.mirror.shard_writes import Cursor, Meta, ShardWrite, cursor_row, meta_row, parts, to_meta
from gateway.readdb.ddl import create_statements, schema_version, seed_rows

WAL_BYTES_MAX = 64 * 1024 * 1024  # above this the WAL is truncated as soon as no reader holds it
_BUSY_MS = 5_000  # longer than any reader's budget
_PRAGMAS = (
    "journal_mode = WAL",
    "foreign_keys = OFF",  # declared, not enforced: rows of several shards arrive in any order
    "temp_store = MEMORY",
    "cache_size = -32768",  # KiB: the upper levels of all indexes; the page cache keeps the rest
    "mmap_size = 0",  # a damaged mapped file kills the process; a damaged read is an error
    "trusted_schema = OFF",
    "cell_size_check = ON",
    "wal_autocheckpoint = 8000",  # pages, half of WAL_BYTES_MAX: a page written many times is copied once
    f"busy_timeout = {_BUSY_MS}",
)


class MirrorDb:
    def __init__(self, path: Path) -> None:
        """Opens the file, or makes an empty one. `create` and `sqlite_store.py` check which it should be."""
        self.path = path
        # The driver caches prepared statements; 64 hold all of the mirror's.
        self._connection = sqlite3.connect(path, isolation_level=None, cached_statements=64)
        try:
            for pragma in _PRAGMAS:
                self._connection.execute(f"PRAGMA {pragma}")
            self.sync(False)
        except sqlite3.Error:
            self._connection.close()
            raise
        self._indexing = Indexing(self._connection)

    # Making and describing the file

    def create(self, generation: str, boot_id: str, shards: int, now: int) -> None:
        with self._transaction():
            for statement in create_statements():
                self._connection.execute(statement)
            for statement, values in seed_rows():
                self._connection.execute(statement, values)
            self._put_meta(Meta(schema_version(), generation, boot_id, False, shards, to_rfc3339(now)))

    def meta(self) -> Meta:
        row = self._connection.execute(statements.READ_META).fetchone()
        if row is None:
            raise sqlite3.DatabaseError("mirror_meta is empty")
        return to_meta(row)

    def put_meta(self, meta: Meta) -> None:
        with self._transaction():
            self._put_meta(meta)

    def _put_meta(self, meta: Meta) -> None:
        self._connection.execute(statements.PUT_META, meta_row(meta))

    @property
    def generation(self) -> str:
        return self.meta().generation

    def forget_the_moment(self) -> None:
        """At the start no worker is known to wait, and no shard is followed yet."""
        with self._transaction():
            self._connection.execute(statements.CLEAR_PRESENCE)
            self._connection.execute(statements.FALL_BEHIND_ALL)

    # Following

    def cursors(self) -> list[tuple[int, int, str | None, int]]:
        """Rows of (shard, applied index, caught up at, rows in total)."""
        return self._connection.execute(statements.READ_CURSORS).fetchall()

    def write(self, turns: Sequence[ShardWrite]) -> None:
        """Writes all turns in one transaction."""
        with self._transaction():
            for turn in turns:
                self._write_turn(turn)

    def _write_turn(self, turn: ShardWrite) -> None:
        many = self._connection.executemany
        for statement, rows, bounds in parts(turn):
            if bounds is not None:
                self._connection.execute(statement.clear_stretch, (*bounds, turn.shard))
            if rows.gone:
                many(statement.gone, rows.gone)
            if statement is statements.JOBS and (rows.gone or bounds is not None):
                many(statements.NOTE_DELETED, rows.gone)
                self._connection.execute(statements.REWIND_INDEX)
            if rows.put:
                many(statement.put, rows.put)
        if turn.stretch is not None and turn.stretch.jobs is not None:  # after the rows of the range are written
            self._connection.execute(statements.NOTE_CLEARED, (*turn.stretch.jobs, turn.shard))
        if turn.presence is not None:
            self._connection.execute(statements.CLEAR_PRESENCE_OF, (turn.shard,))
            many(statements.PUT_PRESENCE, turn.presence)
        if turn.cursor is not None:
            self._connection.execute(statements.PUT_CURSOR, cursor_row(turn.cursor))

    def index(self, budget_ms: float) -> bool:
        """Updates the text indexes for about `budget_ms` (`indexing.py`). True if work is left."""
        with self._transaction():
            return self._indexing.slice(budget_ms)

    def put_cursors(self, cursors: Sequence[Cursor]) -> None:
        with self._transaction():
            self._connection.executemany(statements.PUT_CURSOR, [cursor_row(cursor) for cursor in cursors])

    def vouch(self, shards: Sequence[int], now: int) -> None:
        """A heartbeat: records that these shards had no changes up to now."""
        at = to_rfc3339(now)
        with self._transaction():
            self._connection.executemany(statements.VOUCH, [(at, at, shard) for shard in shards])

    def fall_behind(self, shard: int) -> None:
        """Marks the shard as not followed: it is unreachable, or there is a gap after the cursor."""
        with self._transaction():
            self._connection.execute(statements.FALL_BEHIND, (shard,))
            self._connection.execute(statements.CLEAR_PRESENCE_OF, (shard,))

    # The file on disk

    def sync(self, is_on: bool) -> None:
        """If on, each commit and checkpoint waits for the disk."""
        self._connection.execute(f"PRAGMA synchronous = {'FULL' if is_on else 'OFF'}")

    def checkpoint(self, patience_ms: int = _BUSY_MS) -> bool:
        """Copies the WAL into the file and truncates it. False if readers held it all the time."""
        self._connection.execute(f"PRAGMA busy_timeout = {patience_ms}")
        busy, _, _ = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        self._connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
        return not busy

    def maybe_cut_log(self) -> None:
        """The WAL grows during a long read, and SQLite never shrinks it by itself."""
        log = Path(f"{self.path}-wal")
        if log.exists() and log.stat().st_size > WAL_BYTES_MAX:
            self.checkpoint(patience_ms=100)

    def is_sound(self) -> bool:
        return bool(self._connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")
