"""Batches in tests: their ids, members on every one of three shards, and how each of them may end."""

from typing import Any

from corvo.model.job import Job
from corvo.model.job_extras import ChainStep, JobExtras, Outcome
from corvo.model.sharding import shard_of_queue
from corvo.ops.batches.add_to_batch import AddToBatch
from corvo.ops.jobs.cancel import Cancel
from corvo.ops.jobs.delete import Delete
from corvo.rules.batches import Batch, BatchSpec, find_batch
from corvo.rules.job_creation import NewJob
from tests.support.builders import SECOND, ack, fail, fetch, job_id
from tests.support.shards import Shards

SHARDS = 3
DONE = BatchSpec(ChainStep("done", b'{"album": 42}'), ChainStep("well"), ChainStep("ill"), "an album")
WAYS = {
    "complete": Outcome.COMPLETED,
    "fail": Outcome.DEAD,
    "expire": Outcome.DEAD,
    "cancel": Outcome.CANCELLED,
    "delete": Outcome.DELETED,
}


def batch_id(number: int = 1, shard: int = 0) -> str:
    return f"s{shard:02d}_batch_{number:026d}"


def shard_of(number: int) -> int:
    """Each member has a queue of its own, so that a worker can be given this very one."""
    return shard_of_queue(f"m{number}", SHARDS)


def member_id(number: int) -> str:
    return job_id(number, shard_of(number))


def member(number: int, **extras: Any) -> NewJob:
    return NewJob(member_id(number), f"m{number}", b"{}", max_retries=1, extras=JobExtras(**extras) if extras else None)


ON_EACH_SHARD = tuple(next(n for n in range(1, 99) if shard_of(n) == shard) for shard in range(SHARDS))


def add(
    *jobs: NewJob, ask: int = 1, batch: str = batch_id(), create: BatchSpec | None = None, seal: bool = False
) -> AddToBatch:
    return AddToBatch(ask, batch, create, seal, list(jobs))


def a_batch(shards: Shards, *numbers: int, seal: bool = True, expiring: tuple[int, ...] = ()) -> None:
    """Batch 1 on shard 0 with these members."""
    jobs = [member(number, expire_after_ms=1_000) if number in expiring else member(number) for number in numbers]
    shards.one(0, add(*jobs, create=DONE, seal=seal))


def end(shards: Shards, number: int, way: str) -> None:
    shard, job = shard_of(number), member_id(number)
    match way:
        case "complete":
            shards.one(shard, fetch(f"m{number}", claim=number))
            shards.one(shard, ack(job, ask=number))
        case "fail":
            shards.one(shard, fetch(f"m{number}", claim=number))
            shards.one(shard, fail(job, ask=number))
        case "expire":
            shards.pass_time(2 * SECOND)
        case "cancel":
            shards.one(shard, Cancel(number, job))
        case "delete":
            shards.one(shard, Delete(job))


def the_batch(shards: Shards, batch: str = batch_id()) -> Batch:
    found = find_batch(shards.of_id(batch).tables, batch)
    assert found is not None, batch
    return found


def callbacks(shards: Shards) -> list[Job]:
    """All jobs on the queues that `DONE` names, wherever they are."""
    jobs = [job for machine in shards.machines for job in machine.jobs()]
    return sorted((job for job in jobs if job.queue in ("done", "well", "ill")), key=lambda job: job.queue)
