"""One job, read from the shard that holds it: never older than the last answer anybody got about it."""

from typing import Any, ClassVar

import msgspec

from corvo.job import Job, JobError, SpanMs
from corvo.json_edge import to_raw
from corvo.lifecycle import STATE_NAMES, State
from corvo.moments import to_rfc3339, to_rfc3339_or_none
from corvo.ops.operation import Answer, Asking, Endpoint, Plan, Query, Read
from corvo.retry import BACKOFF_NAMES
from corvo.sharding import shard_of_job
from corvo.state.tables import Tables


class JobErrorView(msgspec.Struct, omit_defaults=True):
    id: int
    job_id: str
    attempt: int
    error: str
    created_at: str
    backtrace: str | None = None


class JobView(msgspec.Struct, omit_defaults=True):
    """A job as clients see it. Optional fields are left out when empty."""

    id: str
    queue: str
    state: str
    payload: Any
    priority: int
    attempt: int
    max_retries: int
    retry_backoff: str
    retry_base_delay_ms: int
    retry_max_delay_ms: int
    created_at: str
    worker_id: str = ""
    hostname: str = ""
    tags: Any = None
    progress: Any = None
    checkpoint: Any = None
    result: Any = None
    parent_id: str = ""
    lease_expires_at: str | None = None
    scheduled_at: str | None = None
    started_at: str | None = None
    completed_at: str | None = None
    failed_at: str | None = None
    errors: list[JobErrorView] = []


class JobRecord(msgspec.Struct, array_like=True):
    job: Job
    errors: list[JobError]


class GetJob(Read, tag=1001):
    job_id: str

    result: ClassVar[Any] = JobRecord

    def read(self, tables: Tables) -> JobRecord:
        job = tables.require_job(self.job_id)
        return JobRecord(job, tables.errors(job.id))


class Await(Query, tag=1002):
    """Answered True as soon as one of the queues has a pending job, False when the time is over. Claims nothing."""

    queues: list[str]
    worker_id: str
    hostname: str
    wait_ms: SpanMs

    result: ClassVar[Any] = bool


def job_view(record: JobRecord) -> JobView:
    job = record.job
    return JobView(
        id=job.id,
        queue=job.queue,
        state=STATE_NAMES[job.state],
        payload=msgspec.Raw(job.payload),
        priority=job.priority,
        attempt=job.attempt,
        max_retries=job.max_retries,
        retry_backoff=BACKOFF_NAMES[job.backoff],
        retry_base_delay_ms=job.base_delay_ms,
        retry_max_delay_ms=job.max_delay_ms,
        worker_id=job.worker_id,
        hostname=job.hostname,
        tags=to_raw(job.tags),
        progress=to_raw(job.progress),
        checkpoint=to_raw(job.checkpoint),
        result=to_raw(job.result),
        parent_id=job.parent_id,
        lease_expires_at=to_rfc3339(job.lease_expires_at) if job.state == State.ACTIVE else None,
        scheduled_at=to_rfc3339_or_none(job.due_at),
        created_at=to_rfc3339(job.created_at),
        started_at=to_rfc3339_or_none(job.started_at),
        completed_at=to_rfc3339_or_none(job.completed_at),
        failed_at=to_rfc3339_or_none(job.failed_at),
        errors=[error_view(error) for error in record.errors],
    )


def error_view(error: JobError) -> JobErrorView:
    return JobErrorView(
        id=error.claim,
        job_id=error.job_id,
        attempt=error.attempt,
        error=error.error,
        backtrace=error.backtrace or None,
        created_at=to_rfc3339(error.created_at),
    )


def _plan(asking: Asking, body: None, job_id: str) -> Plan:
    def conclude(results: list[Any]) -> Answer:
        return Answer(200, job_view(results[0]))

    return Plan([(shard_of_job(job_id, asking.shard_count), GetJob(job_id))], conclude)


ENDPOINTS = (
    Endpoint(
        name="get_job",
        method="GET",
        path="/jobs/{job_id}",
        summary="One job with the history of its failures",
        answers={200: JobView},
        refusals=("JOB_NOT_FOUND",),
        plan=_plan,
    ),
)
