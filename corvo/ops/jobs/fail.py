"""Fail: a worker reports that an attempt failed.

With attempts left the job runs again after its backoff; with none left it is dead and kept for inspection. The worker
may set the delay (`retry_after`), stop further attempts (`retry: false`), or postpone the job without using an attempt
(`snooze`).
"""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from corvo.endpoint import (
    Answer,
    Body,
    Endpoint,
    Operation,
    Plan,
    PlanContext,
)
from corvo.model.errors import Refused, invalid
from corvo.model.job import Count, Job, JobError, JobId, RequestId, SpanMs
from corvo.model.lifecycle import STATE_NAMES, State, Verb
from corvo.model.limits import BACKTRACE_CHARS_MAX, ERROR_CHARS_MAX, FETCH_COUNT_MAX
from corvo.model.retry import attempts_remaining, delay_ms, shortened
from corvo.model.timestamps import to_rfc3339_or_none
from corvo.ops.job_terms import DurationMs, duration_ms
from corvo.ops.jobs.ack import LeaseToken
from corvo.ops.jobs.lease import holds, lost, plan_each
from corvo.state.tables import Tables
from corvo.state.transitions import change


class FailBody(Body):
    error: Annotated[str, Meta(max_length=ERROR_CHARS_MAX)] = ""
    backtrace: Annotated[str, Meta(max_length=BACKTRACE_CHARS_MAX)] | None = None
    lease_token: LeaseToken | None = None
    retry: Annotated[bool, Meta(description="false: dead at once, even with attempts left")] = True
    retry_after: Annotated[str | None, Meta(description="delay before the next attempt, such as `90s`")] = None
    retry_after_ms: DurationMs | None = None
    snooze: Annotated[str | None, Meta(description="postpone the job by this duration; uses no attempt")] = None
    snooze_ms: DurationMs | None = None


class FailBatchItem(FailBody, kw_only=True):
    job_id: JobId


class FailBatchBody(Body):
    fails: Annotated[list[FailBatchItem], Meta(min_length=1, max_length=FETCH_COUNT_MAX)]


class Failed(msgspec.Struct, omit_defaults=True):
    status: str
    attempts_remaining: int
    next_attempt_at: str | None = None


class FailOutcome(msgspec.Struct, omit_defaults=True):
    """The new state of the job, or the error."""

    status: str | None = None
    attempts_remaining: int | None = None
    next_attempt_at: str | None = None
    error: str | None = None
    code: str | None = None


class FailedBatch(msgspec.Struct):
    failed: int
    results: list[FailOutcome]


class FailItem(msgspec.Struct, array_like=True, gc=False):
    job_id: str
    lease_token: Count = 0
    error: str = ""
    backtrace: str = ""
    is_final: bool = False
    delay_ms: SpanMs | None = None  # instead of the backoff's
    snooze_ms: SpanMs | None = None


class Failure(msgspec.Struct, array_like=True, tag=1, gc=False):
    state: State
    attempts_remaining: int
    next_attempt_at: int


class Fail(Operation, tag=4):
    ask_id: RequestId
    items: list[FailItem]

    result: ClassVar[Any] = list[Failure | Refused]

    def apply(self, tables: Tables) -> list[Failure | Refused]:
        return [self._fail(tables, item) for item in self.items]

    def _fail(self, tables: Tables, item: FailItem) -> Failure | Refused:
        job = tables.find_job(item.job_id)
        if job is not None:
            if job.settled_id == self.ask_id:
                # Checked before the lease: a request without a token would otherwise apply to the next worker's claim.
                return _failure(job, item)
            if holds(job, item.lease_token):
                job.settled_id = self.ask_id
                fail_attempt(tables, job, item)
                return _failure(job, item)
        return lost(tables, job, item.job_id, item.lease_token)


def fail_attempt(tables: Tables, job: Job, item: FailItem) -> None:
    """The running attempt of an active job has failed: record it, then retry later or give up."""
    now = tables.now
    is_unwanted = job.extras is not None and job.extras.cancel_at > 0
    if item.snooze_ms is not None and not is_unwanted:
        job.attempt -= 1
        job.due_at = now + item.snooze_ms * 1_000_000
        change(tables, job, Verb.SNOOZE)
        return
    record_failure(tables, job, item.error, item.backtrace)
    if is_unwanted:  # a cancel asked its worker to stop
        job.failed_at = now
        change(tables, job, Verb.CANCEL)
    elif not item.is_final and attempts_remaining(job.max_retries, job.attempt):
        job.due_at = now + 1_000_000 * _delay_ms(job, item.delay_ms)
        change(tables, job, Verb.RETRY_LATER)
    else:
        job.failed_at = now
        change(tables, job, Verb.GIVE_UP)


def record_failure(tables: Tables, job: Job, error: str, backtrace: str) -> None:
    tables.queue(job.queue).failed += 1
    tables.add_error(
        JobError(
            job.id,
            job.lease_token,
            job.attempt,
            error,
            backtrace,
            tables.now,
            job.worker_id,
            job.started_at,
            queue=job.queue,
        )
    )


def _delay_ms(job: Job, asked_ms: int | None) -> int:
    if asked_ms is not None:
        return asked_ms
    delay = delay_ms(job.backoff, job.base_delay_ms, job.max_delay_ms, job.attempt)
    if job.extras is not None and job.extras.jitter_permille:
        return shortened(delay, job.extras.jitter_permille, job.id, job.attempt)
    return delay


def _failure(job: Job, item: FailItem) -> Failure:
    """The result of a fail, also for a repeated request, when the job may have changed since."""
    if job.state in (State.DEAD, State.CANCELLED):
        return Failure(job.state, 0, 0)
    attempt = job.attempt - 1 if job.state == State.ACTIVE else job.attempt
    state = State.RETRYING if item.snooze_ms is None else State.SCHEDULED
    return Failure(state, attempts_remaining(job.max_retries, attempt), job.due_at)


def fail_item(job_id: str, body: FailBody, at: str = "") -> FailItem:
    delay = duration_ms(body.retry_after, body.retry_after_ms, -1, f"{at}retry_after")
    snooze = duration_ms(body.snooze, body.snooze_ms, -1, f"{at}snooze")
    if snooze >= 0 and (delay >= 0 or not body.retry):
        raise invalid(f"{at}snooze", "a snoozed job has not failed: give neither `retry` nor `retry_after`")
    return FailItem(
        job_id,
        body.lease_token or 0,
        body.error,
        body.backtrace or "",
        not body.retry,
        delay if delay >= 0 else None,
        snooze if snooze >= 0 else None,
    )


def failed(failure: Failure) -> Failed:
    return Failed(STATE_NAMES[failure.state], failure.attempts_remaining, to_rfc3339_or_none(failure.next_attempt_at))


def fail_outcome(outcome: Failure | Refused) -> FailOutcome:
    if isinstance(outcome, Refused):
        return FailOutcome(error=outcome.message, code=outcome.code)
    told = failed(outcome)
    return FailOutcome(told.status, told.attempts_remaining, told.next_attempt_at)


def _plan_one(context: PlanContext, body: FailBody, job_id: str) -> Plan:
    operation = Fail(context.mint.claim_id(), [fail_item(job_id, body)])

    def conclude(results: list[Any]) -> Answer:
        outcome = results[0][0]
        if isinstance(outcome, Refused):
            raise outcome.to_refusal()
        return Answer(200, failed(outcome))

    return Plan([(context.shard_of_job(job_id), operation)], conclude)


def _plan_batch(context: PlanContext, body: FailBatchBody) -> Plan:
    ask_id = context.mint.claim_id()
    items = [fail_item(fail.job_id, fail, f"fails[{number}].") for number, fail in enumerate(body.fails)]

    def answer(outcomes: list[Any]) -> Answer:
        answers = [fail_outcome(outcome) for outcome in outcomes]
        return Answer(200, FailedBatch(sum(each.code is None for each in answers), answers))

    return plan_each(context, items, lambda some: Fail(ask_id, some), answer)


ENDPOINTS = (
    Endpoint(
        name="fail_batch",
        access="jobs:fail",
        method="POST",
        repeats="by key",
        path="/fail/batch",
        summary="Fail up to 512 jobs; each has its own result",
        body=FailBatchBody,
        example={"fails": [{"job_id": "s01_job_18a1f0c2d3e4f5a60a1b2c3d4f", "error": "mailbox full"}]},
        answers={200: FailedBatch},
        refusals=("JOB_NOT_FOUND",),
        plan=_plan_batch,
    ),
    Endpoint(
        name="fail",
        access="jobs:fail",
        method="POST",
        repeats="by key",
        path="/fail/{job_id}",
        summary="Report that an attempt failed",
        body=FailBody,
        body_optional=True,
        example={"error": "mailbox full", "lease_token": 1},
        answers={200: Failed},
        refusals=("JOB_NOT_FOUND", "LEASE_LOST", "WRONG_STATE"),
        plan=_plan_one,
    ),
)
