"""Builders with defaults, so that a test writes only what matters to it.

Jobs are named by small numbers: `job_id(1)` is the id of job 1, and every builder takes the number or the id.
"""

from collections.abc import Sequence
from typing import Any

from corvo.endpoint import PlanContext
from corvo.model.ids import Minter
from corvo.model.job import Job, Priority
from corvo.model.lifecycle import State
from corvo.model.retry import Backoff
from corvo.ops.jobs.ack import Ack, AckItem
from corvo.ops.jobs.cancel import Cancel
from corvo.ops.jobs.enqueue import Enqueue
from corvo.ops.jobs.fail import Fail, FailItem
from corvo.ops.jobs.fetch import Fetch
from corvo.ops.jobs.heartbeat import Beat, Heartbeat
from corvo.ops.upkeep.promote import Promote
from corvo.ops.upkeep.reclaim import Reclaim
from corvo.ops.upkeep.ring import Ring
from corvo.rules.job_creation import NewJob

MS = 1_000_000
SECOND = 1_000 * MS
NOW = 1_767_225_600 * SECOND  # 2026-01-01T00:00:00Z


def job_id(job: int | str, shard: int = 0) -> str:
    return job if isinstance(job, str) else f"s{shard:02d}_job_{job:026d}"


def a_job(job: int | str = 1, **fields: Any) -> Job:
    defaults: dict[str, Any] = {
        "queue": "mail",
        "state": State.PENDING,
        "priority": Priority.NORMAL,
        "payload": b"{}",
        "max_retries": 3,
        "backoff": Backoff.EXPONENTIAL,
        "base_delay_ms": 5_000,
        "max_delay_ms": 600_000,
        "created_at": NOW,
    }
    return Job(id=job_id(job), **(defaults | fields))


def new_job(job: int | str = 1, queue: str = "mail", payload: bytes = b"{}", **fields: Any) -> NewJob:
    return NewJob(id=job_id(job), queue=queue, payload=payload, **fields)


def enqueue(*jobs: int | str | NewJob, **fields: Any) -> Enqueue:
    return Enqueue([job if isinstance(job, NewJob) else new_job(job, **fields) for job in jobs])


def fetch(
    *queues: str, worker: str = "w1", claim: int = 1, count: int = 1, lease_ms: int = 60_000, **rest: Any
) -> Fetch:
    return Fetch(list(queues) or ["mail"], worker, rest.pop("hostname", "host"), claim, count, lease_ms, **rest)


def ack(*jobs: int | str, ask: int = 1, token: int = 0, **fields: Any) -> Ack:
    return Ack(ask, [AckItem(job_id(job), token, **fields) for job in jobs])


def fail(*jobs: int | str, ask: int = 1, token: int = 0, **fields: Any) -> Fail:
    return Fail(ask, [FailItem(job_id(job), token, **fields) for job in jobs])


def heartbeat(*jobs: int | str, token: int = 0, **fields: Any) -> Heartbeat:
    return Heartbeat([Beat(job_id(job), token, **fields) for job in jobs])


def cancel(job: int | str = 1, ask: int = 1, grace_ms: int = 0) -> Cancel:
    return Cancel(ask, job_id(job), grace_ms)


def promote() -> Promote:
    return Promote()


def reclaim() -> Reclaim:
    return Reclaim()


def ring() -> Ring:
    return Ring()


class Clock:
    """Stands still unless told: each reading is the next of `readings`, the last one for ever."""

    def __init__(self, readings: Sequence[int] = (NOW,)) -> None:
        self._readings = list(readings)

    def __call__(self) -> int:
        return self._readings.pop(0) if len(self._readings) > 1 else self._readings[0]


def an_asking(shard_count: int = 4, payload_bytes_max: int = 1_000, now: int = NOW) -> PlanContext:
    clock = Clock([now])
    return PlanContext(shard_count, payload_bytes_max, Minter(clock, 0xABCDE), clock, dice=bytes)
