"""Asks for a job on the shard that has it. A job that moved to another shard keeps its id, which names the old one.

The old shard refuses and says where the job is (`Refusal.moved`): on another shard, or still under way to it. Both are
handled here, for single asks and for the items of a list: ask the other shard, or ask again after a pause. A caller
never sees `JOB_MOVED`, and `SHARD_UNAVAILABLE` only when the move takes too long.
"""

import asyncio
from typing import Any

import msgspec

from corvo.endpoint import Operation, Query
from corvo.model.errors import Moved, Refusal, Refused
from corvo.ops.bulk.act_on_jobs import ActOnJobs
from corvo.ops.jobs.ack import Ack
from corvo.ops.jobs.fail import Fail
from corvo.ops.jobs.heartbeat import Heartbeat
from corvo.queries.jobs import GetJobs
from gateway.shards.client import Shards

HOPS_MAX = 8
WAITS_MAX = 20

# What is refused item by item: the field that holds the items.
_ITEMS: dict[type[Operation] | type[Query], str] = {
    Ack: "items",
    Fail: "items",
    Heartbeat: "beats",
    ActOnJobs: "job_ids",
    GetJobs: "job_ids",
}
_LOST = Refused("SHARD_UNAVAILABLE", "the job moves from queue to queue; send the request again", 1_000)


async def ask_all(shards: Shards, calls: list[tuple[int, Operation | Query]]) -> list[Any]:
    """As `Shards.ask_all`, wherever the jobs are by now."""
    try:
        results = await shards.ask_all(calls)
    except Refusal as refusal:
        if _moved(refusal) is None:
            raise
        results = [await _follow(shards, shard, ask) for shard, ask in calls]  # each is safe to repeat
    return await settle(shards, calls, results) if any(type(ask) in _ITEMS for _, ask in calls) else results


async def settle(shards: Shards, calls: Any, results: list[Any]) -> list[Any]:
    """The results of these calls, with those of moved jobs in their places. Nearly always there is nothing to do."""
    for place, ((shard, ask), result) in enumerate(zip(calls, results, strict=True)):
        if type(ask) in _ITEMS and isinstance(result, list):
            for item in result:
                if type(item) is Refused and _moved(item) is not None:
                    results[place] = await _follow_items(shards, shard, ask, result)
                    break
    return results


def _moved(refusal: Refusal | Refused) -> Moved | None:
    if refusal.moved is None and refusal.code == "JOB_MOVED" and refusal.message.isdecimal():
        return Moved(int(refusal.message))  # a shard of a former version says it this way
    return refusal.moved


async def _follow(shards: Shards, shard: int, ask: Operation | Query) -> Any:
    hops = waits = 0
    while hops <= HOPS_MAX and waits <= WAITS_MAX:
        try:
            return await shards.ask(shard, ask)
        except Refusal as refusal:
            moved = _moved(refusal)
            if moved is None:
                raise
            if moved.is_under_way:
                await asyncio.sleep(refusal.retry_after_ms / 1000)
                waits += 1
            else:
                shard = moved.shard
                hops += 1
    raise _LOST.to_refusal()


async def _follow_items(shards: Shards, shard: int, ask: Operation | Query, result: list[Any]) -> list[Any]:
    field = _ITEMS[type(ask)]
    items = getattr(ask, field)
    places = dict.fromkeys(range(len(items)), shard)
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
            part = msgspec.structs.replace(ask, **{field: [items[n] for n in numbers]})
            for n, outcome in zip(numbers, await _ask_items(shards, target, part, len(numbers)), strict=True):
                result[n] = outcome
    lost = _elsewhere(result)
    return [_LOST if number in lost else item for number, item in enumerate(result)]


def _elsewhere(result: list[Any]) -> dict[int, Moved]:
    """Where the jobs are whose items were refused because they have moved, by item number."""
    found = {n: _moved(item) for n, item in enumerate(result) if type(item) is Refused}
    return {n: moved for n, moved in found.items() if moved is not None}


async def _ask_items(shards: Shards, shard: int, ask: Operation | Query, count: int) -> list[Any]:
    """What was answered already must not be lost because another shard cannot be reached."""
    try:
        return list(await shards.ask(shard, ask))
    except Refusal as refusal:
        return [refusal.to_refused()] * count
