"""This gateway's copy of the records of access: keys, roles, namespaces, sign-on settings.

It follows this node's replica of shard 0, which answers without a leader. The replica is asked twice a second, at once
after a change by this gateway (`reach`), and before a key that is not known is refused (`refresh`). So a revoked key is
refused within a second of the moment when this node's replica learned of it.

A copy that no current replica has confirmed for `STALE_S` is not fresh, and the guard refuses every request: a node
that is cut off must not accept revoked keys for longer than that.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from time import monotonic
from typing import Any, Protocol

import structlog

from corvo.endpoint import Operation, Query
from corvo.model.access import Permission, Principal
from corvo.model.access_records import AccessNews, AccessState, ApiKey, NamespaceRecord, SsoSettings, with_news
from corvo.model.errors import Refusal
from corvo.queries.access.follow_access import FollowAccess

POLL_S = 0.5
STALE_S = 30.0
GAP_S = 0.05  # between two questions: unknown keys must not make many of them
ANSWER_S = 2.0  # how long the replica may take to answer
REACH_S = 2.0  # how long an answer waits for the copy to hold its change

log = structlog.get_logger()


class AskShard(Protocol):
    """Ask shard 0. A refusal is raised where the call is awaited."""

    def __call__(self, ask: Operation | Query, timeout_s: float) -> Awaitable[Any]: ...


class Registry:
    def __init__(self, ask: AskShard, clock: Callable[[], float] = monotonic) -> None:
        self._ask = ask
        self._clock = clock
        self._state = AccessState()
        self._has_keys = False
        self._confirmed_at: float | None = None
        self._asked_at: float | None = None
        self._asking = asyncio.Lock()
        self._next: asyncio.Task[None] | None = None  # a question that has not been sent
        self._questions: set[asyncio.Task[None]] = set()
        self._callbacks: list[Callable[[], None]] = []
        self._polling: asyncio.Task[None] | None = None

    # The copy

    @property
    def version(self) -> int:
        return self._state.version

    @property
    def is_fresh(self) -> bool:
        """Whether a current replica has confirmed the copy within `STALE_S`."""
        return self._confirmed_at is not None and self._clock() - self._confirmed_at < STALE_S

    @property
    def is_known(self) -> bool:
        """Whether a current replica has ever confirmed the copy."""
        return self._confirmed_at is not None

    @property
    def state(self) -> AccessState:
        """One version of everything. It is replaced, never changed."""
        return self._state

    def key(self, key_hash: str) -> ApiKey | None:
        return self._state.keys.get(key_hash)

    @property
    def has_keys(self) -> bool:
        """Whether any key is enabled."""
        return self._has_keys

    def principal_of(self, key: ApiKey) -> Principal:
        return self._state.principal_of(key)

    def permissions_of(self, roles: Iterable[str]) -> tuple[Permission, ...]:
        return self._state.permissions_of(roles)

    def namespace(self, name: str) -> NamespaceRecord | None:
        return self._state.namespace(name)

    @property
    def sso(self) -> SsoSettings:
        return self._state.sso

    def on_change(self, callback: Callable[[], None]) -> None:
        """Called after every change of the copy."""
        self._callbacks.append(callback)

    # Following

    def start(self) -> None:
        self._polling = asyncio.ensure_future(self._poll())

    async def stop(self) -> None:
        tasks = [*self._questions, *([self._polling] if self._polling is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def refresh(self) -> None:
        """Ask now; many callers share one question. Whether it was answered, `is_fresh` and `version` tell."""
        if self._next is None:
            self._next = asyncio.ensure_future(self._ask_next())
            self._questions.add(self._next)
            self._next.add_done_callback(self._questions.discard)
        await asyncio.shield(self._next)

    async def reach(self, version: int) -> None:
        """Wait until the copy holds a change that this gateway made. The change is done: when the copy does not get
        there in time, the answer must not wait longer."""
        ends = self._clock() + REACH_S
        while self.version < version and self._clock() < ends:
            await self.refresh()

    async def _poll(self) -> None:
        while True:
            try:
                await self.refresh()
            except Exception:  # without it, every request would be refused for ever
                log.exception("the records of access cannot be followed")
            await asyncio.sleep(POLL_S)

    async def _ask_next(self) -> None:
        async with self._asking:
            if self._asked_at is not None:
                await asyncio.sleep(max(self._asked_at + GAP_S - self._clock(), 0))
            self._next = None  # whoever asks from here on needs a later answer
            self._asked_at = asked_at = self._clock()
            try:
                news = await self._ask(FollowAccess(self.version), ANSWER_S)
            except Refusal as refusal:
                log.debug("the records of access could not be asked for", reason=refusal.message)
            else:
                self._take(news, asked_at)

    def _take(self, news: AccessNews, asked_at: float) -> None:
        if news.version < self.version and (self.is_fresh or not news.is_current):
            return  # a replica that has just started repeats its log; a revoked key must not come back with it
        is_changed = news.version != self.version
        if is_changed:
            self._state = with_news(self._state, news)
            self._has_keys = any(key.is_enabled for key in self._state.keys.values())
        if news.is_current:
            self._confirmed_at = asked_at
        if is_changed:
            for callback in self._callbacks:
                try:
                    callback()
                except Exception:  # the others must hear of a revoked key all the same
                    log.exception("a change of the records of access could not be handled")
