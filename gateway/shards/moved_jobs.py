"""Asking for a job where it lives: one that has moved to another shard keeps its id, which names the old one.

The old shard answers with the number of the new one (`JOB_MOVED`), or, while the job is on its way, that it should be
asked again in a moment. Both are settled here, for a single question as for the items of a list; no caller ever sees
the first, and the second only when it lasts.
"""

import asyncio
from typing import Any

import msgspec

from corvo.endpoint import Operation, Query
from corvo.model.errors import Refusal, Refused
from corvo.ops.bulk.act_on_jobs import ActOnJobs
from corvo.ops.jobs.ack import Ack
from corvo.ops.jobs.fail import Fail
from corvo.ops.jobs.heartbeat import Heartbeat
from corvo.queries.jobs import GetJobs
from gateway.shards.client import Shards

HOPS_MAX = 8
WAITS_MAX = 20
PATIENCE_MS_MAX = 100  # a shard that is away asks for more, and that is for the caller to decide

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
        if not _leads_on(refusal):
            raise
        results = [await _follow(shards, shard, ask) for shard, ask in calls]  # each is safe to repeat
    return await settle(shards, calls, results) if any(type(ask) in _ITEMS for _, ask in calls) else results


async def settle(shards: Shards, calls: Any, results: list[Any]) -> list[Any]:
    """The results of these calls, with those of moved jobs in their places. Nearly always there is nothing to do."""
    for place, ((shard, ask), result) in enumerate(zip(calls, results, strict=True)):
        if type(ask) in _ITEMS and isinstance(result, list):
            for item in result:
                if type(item) is Refused and _leads_on(item):
                    results[place] = await _follow_items(shards, shard, ask, result)
                    break
    return results


def _leads_on(refusal: Refusal | Refused) -> bool:
    if refusal.code == "JOB_MOVED":
        return True
    return refusal.code == "SHARD_UNAVAILABLE" and 0 < refusal.retry_after_ms <= PATIENCE_MS_MAX


async def _follow(shards: Shards, shard: int, ask: Operation | Query) -> Any:
    hops = waits = 0
    while hops <= HOPS_MAX and waits <= WAITS_MAX:
        try:
            return await shards.ask(shard, ask)
        except Refusal as refusal:
            if not _leads_on(refusal):
                raise
            if refusal.code == "JOB_MOVED":
                shard = int(refusal.message)
                hops += 1
            else:
                await asyncio.sleep(refusal.retry_after_ms / 1000)
                waits += 1
    raise _LOST.to_refusal()


async def _follow_items(shards: Shards, shard: int, ask: Operation | Query, result: list[Any]) -> list[Any]:
    field = _ITEMS[type(ask)]
    items = getattr(ask, field)
    places = dict.fromkeys(range(len(items)), shard)
    hops = waits = 0
    while hops <= HOPS_MAX and waits <= WAITS_MAX:
        elsewhere = {n: item for n, item in enumerate(result) if type(item) is Refused and _leads_on(item)}
        if not elsewhere:
            return result
        moved = {n: int(item.message) for n, item in elsewhere.items() if item.code == "JOB_MOVED"}
        if moved:
            places.update(moved)
            hops += 1
        else:
            await asyncio.sleep(max(item.retry_after_ms for item in elsewhere.values()) / 1000)
            waits += 1
        for target in sorted({places[n] for n in elsewhere}):
            numbers = [n for n in elsewhere if places[n] == target]
            part = msgspec.structs.replace(ask, **{field: [items[n] for n in numbers]})
            for n, outcome in zip(numbers, await _ask_items(shards, target, part, len(numbers)), strict=True):
                result[n] = outcome
    return [_LOST if type(item) is Refused and _leads_on(item) else item for item in result]


async def _ask_items(shards: Shards, shard: int, ask: Operation | Query, count: int) -> list[Any]:
    """What was answered already must not be lost because another shard cannot be reached."""
    try:
        return list(await shards.ask(shard, ask))
    except Refusal as refusal:
        return [Refused(refusal.code, refusal.message, refusal.retry_after_ms)] * count
