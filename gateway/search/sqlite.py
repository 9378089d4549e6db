"""`read.db` as the gateway sees it: read-only, bounded in time, and gone at any moment.

The mirror may delete or replace the file while we run, so every question looks at the path first: another inode means
another file, and the thread's connection is opened anew. The inode is compared again after the first read, so that a
connection that straddled a swap is never used.

Each question runs in one read transaction. One that exceeds its budget is interrupted: a long reader would keep the
mirror from cutting its log. What cannot be read is refused as READ_DB_UNAVAILABLE, and damage is noted beside the file,
where the mirror finds it and builds anew.
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

OPEN_TRIES = 5  # a file that is swapped while it is opened is opened anew; rebuilds are not that frequent
_STEPS_BETWEEN_LOOKS = 5_000  # of SQLite's machine, some tens of microseconds
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


class _Compiler(sqlite.base.SQLiteCompiler):
    """SQLAlchemy leaves hints out for SQLite; ours name the index that a list is read along."""

    def get_from_hint_text(self, table: Any, text: str | None) -> str | None:
        return text


DIALECT = sqlite.dialect(paramstyle="named")
DIALECT.statement_compiler = _Compiler


class SqliteSession:
    """One thread's connection. Questions are functions of it."""

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
                if connection.in_transaction:  # SQLite ends it by itself after damage, and that error must stay visible
                    connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            if _code(error) == sqlite3.SQLITE_INTERRUPT:
                raise too_long(self._budget_ms) from None
            self._note_damage(error)
            self.close()
            raise unavailable("the search database cannot be read; it is rebuilt by itself") from error
        except OSError as error:
            self.close()
            raise unavailable("the search database is not there; it is being built") from error

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
        raise FileNotFoundError("swapped again and again while it was opened")

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
            connection.execute("SELECT count(*) FROM mirror_meta").fetchall()  # opens the log of this very file
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
                pass  # a directory that we may not write to: the mirror has to find out by itself


def _code(error: sqlite3.Error) -> int:
    """The primary code; 0 when the error came from Python and not from SQLite."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
