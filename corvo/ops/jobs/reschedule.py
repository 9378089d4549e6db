"""Reschedule: a job that waits runs at another time.

A pending or retrying job becomes scheduled; a time in the past means as soon as possible. Attempts stay counted. A job
that waits for others keeps waiting for them, and runs no earlier than the new time.
"""

from typing import Annotated, Any, ClassVar

from msgspec import Meta

from corvo.endpoint import Body, Endpoint, Operation, Plan, PlanContext
from corvo.model.errors import invalid
from corvo.model.events import EventKind
from corvo.model.job import Moment, RequestId
from corvo.model.lifecycle import State, Verb, destination
from corvo.model.timestamps import LATEST_NS
from corvo.ops.job_terms import DurationMs, due_at_of
from corvo.ops.jobs.actions import REFUSALS, Done, is_repeated, note, plan_action
from corvo.state.tables import Tables
from corvo.state.transitions import change, postpone


class RescheduleBody(Body):
    scheduled_at: Annotated[str | None, Meta(description="not before this time: RFC 3339, or a date")] = None
    delay: Annotated[str | None, Meta(description="not before this delay from now: `10m`")] = None
    delay_ms: Annotated[DurationMs | None, Meta(description="the same in milliseconds; takes precedence")] = None


class Reschedule(Operation, tag=29):
    ask_id: RequestId
    job_id: str
    due_at: Moment

    result: ClassVar[Any] = type(None)

    def apply(self, tables: Tables) -> None:
        job = tables.require_job(self.job_id)
        if is_repeated(job, self.ask_id):
            return
        destination(job.state, Verb.RESCHEDULE)
        extras = note(job, self.ask_id)
        if job.state is State.SCHEDULED and job.due_at == LATEST_NS:  # it waits for other jobs
            extras.scheduled_at = self.due_at
            tables.touch(job)
            tables.event_log.tell(EventKind.RESCHEDULED, job.id, job.queue)
            return
        if job.state is State.PENDING:
            job.due_at = self.due_at
        else:
            postpone(tables, job, self.due_at)
        change(tables, job, Verb.RESCHEDULE)


def _plan(context: PlanContext, body: RescheduleBody, job_id: str) -> Plan:
    due_at = due_at_of(context, body)
    if not due_at:
        raise invalid("scheduled_at", "missing: give a time, or a `delay`")
    return plan_action(context, job_id, Reschedule(context.mint.claim_id(), job_id, due_at), "scheduled")


ENDPOINTS = (
    Endpoint(
        name="reschedule",
        access="jobs:reschedule",
        method="POST",
        repeats="by key",
        path="/jobs/{job_id}/reschedule",
        summary="Change the time at which a waiting job runs",
        body=RescheduleBody,
        example={"delay": "10m"},
        answers={200: Done},
        refusals=REFUSALS,
        plan=_plan,
    ),
)
