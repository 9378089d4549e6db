"""Fetch, as a journey: queues on one shard or on many, waiting without claiming twice.

On one shard the fetch itself waits there. Over several shards each is asked in turn, in the order in which the caller
named the queues; when none has a job, all are awaited (which claims nothing) and the first to call is asked again.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import groupby
from time import monotonic
from typing import Any

import msgspec

from corvo.errors import Refusal
from corvo.ops.jobs.fetch import Claimed, Fetch
from corvo.queries.job import Await
from corvo.sharding import shard_of_queue
from gateway.links import Pending, Shards

GRACE_S = 0.05  # a reply within this needs no watch over the client's connection


class Fetching:
    def __init__(self, shards: Shards, draining: asyncio.Event) -> None:
        self._shards = shards
        self._draining = draining

    async def fetch(self, fetch: Fetch, hung_up: Callable[[], Awaitable[None]]) -> list[Claimed]:
        """`hung_up` returns when the client is gone."""
        runs = [
            (shard, list(queues))
            for shard, queues in groupby(fetch.queues, lambda queue: shard_of_queue(queue, len(self._shards)))
        ]
        if self._draining.is_set():
            fetch.wait_ms = 0
        if len(runs) == 1:
            return await self._fetch_on(runs[0][0], fetch, hung_up)
        return await self._fetch_over(fetch, runs, hung_up)

    async def _fetch_over(
        self, fetch: Fetch, runs: list[tuple[int, list[str]]], hung_up: Callable[[], Awaitable[None]]
    ) -> list[Claimed]:
        deadline = monotonic() + fetch.wait_ms / 1000
        by_shard: dict[int, list[str]] = {}
        for shard, queues in runs:
            by_shard.setdefault(shard, []).extend(queues)
        while True:
            claimed = await self._ask_in_turn(fetch, runs)
            left_ms = int((deadline - monotonic()) * 1000)
            if claimed or left_ms <= 0 or self._draining.is_set():
                return claimed
            asks = {
                shard: Await(queues, fetch.worker_id, fetch.hostname, left_ms) for shard, queues in by_shard.items()
            }
            if not await self._first_call(asks, hung_up):
                return []

    async def _ask_in_turn(self, fetch: Fetch, runs: list[tuple[int, list[str]]]) -> list[Claimed]:
        claimed: list[Claimed] = []
        for number, (shard, queues) in enumerate(runs):
            part = msgspec.structs.replace(
                fetch,
                queues=queues,
                count=fetch.count - len(claimed),
                wait_ms=0,
                claim_id=fetch.claim_id + number,
            )
            try:
                claimed += await self._shards.ask(shard, part)
            except Refusal:
                if not claimed:
                    raise
                break  # what the others gave is claimed already: handed out, it is not lost until its leases end
            if len(claimed) >= fetch.count:
                break
        fetch.claim_id += len(runs)
        return claimed

    async def _first_call(self, asks: dict[int, Await], hung_up: Callable[[], Awaitable[None]]) -> bool:
        """Whether some shard has a job. The other awaits are taken back."""
        awaits: list[tuple[int, Pending]] = []
        try:
            for shard, ask in asks.items():  # one that is full refuses: those before it are taken back, too
                awaits.append((shard, self._shards.park(shard, ask, ask.wait_ms)))
            futures: set[asyncio.Future[Any]] = {pending.future for _, pending in awaits}
            async with self._enders(hung_up) as enders:
                waiting = futures | enders
                while waiting & futures:
                    done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                    if done & enders:
                        return False
                    if any(future.result() for future in done):  # a refusal is raised here: the shard is gone
                        return True
                return False  # every shard's patience ended
        finally:
            for shard, pending in awaits:
                pending.future.add_done_callback(_look_at)
                if not pending.future.done():
                    self._shards.recall(shard, pending)

    async def _fetch_on(self, shard: int, fetch: Fetch, hung_up: Callable[[], Awaitable[None]]) -> list[Claimed]:
        pending = self._shards.park(shard, fetch, fetch.wait_ms)
        future: asyncio.Future[list[Claimed]] = pending.future
        done, _ = await asyncio.wait({future}, timeout=GRACE_S)
        if not done:
            async with self._enders(hung_up) as enders:
                await asyncio.wait({future, *enders}, return_when=asyncio.FIRST_COMPLETED)
            if not future.done():
                # A claim may be on its way: the recall is answered with it, or with nothing.
                self._shards.recall(shard, pending)
        return await future

    @asynccontextmanager
    async def _enders(self, hung_up: Callable[[], Awaitable[None]]) -> AsyncIterator[set[asyncio.Future[Any]]]:
        """What ends a wait early: the client hangs up, or the gateway shuts down."""
        tasks: set[asyncio.Future[Any]] = {
            asyncio.ensure_future(hung_up()),
            asyncio.ensure_future(self._draining.wait()),
        }
        try:
            yield tasks
        finally:
            for task in tasks:
                task.cancel()


def _look_at(future: "asyncio.Future[Any]") -> None:
    """An outcome that nobody wants: looked at, so that the loop does not report it as overlooked."""
    if not future.cancelled():
        future.exception()
