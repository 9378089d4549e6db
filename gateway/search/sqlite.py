"""The gateway's sessions on `read.db`: read-only and bounded in time.

The mirror may delete or replace the file at any time. So every query checks the inode of the path first and reopens the
connection if it changed. The inode is compared again after the first read, so a connection that straddled a swap is
never used.

Each query runs in one read transaction. A query that exceeds its budget is interrupted, because a long reader stops the
mirror from truncating the WAL. A database that cannot be read gives READ_DB_UNAVAILABLE. If it is damaged, the session
writes a rebuild request beside the file, and the mirror rebuilds it.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy.dialects import sqlite

from gateway.readdb.file import mark_damaged
from gateway.search import jq, tags
from gateway.search.session import OutOfTime, Prepared, ReadSession, Statement, too_long, unavailable

T = TypeVar("T")

OPEN_TRIES = 5  # a file swapped during opening is opened again; rebuilds are rarer than that
_STEPS_BETWEEN_LOOKS = 5_000  # SQLite VM instructions between deadline checks, some tens of microseconds
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


class _Compiler(sqlite.base.SQLiteCompiler):
    """SQLAlchemy ignores hints for SQLite; this compiler renders them as INDEXED BY."""

    def get_from_hint_text(self, table: Any, text: str | None) -> str | None:
        return text


DIALECT = sqlite.dialect(paramstyle="named")
DIALECT.statement_compiler = _Compiler


class SqliteSession:
    """One thread's connection. A query is a function that takes it."""

    is_postgresql = False

    def __init__(self, path: Path, budget_ms: int) -> None:
        self._path = path
        self._budget_ms = budget_ms
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self._deadline = 0.0

    @property
    def left_ms(self) -> float:
        return (self._deadline - time.monotonic()) * 1000

    def rows(self, statement: Statement | Prepared, **values: Any) -> list[Any]:
        prepared = statement if isinstance(statement, Prepared) else Prepared(statement)
        text, parameters = prepared.on(DIALECT)
        assert self._connection is not None
        return self._connection.execute(text, {**parameters, **values}).fetchall()

    @contextmanager
    def budget(self, budget_ms: float) -> Iterator[None]:
        whole = self._deadline
        self._deadline = min(whole, time.monotonic() + budget_ms / 1000)
        try:
            yield
        except sqlite3.OperationalError as error:
            if _code(error) == sqlite3.SQLITE_INTERRUPT and time.monotonic() < whole:
                raise OutOfTime from None
            raise
        finally:
            self._deadline = whole

    def ask(self, question: Callable[[ReadSession], T]) -> T:
        try:
            self._deadline = time.monotonic() + self._budget_ms / 1000
            connection = self._current()
            connection.execute("BEGIN")
            try:
                return question(self)
            finally:
                if connection.in_transaction:  # after damage SQLite has ended it; a second error would hide the first
                    connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            if _code(error) == sqlite3.SQLITE_INTERRUPT:
                raise too_long(self._budget_ms) from None
            self._note_damage(error)
            self.close()
            raise unavailable("the search database cannot be read; it will be rebuilt automatically") from error
        except OSError as error:
            self.close()
            raise unavailable("the search database is being built; retry in a moment") from error

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _current(self) -> sqlite3.Connection:
        for _ in range(OPEN_TRIES):
            inode = self._path.stat().st_ino
            if self._connection is not None and inode == self._inode:
                return self._connection
            self.close()
            self._inode = inode
            try:
                self._connection = self._open()
            except sqlite3.OperationalError:
                if self._path.stat().st_ino == inode:
                    raise
        raise FileNotFoundError("replaced several times while it was opened")

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self._path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA query_only = ON")
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA busy_timeout = 1000")
            jq.functions(connection)
            tags.functions(connection)
            connection.set_progress_handler(self._is_late, _STEPS_BETWEEN_LOOKS)
            connection.execute("SELECT count(*) FROM mirror_meta").fetchall()  # opens the WAL of this inode
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _is_late(self) -> bool:
        return time.monotonic() > self._deadline

    def _note_damage(self, error: sqlite3.Error) -> None:
        if _code(error) in _DAMAGE:
            try:
                mark_damaged(self._path, self._inode or self._path.stat().st_ino)
            except OSError:
                pass  # no permission to write there; the mirror has to detect the damage itself


def _code(error: sqlite3.Error) -> int:
    """SQLite's primary result code; 0 if the error came from Python."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
