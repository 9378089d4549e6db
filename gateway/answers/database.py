"""`read.db` as the gateway sees it: read-only, bounded in time, and gone at any moment.

The mirror may delete or replace the file while we run, so every question looks at the path first: another inode means
another file, and the thread's connection is opened anew. A write-ahead log belongs to its database by name only; the
inode is therefore compared again after the first read, so that a connection that straddled a swap is never used.

Questions run in a few threads (SQLite blocks), each in one read transaction: the page, the total and the lag of one
answer are of one moment. A question that exceeds its budget is interrupted: a long reader would keep the mirror from
cutting its log. What cannot be read is refused as READ_DB_UNAVAILABLE, and damage is noted beside the file, where the
mirror finds it and builds anew.
"""

import asyncio
import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from corvo.errors import Refusal
from gateway.answers import jq, tags
from gateway.mirror.trust import suspicion

T = TypeVar("T")

BUDGET_MS = 2_000
THREADS = 4
WAITING_MAX = 64  # questions in hand and in the queue; more would only wait for their callers to give up
TEXTS_MAX = 512  # of statements; some kilobytes each
_STEPS_BETWEEN_LOOKS = 5_000  # of SQLite's machine, some tens of microseconds
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


class _Compiler(sqlite.base.SQLiteCompiler):
    """SQLAlchemy leaves hints out for SQLite; ours name the index that a list is read along."""

    def get_from_hint_text(self, table: Any, text: str | None) -> str | None:
        return text


_DIALECT = sqlite.dialect(paramstyle="named")
_DIALECT.statement_compiler = _Compiler


def along(index: str, statement: sa.Select[Any], table: sa.Table) -> sa.Select[Any]:
    """Read along this index, whatever SQLite thinks of it."""
    return statement.select_from(table).with_hint(table, f"INDEXED BY {index}", "sqlite")


def numbers(values: Sequence[int]) -> str:
    """Many numbers as one parameter."""
    return json.dumps(values)


def listed(parameter: str) -> sa.Select[Any]:
    """`numbers`, to be read like a column."""
    each = sa.func.json_each(sa.bindparam(parameter, "[]", type_=sa.Text)).table_valued("value", name="listed")
    return sa.select(each.c.value)


Statement = sa.Select[Any] | sa.CompoundSelect[Any]


class Prepared:
    """A statement as text, with its values beside. Turning it into text takes longer than SQLite needs to answer it, so
    statements that differ in their values alone share one text; those that are the same for every question are
    prepared once."""

    _texts: ClassVar[dict[Any, Any]] = {}

    def __init__(self, statement: Statement) -> None:
        key = statement._generate_cache_key()
        assert key is not None, "a statement that cannot be told from others"
        compiled = self._texts.get(key.key)
        if compiled is None:
            if len(self._texts) >= TEXTS_MAX:
                self._texts.clear()
            compiled = self._texts[key.key] = _Compiler(_DIALECT, statement, cache_key=key)
        if compiled.post_compile_params:  # a list of values: the text depends on its length
            compiled = statement.compile(dialect=_DIALECT, compile_kwargs={"render_postcompile": True})
            self.sql, self.parameters = str(compiled), compiled.params
        else:
            self.sql = compiled.string
            self.parameters = compiled.construct_params(extracted_parameters=key.bindparams, _check=False)


class OutOfTime(Exception):
    """A budget inside a question is used up; the question itself may go on."""


class Reading:
    """One thread's connection. Questions are functions of it."""

    def __init__(self, path: Path, budget_ms: int) -> None:
        self._path = path
        self._budget_ms = budget_ms
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self._deadline = 0.0

    @property
    def left_ms(self) -> float:
        """Of the budget of this question."""
        return (self._deadline - time.monotonic()) * 1000

    def rows(self, statement: Statement | Prepared, **values: Any) -> list[Any]:
        """Rows as tuples. Values travel as parameters, never inside the text; `values` are those of named ones."""
        prepared = statement if isinstance(statement, Prepared) else Prepared(statement)
        assert self._connection is not None
        return self._connection.execute(prepared.sql, prepared.parameters | values).fetchall()

    @contextmanager
    def budget(self, budget_ms: float) -> Iterator[None]:
        """A tighter limit for a part that the answer can do without: raises OutOfTime."""
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

    def ask(self, question: "Callable[[Reading], T]") -> T:
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
                raise Refusal(
                    "DEADLINE_EXCEEDED",
                    f"the search took longer than {self._budget_ms} ms; narrow it by queue, state or time",
                ) from None
            self._note_damage(error)
            self.close()
            raise _unavailable("the search database cannot be read; it is rebuilt by itself") from error
        except OSError as error:
            self.close()
            raise _unavailable("the search database is not there; it is being built") from error

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _current(self) -> sqlite3.Connection:
        inode = self._path.stat().st_ino
        if self._connection is None or inode != self._inode:
            self.close()
            self._connection = self._open()
            self._inode = inode
            if self._path.stat().st_ino != inode:
                raise FileNotFoundError("swapped while it was opened")
        return self._connection

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
                suspicion(self._path).write_text(str(self._inode or self._path.stat().st_ino))
            except OSError:
                pass  # a directory that we may not write to: the mirror has to find out by itself


class ReadDb:
    """All threads' readings. Construction starts nothing; the first question does."""

    def __init__(self, path: Path, budget_ms: int = BUDGET_MS) -> None:
        self._path = path
        self._budget_ms = budget_ms
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="read-db")
        self._own = threading.local()
        self._readings: list[Reading] = []
        self._waiting = 0

    async def ask(self, question: Callable[[Reading], T]) -> T:
        if self._waiting >= WAITING_MAX:
            raise Refusal("OVERLOADED", "too many searches wait already", retry_after_ms=1000)
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._ask, question)
        finally:
            self._waiting -= 1

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)
        for reading in self._readings:
            reading.close()

    def _ask(self, question: Callable[[Reading], T]) -> T:
        reading: Reading | None = getattr(self._own, "reading", None)
        if reading is None:
            reading = self._own.reading = Reading(self._path, self._budget_ms)
            self._readings.append(reading)
        return reading.ask(question)


def _unavailable(message: str) -> Refusal:
    return Refusal("READ_DB_UNAVAILABLE", message, retry_after_ms=1000)


def _code(error: sqlite3.Error) -> int:
    """The primary code; 0 when the error came from Python and not from SQLite."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
