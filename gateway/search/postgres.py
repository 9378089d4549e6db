"""The gateway's sessions on a read database in PostgreSQL: read-only and bounded in time.

Each query is one READ ONLY, REPEATABLE READ transaction. But PostgreSQL resolves table names per statement, and a
rebuild swaps schemas by renaming them. So the OID of a table is compared before and after, and a query that straddled a
swap is repeated.

Each statement gets the remaining time of the query as its timeout. If the server exceeds it, the connection is closed.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg

from corvo.runtime.read_db import PostgresAddress
from gateway.readdb.postgres_connection import POSTGRES, Connection, connect, cut_after, without_nul
from gateway.search.session import OutOfTime, Prepared, ReadSession, Statement, too_long, unavailable

T = TypeVar("T")

TRIES = 3  # one more for a connection that died while idle, one more for a swap
GRACE_S = 1.0  # beyond the budget, for the server to cancel the statement itself
_BEGIN = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_IDENTITY = b"SELECT to_regclass('mirror_meta')::oid"


class _Swapped(Exception):
    """The query may have read tables of two generations."""


class PostgresSession:
    is_postgresql = True

    def __init__(self, address: PostgresAddress, budget_ms: int) -> None:
        self._address = address
        self._budget_ms = budget_ms
        self._connection: Connection | None = None
        self._deadline = 0.0

    @property
    def left_ms(self) -> float:
        return (self._deadline - time.monotonic()) * 1000

    def rows(self, statement: Statement | Prepared, **values: Any) -> list[Any]:
        prepared = statement if isinstance(statement, Prepared) else Prepared(statement)
        text, parameters = prepared.on(POSTGRES)
        return self._execute(text, {name: without_nul(value) for name, value in {**parameters, **values}.items()})

    @contextmanager
    def budget(self, budget_ms: float) -> Iterator[None]:
        whole = self._deadline
        self._deadline = min(whole, time.monotonic() + budget_ms / 1000)
        self._told(b"SAVEPOINT part")
        try:
            yield
        except psycopg.errors.QueryCanceled:
            if time.monotonic() >= whole:
                raise
            self._told(b"ROLLBACK TO part")  # a failed transaction accepts no further statements
            raise OutOfTime from None
        finally:
            self._deadline = whole

    def ask(self, question: Callable[[ReadSession], T]) -> T:
        self._deadline = time.monotonic() + self._budget_ms / 1000
        for number in range(1, TRIES + 1):
            was_open = self._connection is not None
            try:
                return self._ask_once(question)
            except _Swapped:
                continue
            except psycopg.errors.QueryCanceled:
                self.close()
                raise too_long(self._budget_ms) from None
            except psycopg.Error as error:
                is_lost = self._connection is None or self._connection.broken
                self.close()
                if not (was_open and is_lost and number < TRIES):
                    raise unavailable("the search database cannot be read; retry in a moment") from error
        raise unavailable("the search database was replaced several times during this search; retry in a moment")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask_once(self, question: Callable[[ReadSession], T]) -> T:
        if self._connection is None:
            self._connection = connect(
                self._address,
                application="corvo gateway",
                search_path=self._address.schema,
                default_transaction_read_only="on",
                jit="off",  # compiling takes longer than most queries
                max_parallel_workers_per_gather="0",  # a slice relies on its last row coming last
            )
        left_s = max(0.0, self._deadline - time.monotonic())
        with cut_after(self._connection, left_s + GRACE_S):
            self._told(_BEGIN)
            try:
                before = self._identity()
                if before is None:
                    raise unavailable("the search database is being built; retry in a moment")
                answer = question(self)
                if self._identity() != before:
                    raise _Swapped
                return answer
            finally:
                if not self._connection.broken:
                    self._told(b"ROLLBACK")

    def _identity(self) -> int | None:
        found: int | None = self._execute(_IDENTITY.decode(), None)[0][0]
        return found

    def _execute(self, text: str, parameters: dict[str, Any] | None) -> list[Any]:
        assert self._connection is not None
        left_ms = int((self._deadline - time.monotonic()) * 1000)
        if left_ms <= 0:
            raise psycopg.errors.QueryCanceled
        self._told(f"SET LOCAL statement_timeout = {left_ms}".encode())
        return self._connection.execute(text.encode(), parameters).fetchall()

    def _told(self, command: bytes) -> None:
        assert self._connection is not None
        self._connection.execute(command)
