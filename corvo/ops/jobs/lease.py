"""Who may speak for an active job: the rules that ack, fail and heartbeat share."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from corvo.endpoint import Answer, Operation, Plan, PlanContext, gather, spread
from corvo.model.errors import Refused
from corvo.model.job import Job
from corvo.model.lifecycle import STATE_NAMES, State
from corvo.model.sharding import find_shard_of_job
from corvo.state.tables import Tables

_ACTIVE = State.ACTIVE  # to look up an enum's member is a call, and every job comes this way


class Leased(Protocol):
    """An item that names a job and the lease that it speaks for."""

    job_id: str
    lease_token: int


Item = TypeVar("Item", bound=Leased)


def holds(job: Job, lease_token: int) -> bool:
    """Token 0 means that none was sent: older clients then speak for whatever claim is live."""
    return job.state == _ACTIVE and lease_token in (0, job.lease_token)


def lost(tables: Tables, job: Job | None, job_id: str, lease_token: int) -> Refused:
    """Why the caller may not speak for the job; for one that lives on another shard by now, where that is."""
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
    """For an id that no shard can have given out."""
    return Refused("JOB_NOT_FOUND", f"no job has the id {job_id!r}")


def plan_each(
    context: PlanContext,
    items: list[Item],
    operation: Callable[[list[Item]], Operation],
    answer: Callable[[list[Any]], Answer],
) -> Plan:
    """Items for jobs of any shard: each shard is asked for its own, and every item is answered for itself."""
    groups = spread(items, lambda item: find_shard_of_job(item.job_id, context.shard_count))
    calls = [(shard, operation([items[number] for number in numbers])) for shard, numbers in groups.items()]

    def conclude(results: list[Any]) -> Answer:
        return answer(gather([stranger(item.job_id) for item in items], groups, results))

    return Plan([*calls], conclude)
