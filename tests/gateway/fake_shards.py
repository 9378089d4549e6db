"""Shards without processes: the engine over maps in memory behind the methods of `gateway.shards.client.Shards`.

Asks and results pass through their bytes, as over the wire. Every ask is remembered in `asked`, so that a test can
say that nothing reached any shard. A shard in `refusing` answers with that refusal instead. `statuses` holds what a
replica says of itself, by shard and node; the empty name is the replica here. Errands between shards are carried over
at once, unless `is_carrying` is off: then `carry` does it.
"""

import asyncio
from collections.abc import Coroutine
from time import monotonic
from typing import Any

from corvo import wire
from corvo.endpoint import Operation, Query, Read
from corvo.model.errors import Refusal, Refused
from corvo.model.limits import DELIVERY_BYTES_MAX, ERRANDS_PER_DELIVERY
from corvo.ops.jobs.fetch import Fetch
from corvo.ops.upkeep.confirm import Confirm
from corvo.ops.upkeep.deliver import Deliver
from corvo.queries.access.follow_access import FollowAccess
from corvo.queries.cluster import GetIndex, GetStatus, Histogram, ShardStatus
from corvo.queries.events import EventsFound, GetEvents
from corvo.queries.job import Await
from corvo.queries.members import AddNode, GroupMembers, MoveLeader, RemoveNode
from gateway.shards.client import ShardCall
from tests.support.machine import Machine


class FakeShards:
    def __init__(self, count: int = 4) -> None:
        self.machines = [Machine(shard, count) for shard in range(count)]
        self.is_carrying = True
        self.asked: list[tuple[int, Operation | Query]] = []
        self.parked: dict[int, ShardCall] = {}
        self.recalled: list[int] = []
        self.refusing: dict[int, Refusal] = {}
        self.statuses: dict[tuple[int, str], ShardStatus | Refused] = {}
        self._next_id = 0

    def __len__(self) -> int:
        return len(self.machines)

    def ask(self, shard: int, ask: Operation | Query, wait_ms: int = 0, timeout_s: float | None = None) -> ShardCall:
        self._next_id += 1
        raw = wire.encode(ask)
        ask = wire.decode_ask(raw)
        self.asked.append((shard, ask))
        loop = asyncio.get_running_loop()
        now = monotonic()
        future: asyncio.Future[Any] = loop.create_future()
        call = ShardCall(ask, now, now + wait_ms / 1000, call_id=self._next_id, shard=shard, future=future)
        if not self._try(call) and wait_ms:
            self.parked[call.call_id] = call
            loop.call_later(wait_ms / 1000, self._end_wait, call)
        elif not call.is_over():
            call.end([] if isinstance(ask, Fetch) else False)
        self._wake(shard)
        return call

    def is_up(self, shard: int) -> bool:
        return True

    def recall(self, call: ShardCall) -> None:
        self.recalled.append(call.call_id)
        self._end_wait(call)

    def close(self) -> None:
        for call in self.parked.values():
            call.future.cancel()

    def carry(self) -> None:
        """What couriers do: errands are done where they are for, until none is left."""
        while ways := [(source, to) for source in self.machines for to in source.tables.errands.targets()]:
            for source, to in ways:
                errands = source.tables.errands
                first, raws = errands.waiting(to, ERRANDS_PER_DELIVERY, DELIVERY_BYTES_MAX)
                source.one(Confirm(to, self.machines[to].one(Deliver(errands.shard, first, raws))))

    # How a shard answers

    def _try(self, call: ShardCall) -> bool:
        """Whether there was an answer. Nothing to fetch, nothing to tell: then the call may wait."""
        if call.shard in self.refusing:
            call.end(self.refusing[call.shard])
            return True
        result = self._answer(self.machines[call.shard], call.shard, call.ask)
        if isinstance(call.ask, Fetch | Await) and not result:
            return False
        if isinstance(call.ask, GetEvents) and call.ask.wait_ms and not result.events:
            return False
        try:
            call.end(wire.decode_result(type(call.ask), wire.reply_to(0, result)))
        except Refusal as refusal:
            call.end(refusal)
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
        if isinstance(ask, FollowAccess):
            return machine.tables.access.news(ask.after, is_current=True)
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
        for call_id, call in list(self.parked.items()):
            if call.shard == shard and (call.is_over() or self._try(call)):
                self.parked.pop(call_id, None)

    def _end_wait(self, call: ShardCall) -> None:
        self.parked.pop(call.call_id, None)
        if not call.is_over():
            if isinstance(call.ask, GetEvents):
                call.end(EventsFound(call.ask.after, []))
            else:
                call.end([] if isinstance(call.ask, Fetch) else False)


def a_call(shard: int, ask: Operation | Query, answer: Coroutine[Any, Any, Any]) -> ShardCall:
    """A call whose outcome is that of a coroutine."""
    return ShardCall(ask, 0.0, 0.0, shard=shard, future=asyncio.ensure_future(answer))


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
