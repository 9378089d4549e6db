"""Reject: end a held job without running it. It is dead, and its history holds the reason."""

from typing import Any, ClassVar

from corvo.endpoint import Body, Endpoint, Operation, Plan, PlanContext
from corvo.model.job import RequestId, ShortText
from corvo.model.lifecycle import Verb, destination
from corvo.ops.jobs.actions import REFUSALS, Done, is_repeated, note, plan_action
from corvo.ops.jobs.hold import Reason
from corvo.state.tables import Tables
from corvo.state.transitions import change


class RejectBody(Body):
    reason: Reason = ""


class Reject(Operation, tag=24):
    ask_id: RequestId
    job_id: str
    reason: ShortText = ""

    result: ClassVar[Any] = type(None)

    def apply(self, tables: Tables) -> None:
        job = tables.require_job(self.job_id)
        if is_repeated(job, self.ask_id):
            return
        destination(job.state, Verb.REJECT)
        note(job, self.ask_id)
        tables.add_note(job, f"rejected: {self.reason}" if self.reason else "rejected")
        job.failed_at = tables.now
        change(tables, job, Verb.REJECT)


def _plan(context: PlanContext, body: RejectBody, job_id: str) -> Plan:
    return plan_action(context, job_id, Reject(context.mint.claim_id(), job_id, body.reason), "dead")


ENDPOINTS = (
    Endpoint(
        name="reject",
        access="jobs:reject",
        method="POST",
        repeats="by key",
        path="/jobs/{job_id}/reject",
        summary="End a held job without running it",
        body=RejectBody,
        body_optional=True,
        example={"reason": "no longer needed"},
        answers={200: Done},
        refusals=REFUSALS,
        plan=_plan,
    ),
)
