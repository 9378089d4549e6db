"""Asks for a job on the shard that has it. A job that moved to another shard keeps its id, which names the old one.

The old shard refuses and says where the job is (`Refusal.moved`): on another shard, or still under way to it. Both are
handled here, for whole calls and for the items of a list: ask the other shard, or ask again after a pause. A caller
never sees `JOB_MOVED`, and `SHARD_UNAVAILABLE` only when the move takes too long.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from corvo.endpoint import Operation, Query
from corvo.model.errors import Moved, Refusal, Refused
from corvo.ops.bulk.act_on_jobs import ActOnJobs
from corvo.ops.jobs.ack import Ack
from corvo.ops.jobs.fail import Fail
from corvo.ops.jobs.heartbeat import Heartbeat
from corvo.queries.jobs import GetJobs
from corvo.queries.sight import FindQueues
from gateway.shards.client import ShardCall, Shards

HOPS_MAX = 8
WAITS_MAX = 20

# What is refused item by item: the field that holds the items.
_ITEMS: dict[type[Operation] | type[Query], str] = {
    Ack: "items",
    Fail: "items",
    Heartbeat: "beats",
    ActOnJobs: "job_ids",
    GetJobs: "job_ids",
    FindQueues: "job_ids",
}
_LOST = Refused("SHARD_UNAVAILABLE", "the job is being moved again; send the request again", 1_000)


async def ask_all(shards: Shards, calls: Sequence[tuple[int, Operation | Query]]) -> list[Any]:
    """Results in the order of the calls. The first refusal is raised, after every call has ended."""
    outcomes = await settle(shards, [shards.ask(shard, ask) for shard, ask in calls])
    for outcome in outcomes:
        if isinstance(outcome, Refusal):
            raise outcome
    return outcomes


async def settle(shards: Shards, calls: list[ShardCall]) -> list[Any]:
    """The outcomes of calls that were asked already, each a result or a `Refusal`, wherever the jobs are by now."""
    outcomes: list[Any] = []
    for call in calls:
        try:
            outcome = await call
        except Refusal as refusal:
            outcome = await _follow(shards, call, refusal)
        else:
            if type(call.ask) in _ITEMS and _has_moved(outcome):
                outcome = await _follow_items(shards, call, outcome)
        outcomes.append(outcome)
    return outcomes


def _has_moved(items: list[Any]) -> bool:
    refused = [item for item in items if type(item) is Refused]
    return any(_moved(each) is not None for each in refused)


def _moved(refusal: Refusal | Refused) -> Moved | None:
    if refusal.moved is None and refusal.code == "JOB_MOVED" and refusal.message.isdecimal():
        return Moved(int(refusal.message))  # a shard of a former version says it this way
    return refusal.moved


async def _follow(shards: Shards, call: ShardCall, refusal: Refusal) -> Any:
    """A refusal that says where the job is leads there; any other stands."""
    shard, hops, waits = call.shard, 0, 0
    while (moved := _moved(refusal)) is not None:
        if moved.is_under_way:
            await asyncio.sleep(refusal.retry_after_ms / 1000)
            waits += 1
        else:
            shard = moved.shard
            hops += 1
        if hops > HOPS_MAX or waits > WAITS_MAX:
            return _LOST.to_refusal()
        try:
            return await shards.ask(shard, call.ask)
        except Refusal as again:
            refusal = again
    return refusal


async def _follow_items(shards: Shards, call: ShardCall, result: list[Any]) -> list[Any]:
    field = _ITEMS[type(call.ask)]
    items = getattr(call.ask, field)
    places = dict.fromkeys(range(len(items)), call.shard)
    hops = waits = 0
    while hops <= HOPS_MAX and waits <= WAITS_MAX:
        elsewhere = _elsewhere(result)
        if not elsewhere:
            return result
        arrived = {n: moved.shard for n, moved in elsewhere.items() if not moved.is_under_way}
        if arrived:
            places.update(arrived)
            hops += 1
        else:
            await asyncio.sleep(max(result[n].retry_after_ms for n in elsewhere) / 1000)
            waits += 1
        for target in sorted({places[n] for n in elsewhere}):
            numbers = [n for n in elsewhere if places[n] == target]
            part = msgspec.structs.replace(call.ask, **{field: [items[n] for n in numbers]})
            try:
                outcomes = await shards.ask(target, part)
            except Refusal as refusal:  # what was answered already must not be lost with it
                outcomes = [refusal.to_refused()] * len(numbers)
            for n, outcome in zip(numbers, outcomes, strict=True):
                result[n] = outcome
    lost = _elsewhere(result)
    return [_LOST if number in lost else item for number, item in enumerate(result)]


def _elsewhere(result: list[Any]) -> dict[int, Moved]:
    """Where the jobs are whose items were refused because they have moved, by item number."""
    found = {n: _moved(item) for n, item in enumerate(result) if type(item) is Refused}
    return {n: moved for n, moved in found.items() if moved is not None}
