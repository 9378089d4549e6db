"""Hold: keep a job that has not ended from running until it is approved or rejected.

The lease of an active job ends: its worker is told to stop at its next heartbeat, and its reports are refused.
"""

from typing import Annotated, Any, ClassVar

from msgspec import Meta

from corvo.endpoint import Body, Endpoint, Operation, Plan, PlanContext
from corvo.model.job import Job, JobError, RequestId, ShortText
from corvo.model.lifecycle import State, Verb, destination
from corvo.model.limits import TEXT_CHARS_MAX
from corvo.ops.jobs.actions import REFUSALS, Done, is_repeated, note, plan_action
from corvo.state.tables import Tables
from corvo.state.transitions import change

Reason = Annotated[str, Meta(max_length=TEXT_CHARS_MAX, description="for people; shown with the job")]


class HoldBody(Body):
    reason: Reason = ""


class Hold(Operation, tag=22):
    ask_id: RequestId
    job_id: str
    reason: ShortText = ""

    result: ClassVar[Any] = type(None)

    def apply(self, tables: Tables) -> None:
        job = tables.require_job(self.job_id)
        if is_repeated(job, self.ask_id):
            return
        destination(job.state, Verb.HOLD)
        if job.state is State.ACTIVE:
            _record(tables, job, self.reason)
        extras = note(job, self.ask_id)
        extras.hold_reason = self.reason
        extras.cancel_at = 0
        change(tables, job, Verb.HOLD)
        job.due_at = 0
        job.settled_id = 0  # no report of its worker ended this claim


def _record(tables: Tables, job: Job, reason: str) -> None:
    """Record the attempt that the hold ends in the job's history."""
    told = f"held while it ran: {reason}" if reason else "held while it ran"
    tables.add_error(
        JobError(
            job.id, job.lease_token, job.attempt, told, "", tables.now, job.worker_id, job.started_at, True, job.queue
        )
    )


def _plan(context: PlanContext, body: HoldBody, job_id: str) -> Plan:
    return plan_action(context, job_id, Hold(context.mint.claim_id(), job_id, body.reason), "held")


ENDPOINTS = (
    Endpoint(
        name="hold",
        access="jobs:hold",
        method="POST",
        repeats="by key",
        path="/jobs/{job_id}/hold",
        summary="Keep a job from running until it is approved or rejected",
        body=HoldBody,
        body_optional=True,
        example={"reason": "check the address first"},
        answers={200: Done},
        refusals=REFUSALS,
        plan=_plan,
    ),
)
