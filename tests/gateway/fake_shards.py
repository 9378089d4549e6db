"""Shards without processes: the engine over maps in memory behind the methods of `gateway.shards.client.Shards`.

Asks and results pass through their bytes, as over the wire. Every ask is remembered in `asked`, so that a test can
say that nothing reached any shard. A shard in `refusing` answers with that refusal instead. `statuses` holds what a
replica says of itself, by shard and node; the empty name is the replica here. Errands between shards are carried over
at once, unless `is_carrying` is off: then `carry` does it.
"""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Any

from corvo import wire
from corvo.endpoint import Operation, Query, Read
from corvo.model.errors import Refusal, Refused
from corvo.model.limits import DELIVERY_BYTES_MAX, ERRANDS_PER_DELIVERY
from corvo.ops.jobs.fetch import Fetch
from corvo.ops.upkeep.confirm import Confirm
from corvo.ops.upkeep.deliver import Deliver
from corvo.queries.cluster import GetIndex, GetStatus, Histogram, ShardStatus
from corvo.queries.events import EventsFound, GetEvents
from corvo.queries.job import Await
from corvo.queries.members import AddNode, GroupMembers, MoveLeader, RemoveNode
from gateway.shards.client import Pending
from tests.support.machine import Machine


class FakeShards:
    def __init__(self, count: int = 4) -> None:
        self.machines = [Machine(shard, count) for shard in range(count)]
        self.is_carrying = True
        self.asked: list[tuple[int, Operation | Query]] = []
        self.parked: dict[int, tuple[int, Pending]] = {}
        self.recalled: list[int] = []
        self.refusing: dict[int, Refusal] = {}
        self.statuses: dict[tuple[int, str], ShardStatus | Refused] = {}
        self.links = [FakeLink(self, shard) for shard in range(count)]
        self._next_id = 0

    def __len__(self) -> int:
        return len(self.machines)

    def ask(self, shard: int, ask: Operation | Query) -> "asyncio.Future[Any]":
        return self.park(shard, ask, 0).future

    def park(self, shard: int, ask: Operation | Query, wait_ms: int) -> Pending:
        self._next_id += 1
        raw = wire.encode(ask)
        ask = wire.decode_ask(raw)
        self.asked.append((shard, ask))
        loop = asyncio.get_running_loop()
        pending = Pending(self._next_id, ask, raw, monotonic() + wait_ms / 1000, loop.create_future(), True)
        if not self._try(shard, pending) and wait_ms:
            self.parked[pending.call_id] = (shard, pending)
            loop.call_later(wait_ms / 1000, self._end_wait, pending)
        elif not pending.future.done():
            pending.future.set_result([] if isinstance(ask, Fetch) else False)
        self._wake(shard)
        return pending

    def is_up(self, shard: int) -> bool:
        return True

    def recall(self, shard: int, pending: Pending) -> None:
        self.recalled.append(pending.call_id)
        self._end_wait(pending)

    async def ask_all(self, calls: list[tuple[int, Operation | Query]]) -> list[Any]:
        return [await future for future in [self.ask(shard, ask) for shard, ask in calls]]

    async def ask_each(self, make: Callable[[int], Query], timeout_s: float) -> list[Any]:
        futures = [self.ask(shard, make(shard)) for shard in range(len(self))]
        return await asyncio.gather(*futures, return_exceptions=True)

    def close(self) -> None:
        for _, pending in self.parked.values():
            pending.future.cancel()

    def carry(self) -> None:
        """What couriers do: errands are done where they are for, until none is left."""
        while ways := [(source, to) for source in self.machines for to in source.tables.errands.targets()]:
            for source, to in ways:
                errands = source.tables.errands
                first, raws = errands.waiting(to, ERRANDS_PER_DELIVERY, DELIVERY_BYTES_MAX)
                source.one(Confirm(to, self.machines[to].one(Deliver(errands.shard, first, raws))))

    # How a shard answers

    def _try(self, shard: int, pending: Pending) -> bool:
        """Whether there was an answer. Nothing to fetch, nothing to tell: then the call may wait."""
        if shard in self.refusing:
            pending.future.set_exception(self.refusing[shard])
            return True
        result = self._answer(self.machines[shard], shard, pending.ask)
        if isinstance(pending.ask, Fetch | Await) and not result:
            return False
        if isinstance(pending.ask, GetEvents) and pending.ask.wait_ms and not result.events:
            return False
        try:
            pending.future.set_result(wire.decode_result(type(pending.ask), wire.reply_to(0, result)))
        except Refusal as refusal:
            pending.future.set_exception(refusal)
        return True

    def _answer(self, machine: Machine, shard: int, ask: Operation | Query) -> Any:
        if isinstance(ask, Operation):
            result = machine.one(ask)
            if self.is_carrying:
                self.carry()
            return result
        if isinstance(ask, Await):
            return any(machine.tables.has_pending(queue) for queue in ask.queues)
        if isinstance(ask, GetEvents):
            return ask.look(machine.tables.event_log)
        if isinstance(ask, GetStatus):
            return self.statuses.get((shard, ask.node_id)) or a_status(shard)
        if isinstance(ask, AddNode | RemoveNode | MoveLeader):
            return GroupMembers(1, ["node-1"])
        if isinstance(ask, GetIndex):
            return (self.statuses.get((shard, "")) or a_status(shard)).applied_index
        assert isinstance(ask, Read)
        try:
            return ask.read(machine.tables)
        except Refusal as refusal:
            return refusal.to_refused()

    def _wake(self, shard: int) -> None:
        for call_id, (parked_at, pending) in list(self.parked.items()):
            if parked_at == shard and (pending.future.done() or self._try(shard, pending)):
                self.parked.pop(call_id, None)

    def _end_wait(self, pending: Pending) -> None:
        self.parked.pop(pending.call_id, None)
        if not pending.future.done():
            if isinstance(pending.ask, GetEvents):
                pending.future.set_result(EventsFound(pending.ask.after, []))
            else:
                pending.future.set_result([] if isinstance(pending.ask, Fetch) else False)


class FakeLink:
    def __init__(self, shards: FakeShards, shard: int) -> None:
        self._shards = shards
        self._shard = shard

    def ask(self, ask: Operation | Query, timeout_s: float) -> Pending:
        return self._shards.park(self._shard, ask, 0)


def a_histogram(*counts: int, total: float = 0.0) -> Histogram:
    counts = counts or (1, 2, 3)
    return Histogram([0.001 * 10**power for power in range(len(counts) - 1)], list(counts), total)


def a_status(shard: int = 0, **fields: Any) -> ShardStatus:
    defaults: dict[str, Any] = {
        "node_id": "node-1",
        "role": "leader",
        "leader": "node-1",
        "term": 3,
        "commit_index": 12,
        "applied_index": 12,
        "log_first_index": 2,
        "log_last_index": 12,
        "state_hash": "00",
        "fsync": True,
        "uptime_s": 1.0,
        "operations_total": 20,
        "entries_total": 10,
        "overloads_total": 0,
        "calls_waiting": 0,
        "fetches_parked": 0,
        "pulls_parked": 0,
        "leases": 0,
        "queues": 0,
        "mirror_cursor": 9,
        "batch_size": a_histogram(),
        "queue_time_s": a_histogram(),
        "apply_time_s": a_histogram(),
        "sync_time_s": a_histogram(),
    }
    return ShardStatus(shard=shard, **(defaults | fields))
