"""Fail: a worker reports that an attempt failed.

With attempts left the job waits out its backoff and runs again; with none left it is dead, kept for inspection.
"""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from corvo.errors import Refused
from corvo.job import Count, Job, JobError, JobId, RequestId
from corvo.lifecycle import STATE_NAMES, State, Verb
from corvo.limits import BACKTRACE_CHARS_MAX, ERROR_CHARS_MAX, FETCH_COUNT_MAX
from corvo.moments import to_rfc3339_or_none
from corvo.ops.jobs.ack import LeaseToken
from corvo.ops.jobs.lease import holds, lost, plan_each
from corvo.ops.operation import (
    Answer,
    Asking,
    Body,
    Endpoint,
    Operation,
    Plan,
)
from corvo.retry import attempts_remaining, delay_ms
from corvo.sharding import shard_of_job
from corvo.state.effects import change
from corvo.state.tables import Tables


class FailBody(Body):
    error: Annotated[str, Meta(max_length=ERROR_CHARS_MAX)] = ""
    backtrace: Annotated[str, Meta(max_length=BACKTRACE_CHARS_MAX)] | None = None
    lease_token: LeaseToken | None = None


class FailBatchItem(FailBody, kw_only=True):
    job_id: JobId


class FailBatchBody(Body):
    fails: Annotated[list[FailBatchItem], Meta(min_length=1, max_length=FETCH_COUNT_MAX)]


class Failed(msgspec.Struct, omit_defaults=True):
    status: str
    attempts_remaining: int
    next_attempt_at: str | None = None


class FailOutcome(msgspec.Struct, omit_defaults=True):
    """What became of the job, or why its failure was not taken."""

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
                # Asked before whose the lease is: without a token it would now speak for the next worker's claim.
                return _failure(job, job.attempt - 1 if job.state == State.ACTIVE else job.attempt)
            if holds(job, item.lease_token):
                job.settled_id = self.ask_id
                fail_attempt(tables, job, item.error, item.backtrace)
                return _failure(job, job.attempt)
        return lost(job, item.job_id, item.lease_token)


def fail_attempt(tables: Tables, job: Job, error: str, backtrace: str) -> None:
    """The running attempt of an active job has failed: record it, then retry later or give up."""
    record_failure(tables, job, error, backtrace)
    now = tables.now
    if attempts_remaining(job.max_retries, job.attempt):
        job.due_at = now + 1_000_000 * delay_ms(job.backoff, job.base_delay_ms, job.max_delay_ms, job.attempt)
        change(tables, job, Verb.RETRY_LATER)
    else:
        job.failed_at = now
        change(tables, job, Verb.GIVE_UP)


def record_failure(tables: Tables, job: Job, error: str, backtrace: str) -> None:
    tables.queue(job.queue).failed += 1
    tables.add_error(JobError(job.id, job.lease_token, job.attempt, error, backtrace, tables.now))


def _failure(job: Job, failed_attempt: int) -> Failure:
    remaining = attempts_remaining(job.max_retries, failed_attempt)
    if remaining:
        return Failure(State.RETRYING, remaining, job.due_at)
    return Failure(State.DEAD, 0, 0)


def fail_item(job_id: str, body: FailBody) -> FailItem:
    return FailItem(job_id, body.lease_token or 0, body.error, body.backtrace or "")


def failed(failure: Failure) -> Failed:
    return Failed(STATE_NAMES[failure.state], failure.attempts_remaining, to_rfc3339_or_none(failure.next_attempt_at))


def fail_outcome(outcome: Failure | Refused) -> FailOutcome:
    if isinstance(outcome, Refused):
        return FailOutcome(error=outcome.message, code=outcome.code)
    told = failed(outcome)
    return FailOutcome(told.status, told.attempts_remaining, told.next_attempt_at)


def _plan_one(asking: Asking, body: FailBody, job_id: str) -> Plan:
    operation = Fail(asking.mint.claim_id(), [fail_item(job_id, body)])

    def conclude(results: list[Any]) -> Answer:
        outcome = results[0][0]
        if isinstance(outcome, Refused):
            raise outcome.to_refusal()
        return Answer(200, failed(outcome))

    return Plan([(shard_of_job(job_id, asking.shard_count), operation)], conclude)


def _plan_batch(asking: Asking, body: FailBatchBody) -> Plan:
    ask_id = asking.mint.claim_id()
    items = [fail_item(fail.job_id, fail) for fail in body.fails]

    def answer(outcomes: list[Any]) -> Answer:
        answers = [fail_outcome(outcome) for outcome in outcomes]
        return Answer(200, FailedBatch(sum(each.code is None for each in answers), answers))

    return plan_each(asking, items, lambda some: Fail(ask_id, some), answer)


ENDPOINTS = (
    Endpoint(
        name="fail_batch",
        method="POST",
        path="/fail/batch",
        summary="Fail up to 512 jobs; each is answered for itself",
        body=FailBatchBody,
        answers={200: FailedBatch},
        refusals=("JOB_NOT_FOUND",),
        plan=_plan_batch,
    ),
    Endpoint(
        name="fail",
        method="POST",
        path="/fail/{job_id}",
        summary="Report that an attempt failed",
        body=FailBody,
        body_optional=True,
        answers={200: Failed},
        refusals=("JOB_NOT_FOUND", "LEASE_LOST", "WRONG_STATE"),
        plan=_plan_one,
    ),
)
