"""Cancel: stop a job that has not ended.

A job that is not active is cancelled at once. The worker of an active job gets a grace period: its next heartbeat tells
it to stop and no longer renews its lease. Its report still counts: an ack completes the job, a fail leaves it
cancelled. Without a report the job is cancelled when the grace or the lease ends.
"""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from corvo.endpoint import Answer, Body, Endpoint, Operation, Plan, PlanContext
from corvo.model.errors import invalid
from corvo.model.events import EventKind
from corvo.model.job import Job, RequestId, SpanMs
from corvo.model.lifecycle import State, Verb
from corvo.model.limits import CANCEL_GRACE_MS_DEFAULT, DELAY_MS_MAX
from corvo.ops.job_terms import duration_ms
from corvo.ops.jobs.actions import REFUSALS, is_repeated, note
from corvo.rules.expiry import GRACE_ALARM
from corvo.state.tables import Tables
from corvo.state.transitions import change


class CancelBody(Body):
    grace: Annotated[
        str | float | None,
        Meta(description="how long the worker of an active job may take to stop: `90s`, or seconds; 0: stop at once"),
    ] = None


class Cancelled(msgspec.Struct):
    status: str  # `cancelling` when the job is active


class Cancel(Operation, tag=6):
    ask_id: RequestId
    job_id: str
    grace_ms: SpanMs = 0

    result: ClassVar[Any] = bool

    def apply(self, tables: Tables) -> bool:
        """Whether the job was active."""
        job = tables.require_job(self.job_id)
        if is_repeated(job, self.ask_id) or (job.state == State.CANCELLED and job.settled_id == self.ask_id):
            return job.lease_expires_at > 0
        was_active = job.state == State.ACTIVE
        if was_active and self.grace_ms:
            self._give_grace(tables, job)
            return True
        change(tables, job, Verb.CANCEL)
        if not was_active:
            job.lease_expires_at = 0  # so that a repetition finds the same answer
        note(job, self.ask_id)
        job.settled_id = self.ask_id
        job.failed_at = tables.now
        return was_active

    def _give_grace(self, tables: Tables, job: Job) -> None:
        extras = note(job, self.ask_id)
        tables.touch(job)
        if not extras.cancel_at:
            tables.event_log.tell(EventKind.CANCELLING, job.id, job.queue)
        ends_at = tables.now + self.grace_ms * 1_000_000
        if not 0 < extras.cancel_at <= ends_at:  # of several cancels the earliest end counts
            extras.cancel_at = ends_at
            tables.alarms.add(ends_at, GRACE_ALARM + job.id)


def grace_ms(body: CancelBody) -> int:
    if body.grace is None:
        return CANCEL_GRACE_MS_DEFAULT
    if isinstance(body.grace, str):
        return duration_ms(body.grace, None, 0, "grace")
    span = round(body.grace * 1000)
    if not 0 <= span <= DELAY_MS_MAX:
        raise invalid("grace", "expected seconds from 0 to a year")
    return span


def _plan(context: PlanContext, body: CancelBody, job_id: str) -> Plan:
    operation = Cancel(context.mint.claim_id(), job_id, grace_ms(body))

    def conclude(results: list[Any]) -> Answer:
        return Answer(200, Cancelled("cancelling" if results[0] else "cancelled"))

    return Plan([(context.shard_of_job(job_id), operation)], conclude)


ENDPOINTS = (
    Endpoint(
        name="cancel",
        access="jobs:cancel",
        method="POST",
        repeats="by key",
        path="/jobs/{job_id}/cancel",
        summary="Cancel a job that has not ended; the worker of an active job gets time to stop",
        body=CancelBody,
        body_optional=True,
        example={"grace": "5s"},
        answers={200: Cancelled},
        refusals=REFUSALS,
        plan=_plan,
    ),
)
