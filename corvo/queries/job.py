"""One job, read from the shard that holds it (linearizable)."""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from corvo.endpoint import Answer, Endpoint, Plan, PlanContext, Query, Read
from corvo.model.job import Job, JobError, SpanMs
from corvo.model.job_extras import Chain, ChainStep, JobExtras
from corvo.model.json_input import to_raw
from corvo.model.lifecycle import STATE_NAMES, WAITING_FOR_A_MOMENT, State
from corvo.model.namespaces import shown_name
from corvo.model.retry import BACKOFF_NAMES
from corvo.model.timestamps import LATEST_NS, to_rfc3339, to_rfc3339_or_none
from corvo.state.tables import Tables

# Outcome of the newest attempt if it did not fail. In any other state a user ended it.
_OUTCOMES = {State.ACTIVE: "active", State.COMPLETED: "completed", State.CANCELLED: "cancelled"}


class JobErrorView(msgspec.Struct, omit_defaults=True):
    id: int
    job_id: str
    attempt: int
    error: str
    created_at: str
    backtrace: str | None = None


class AttemptView(msgspec.Struct, omit_defaults=True):
    """One attempt of a worker, which may still run."""

    attempt: int
    worker_id: str
    outcome: str
    started_at: str | None = None
    ended_at: str | None = None
    error: str | None = None
    backtrace: str | None = None


class StepView(msgspec.Struct):
    queue: str
    payload: Any


class ChainView(msgspec.Struct, omit_defaults=True):
    """The whole chain, as it was enqueued."""

    steps: list[StepView]
    on_failure: StepView | None = None
    on_exit: StepView | None = None


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
    attempts: list[AttemptView] = []
    unique_key: str = ""
    idempotency_key: str = ""
    batch_id: str = ""
    chain_id: str = ""
    chain_step: int | None = None
    chain_config: ChainView | None = None
    schedule_id: str = ""
    expire_at: str | None = None
    waiting_for: list[str] = []  # jobs that must end before this one may run
    hold_reason: str = ""
    claimed_at: str | None = None
    cancel_requested: bool = False
    retry_jitter: float | None = None


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
    """True as soon as one of the queues has a pending job, False at the timeout. Claims nothing."""

    queues: list[str]
    worker_id: str
    hostname: str
    wait_ms: SpanMs

    result: ClassVar[Any] = bool


def job_view(record: JobRecord) -> JobView:
    job = record.job
    view = JobView(
        id=job.id,
        queue=shown_name(job.queue),
        state=STATE_NAMES[job.state],
        payload=msgspec.Raw(job.payload),
        priority=job.priority,
        attempt=job.attempt,
        max_retries=job.max_retries,
        retry_backoff=BACKOFF_NAMES[job.backoff],
        retry_base_delay_ms=job.base_delay_ms,
        retry_max_delay_ms=job.max_delay_ms,
        worker_id=shown_name(job.worker_id),
        hostname=job.hostname,
        tags=to_raw(job.tags),
        progress=to_raw(job.progress),
        checkpoint=to_raw(job.checkpoint),
        result=to_raw(job.result),
        parent_id=job.parent_id,
        lease_expires_at=to_rfc3339(job.lease_expires_at) if job.state == State.ACTIVE else None,
        scheduled_at=to_rfc3339_or_none(_scheduled_at(job)),
        created_at=to_rfc3339(job.created_at),
        started_at=to_rfc3339_or_none(job.started_at),
        completed_at=to_rfc3339_or_none(job.completed_at),
        failed_at=to_rfc3339_or_none(job.failed_at),
        errors=[error_view(error) for error in record.errors],
        attempts=_attempts(record),
    )
    if job.extras is not None:
        _show_bonds(view, job, job.extras)
    return view


def _show_bonds(view: JobView, job: Job, extras: JobExtras) -> None:
    view.unique_key = extras.unique_key
    view.idempotency_key = extras.idempotency_key
    view.batch_id = extras.batch_id
    if extras.chain is not None:
        view.chain_id = extras.chain.id
        view.chain_step = extras.chain.step
        view.chain_config = _chain_view(extras.chain)
    view.schedule_id = extras.schedule_id
    view.expire_at = to_rfc3339_or_none(extras.expire_at)
    view.waiting_for = list(extras.waits_for)
    view.hold_reason = extras.hold_reason
    view.claimed_at = to_rfc3339_or_none(extras.claimed_at)
    view.cancel_requested = job.state == State.ACTIVE and extras.cancel_at > 0
    view.retry_jitter = extras.jitter_permille / 1000 if extras.jitter_permille else None


def _chain_view(chain: Chain) -> ChainView:
    def step(one: ChainStep) -> StepView:
        return StepView(shown_name(one.queue), msgspec.Raw(one.payload))

    return ChainView(
        steps=[step(one) for one in chain.steps],
        on_failure=None if chain.on_failure is None else step(chain.on_failure),
        on_exit=None if chain.on_exit is None else step(chain.on_exit),
    )


def _scheduled_at(job: Job) -> int:
    """Only for a job that waits for this time; the record keeps an old one. A job that waits for others has no time of
    its own, unless it was given one."""
    if job.state not in WAITING_FOR_A_MOMENT:
        return 0
    return job.due_at if job.due_at < LATEST_NS or job.extras is None else job.extras.scheduled_at


def _attempts(record: JobRecord) -> list[AttemptView]:
    """The failed attempts that are kept, and the newest attempt. Notes about other ends have no worker."""
    job = record.job
    failed = [error for error in record.errors if error.worker_id]
    shown = [
        AttemptView(
            attempt=error.attempt,
            worker_id=shown_name(error.worker_id),
            outcome="interrupted" if error.is_interrupted else "failed",
            started_at=to_rfc3339_or_none(error.started_at),
            ended_at=to_rfc3339(error.created_at),
            error=error.error,
            backtrace=error.backtrace or None,
        )
        for error in failed
    ]
    newest = (job.attempt, job.started_at)
    if job.attempt and job.worker_id and all((error.attempt, error.started_at) != newest for error in failed):
        ended_at = {State.COMPLETED: job.completed_at, State.CANCELLED: job.failed_at}.get(job.state, 0)
        shown.append(
            AttemptView(
                attempt=job.attempt,
                worker_id=shown_name(job.worker_id),
                outcome=_OUTCOMES.get(job.state, "interrupted"),
                started_at=to_rfc3339_or_none(job.started_at),
                ended_at=to_rfc3339_or_none(ended_at),
            )
        )
    return shown


def error_view(error: JobError) -> JobErrorView:
    return JobErrorView(
        id=error.claim,
        job_id=error.job_id,
        attempt=error.attempt,
        error=error.error,
        backtrace=error.backtrace or None,
        created_at=to_rfc3339(error.created_at),
    )


class JobQuery(msgspec.Struct, forbid_unknown_fields=True):
    reveal: Annotated[
        bool, Meta(description="show values with secret names too; needs the permission `payloads:reveal`")
    ] = False


def _plan(context: PlanContext, query: JobQuery, job_id: str) -> Plan:
    def conclude(results: list[Any]) -> Answer:
        return Answer(200, job_view(results[0]))

    return Plan([(context.shard_of_job(job_id), GetJob(job_id))], conclude)


ENDPOINTS = (
    Endpoint(
        name="get_job",
        access="jobs:read",
        method="GET",
        path="/jobs/{job_id}",
        summary="One job with the history of its failures",
        query=JobQuery,
        answers={200: JobView},
        refusals=("JOB_NOT_FOUND",),
        plan=_plan,
    ),
)
