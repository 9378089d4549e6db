"""Runs queries on the read database in a few threads, because SQLite and psycopg block.

Each thread has its own session. Queries beyond the limit are refused at once.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from corvo.model.errors import Refusal
from corvo.model.reach import Reach
from corvo.runtime.read_db import PostgresAddress
from gateway.search.session import OutOfTime, Prepared, ReadSession, along, listed, numbers
from gateway.search.sqlite import SqliteSession
from gateway.search.tenancy import TenantDb, TenantSession

__all__ = [
    "OutOfTime",
    "Prepared",
    "ReadDb",
    "ReadSession",
    "TenantDb",
    "TenantSession",
    "along",
    "listed",
    "numbers",
]

T = TypeVar("T")

BUDGET_MS = 2_000
THREADS = 4
WAITING_MAX = 64  # running and queued; more would only wait until their callers give up


class ReadDb:
    """All sessions. Each opens its connection with its first query."""

    def __init__(self, place: Path | PostgresAddress, budget_ms: int = BUDGET_MS) -> None:
        self._place = place
        self.is_postgresql = not isinstance(place, Path)
        self._budget_ms = budget_ms
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="read-db")
        self._own = threading.local()
        self._sessions: list[ReadSession] = []
        self._waiting = 0

    def within(self, reach: Reach) -> TenantDb:
        """Only what a request with this reach may see."""
        return TenantDb(self, reach)

    async def ask(self, question: Callable[[ReadSession], T]) -> T:
        """Of all namespaces: for the state of the database itself. Lists for clients ask `within` their reach."""
        if self._waiting >= WAITING_MAX:
            raise Refusal("OVERLOADED", "too many searches are waiting", retry_after_ms=1000)
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._ask, question)
        finally:
            self._waiting -= 1

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)
        for session in self._sessions:
            session.close()

    def _ask(self, question: Callable[[ReadSession], T]) -> T:
        session: ReadSession | None = getattr(self._own, "session", None)
        if session is None:
            session = self._own.session = new_session(self._place, self._budget_ms)
            self._sessions.append(session)
        return session.ask(question)


def new_session(place: Path | PostgresAddress, budget_ms: int) -> ReadSession:
    if isinstance(place, Path):
        return SqliteSession(place, budget_ms)
    from gateway.search.postgres import PostgresSession  # lazy: psycopg is an optional extra

    return PostgresSession(place, budget_ms)
