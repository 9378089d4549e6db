"""Ids outside the queue scope of a key: found before its request is planned, and then unknown to it.

Only keys with a scope pay for it: one more question to the shards of the ids. A job that is moved between the question
and the operation was in the scope when it was asked for.
"""

from collections.abc import Iterable

from corvo.endpoint import PlanContext, spread
from corvo.model import sharding
from corvo.model.errors import Refusal, Refused
from corvo.model.limits import BATCH_ID, BULK_ID, JOBS_PER_REQUEST_MAX
from corvo.queries.sight import FindOutside, FindQueues
from corvo.rules.bulk import BULK_SHARD
from gateway.shards.client import Shards
from gateway.shards.moved_jobs import ask_all


async def outside(
    shards: Shards, context: PlanContext, ids: Iterable[str], schedules: Iterable[str] = ()
) -> frozenset[str]:
    """Those of the ids that this context must not know. `schedules` are names, or ids."""
    jobs = [one for one in dict.fromkeys(ids) if context.find_shard_of_job(one) is not None]
    hidden = await _jobs_outside(shards, context, jobs)
    calls = _calls(context, set(ids) - set(jobs), schedules)
    found = await ask_all(shards, list(calls.items()))
    return hidden.union(*found)


async def _jobs_outside(shards: Shards, context: PlanContext, job_ids: list[str]) -> frozenset[str]:
    hidden: set[str] = set()
    for first in range(0, len(job_ids), JOBS_PER_REQUEST_MAX):
        some = job_ids[first : first + JOBS_PER_REQUEST_MAX]
        groups = spread(some, context.find_shard_of_job)
        parts = [[some[number] for number in numbers] for numbers in groups.values()]
        found = await ask_all(shards, [(shard, FindQueues(part)) for shard, part in zip(groups, parts, strict=True)])
        for part, queues in zip(parts, found, strict=True):
            hidden |= {one for one, queue in zip(part, queues, strict=True) if not _holds(context, queue)}
    return frozenset(hidden)


def _holds(context: PlanContext, queue: str | Refused) -> bool:
    if isinstance(queue, str):
        return context.reach.holds(queue)
    if queue.code == "JOB_NOT_FOUND":
        return False
    raise queue.to_refusal()  # whose job it is cannot be told now


def _calls(context: PlanContext, ids: Iterable[str], schedules: Iterable[str]) -> dict[int, FindOutside]:
    calls: dict[int, FindOutside] = {}

    def of_shard(shard: int) -> FindOutside:
        return calls.setdefault(shard, FindOutside(context.reach, [], [], []))

    count, ending = context.shard_count, context.id_ending
    for one in ids:
        batch = sharding.find_shard_of_id(BATCH_ID, one, count, ending)
        if batch is not None:
            of_shard(batch).batch_ids.append(one)
        elif BULK_ID.fullmatch(one):
            of_shard(BULK_SHARD).bulk_ids.append(one)
    for name in schedules:
        try:
            of_shard(context.shard_of_schedule(name)).schedules.append(name)
        except Refusal:
            continue  # no schedule can have it: the plan says so
    return calls
