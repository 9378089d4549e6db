"""Which worker may report on an active job: shared by ack, fail and heartbeat."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from corvo.endpoint import Answer, Operation, Plan, PlanContext, gather, spread
from corvo.model.errors import Refused
from corvo.model.job import Job
from corvo.model.lifecycle import STATE_NAMES, State
from corvo.state.tables import Tables

_ACTIVE = State.ACTIVE  # a member lookup on an enum is a call, and this is a hot path


class Leased(Protocol):
    """An item with a job and the lease under which it is reported."""

    job_id: str
    lease_token: int


Item = TypeVar("Item", bound=Leased)


def holds(job: Job, lease_token: int) -> bool:
    """Token 0 means that none was sent: such a report of an older client applies to the current claim."""
    return job.state == _ACTIVE and lease_token in (0, job.lease_token)


def lost(tables: Tables, job: Job | None, job_id: str, lease_token: int) -> Refused:
    """Why the caller may not report on the job; for a job that moved to another shard, where it is."""
    if job is None:
        refusal = tables.missing(job_id)
        return refusal.to_refused()
    state = STATE_NAMES[job.state]
    if lease_token:
        return Refused(
            "LEASE_LOST",
            f"lease {lease_token} of job {job_id} is over: the job is {state}, its newest lease {job.lease_token}",
        )
    return Refused("WRONG_STATE", f"job {job_id} is {state}, not active")


def stranger(job_id: str) -> Refused:
    """For an id that cannot exist."""
    return Refused("JOB_NOT_FOUND", f"no job has the id {job_id!r}")


def plan_each(
    context: PlanContext,
    items: list[Item],
    operation: Callable[[list[Item]], Operation],
    answer: Callable[[list[Any]], Answer],
) -> Plan:
    """The plan for items of any shard: each shard gets its own items, and each item has its own result."""
    groups = spread(items, lambda item: context.find_shard_of_job(item.job_id))
    calls = [(shard, operation([items[number] for number in numbers])) for shard, numbers in groups.items()]

    def conclude(results: list[Any]) -> Answer:
        return answer(gather([stranger(item.job_id) for item in items], groups, results))

    return Plan([*calls], conclude)
