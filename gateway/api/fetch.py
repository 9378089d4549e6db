"""Fetch: from queues on one shard or several, with long polling that never claims twice.

If all queues are on one shard, the fetch itself waits there. Otherwise the shards are asked one after another, in the
request's order of queues or in a weighted random order. If none has a job, each shard gets an await, which claims
nothing. The first shard that answers gets the fetch again.

An answer with a job must always reach the worker. So a wait that ends early (the client disconnects, the gateway
drains) is not cancelled. Its calls are recalled, and the shard answers with no job, or with one that it just claimed.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from itertools import count, groupby
from time import monotonic
from typing import Any

import msgspec

from corvo.calls import unreachable
from corvo.model import weighted_order
from corvo.model.errors import Refusal
from corvo.model.sharding import shard_of_queue
from corvo.ops.jobs.fetch import Claimed, Fetch
from corvo.queries.job import Await
from gateway.shards.client import ShardCall, Shards

GRACE_S = 0.05  # only slower answers make the gateway watch the client's connection


class Fetcher:
    def __init__(self, shards: Shards, draining: asyncio.Event) -> None:
        self._shards = shards
        self._draining = draining
        self._waiting: dict[int, list[ShardCall]] = {}  # the calls of each waiting fetch

    def drain(self) -> None:
        """Ends every wait; new fetches do not wait."""
        self._draining.set()
        for calls in list(self._waiting.values()):
            self._recall(calls)

    async def fetch(self, fetch: Fetch, hung_up: Callable[[], Awaitable[None]]) -> list[Claimed]:
        """`hung_up` returns when the client has disconnected."""
        begun = self.begin(fetch)
        if begun is not None:
            return await self.finish(begun, hung_up)
        return await self._fetch_over(fetch, hung_up)

    def begin(self, fetch: Fetch) -> ShardCall | None:
        """Sends a fetch on one shard in this tick, after all earlier calls to that shard. None if its queues are on
        several shards."""
        if self._draining.is_set():
            fetch.wait_ms = 0
        shards = {shard_of_queue(queue, len(self._shards)) for queue in fetch.queues}
        if len(shards) > 1:
            return None
        return self._shards.ask(shards.pop(), fetch, fetch.wait_ms)

    async def finish(self, call: ShardCall, hung_up: Callable[[], Awaitable[None]]) -> list[Claimed]:
        future: asyncio.Future[list[Claimed]] = call.future
        assert isinstance(call.ask, Fetch)
        if not call.ask.wait_ms:
            return await future  # the shard answers at once, so the connection needs no watch
        # A claim may cross the recall; then the claimed job is the answer.
        with self._watched([call], hung_up):
            return await future

    def _runs(self, fetch: Fetch, among: int | None = None, asked: int = 0) -> list[tuple[int, list[str], int]]:
        """Queues in the order to serve, with neighbours on one shard grouped; with `among`, only those of that shard.
        With weights, the order is drawn over all queues, anew each time that they are `asked`. So a queue gets its
        share wherever the others are, and however many of them are empty.

        Each run on a shard has a claim id of its own, and always the same: a request that is sent again finds it."""
        queues = fetch.queues
        if fetch.weights:
            queues = [queues[place] for place in weighted_order.order(fetch.weights, fetch.claim_id + asked)]
        placed = ((shard_of_queue(queue, len(self._shards)), queue) for queue in queues)
        wanted = [(shard, queue) for shard, queue in placed if among is None or shard == among]
        runs: list[tuple[int, list[str], int]] = []
        earlier: Counter[int] = Counter()  # runs on each shard
        for shard, run in groupby(wanted, lambda each: each[0]):
            runs.append((shard, [queue for _, queue in run], fetch.claim_id + earlier[shard]))
            earlier[shard] += 1
        return runs

    async def held_by(self, fetch: Fetch) -> list[Claimed]:
        """The jobs that the worker holds because of an earlier request with these ids, whose answer may be lost."""
        part = msgspec.structs.replace(fetch, weights=[], count=0, wait_ms=0, is_repeated=True)  # claims nothing new
        asked = [
            (shard, msgspec.structs.replace(part, queues=queues, claim_id=claim_id))
            for shard, queues, claim_id in self._runs(fetch)
        ]
        found = await asyncio.gather(*(self._shards.ask(shard, ask) for shard, ask in asked))
        return [claimed for some in found for claimed in some]

    async def _fetch_over(self, fetch: Fetch, hung_up: Callable[[], Awaitable[None]]) -> list[Claimed]:
        deadline = monotonic() + fetch.wait_ms / 1000
        by_shard: dict[int, list[str]] = {}
        for queue in fetch.queues:
            by_shard.setdefault(shard_of_queue(queue, len(self._shards)), []).append(queue)
        claimed = await self._ask_in_turn(fetch, self._runs(fetch))
        for asked in count(1):
            left_ms = int((deadline - monotonic()) * 1000)
            if claimed or left_ms <= 0 or self._draining.is_set():
                return claimed
            asks = {
                shard: Await(queues, fetch.worker_id, fetch.hostname, left_ms) for shard, queues in by_shard.items()
            }
            caller = await self._first_call(asks, hung_up)
            if caller is None:
                return []
            claimed = await self._ask_in_turn(fetch, self._runs(fetch, caller, asked))
        return claimed

    async def _ask_in_turn(self, fetch: Fetch, runs: list[tuple[int, list[str], int]]) -> list[Claimed]:
        claimed: list[Claimed] = []
        refusal: Refusal | None = None
        for shard, queues, claim_id in runs:
            part = msgspec.structs.replace(
                fetch,
                queues=queues,
                all_queues=fetch.queues,
                weights=[],
                count=fetch.count - len(claimed),
                wait_ms=0,
                claim_id=claim_id,
            )
            if not self._shards.is_up(shard):
                refusal = unreachable(shard)  # an unreachable shard must not hold back the jobs of the others
                continue
            try:
                claimed += await self._shards.ask(shard, part)
            except Refusal as refused:
                refusal = refused
            if len(claimed) >= fetch.count:
                break
        if refusal is not None and not claimed and fetch.wait_ms == 0:
            raise refusal
        return claimed

    async def _first_call(self, asks: dict[int, Await], hung_up: Callable[[], Awaitable[None]]) -> int | None:
        """The first shard that has a job. The other awaits are recalled."""
        awaits = [self._shards.ask(shard, ask, ask.wait_ms) for shard, ask in asks.items()]
        refusals: list[Refusal] = []
        waiting: set[asyncio.Future[Any]] = {call.future for call in awaits}
        try:
            with self._watched(awaits, hung_up):
                while waiting:
                    done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                    for call in awaits:
                        if call.future in done:
                            if isinstance(error := call.future.exception(), Refusal):
                                refusals.append(error)  # the others may still have a job
                            elif call.future.result():
                                return call.shard
                if len(refusals) == len(awaits):
                    raise refusals[0]
                return None  # the wait ended at all reachable shards, or all calls were recalled
        finally:
            self._recall(awaits)

    @contextmanager
    def _watched(self, calls: list[ShardCall], hung_up: Callable[[], Awaitable[None]]) -> Iterator[None]:
        """While open, recalls the calls if the client disconnects or the gateway drains."""
        loop = asyncio.get_running_loop()
        watch: asyncio.Future[None] | None = None

        def begin() -> None:
            nonlocal watch
            watch = asyncio.ensure_future(hung_up())
            watch.add_done_callback(lambda ended: None if ended.cancelled() else self._recall(calls))

        timer = loop.call_later(GRACE_S, begin)
        self._waiting[id(calls)] = calls
        try:
            yield
        finally:
            del self._waiting[id(calls)]
            timer.cancel()
            if watch is not None:
                watch.cancel()
            for call in calls:
                if call.future.cancelled():  # the task was cancelled: end the wait at the shard
                    self._shards.recall(call)

    def _recall(self, calls: list[ShardCall]) -> None:
        for call in calls:
            if not call.future.done():
                self._shards.recall(call)
