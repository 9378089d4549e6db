"""Approve: let a held job run. It goes to the end of its queue, even if it waited for something before it was held."""

from typing import Any, ClassVar

from corvo.endpoint import Endpoint, Operation, Plan, PlanContext
from corvo.model.job import RequestId
from corvo.model.lifecycle import Verb, destination
from corvo.ops.jobs.actions import REFUSALS, Done, is_repeated, note, plan_action
from corvo.state.tables import Tables
from corvo.state.transitions import change


class Approve(Operation, tag=23):
    ask_id: RequestId
    job_id: str

    result: ClassVar[Any] = type(None)

    def apply(self, tables: Tables) -> None:
        job = tables.require_job(self.job_id)
        if is_repeated(job, self.ask_id):
            return
        destination(job.state, Verb.APPROVE)
        extras = note(job, self.ask_id)
        extras.hold_reason = ""
        extras.waits_for = ()
        change(tables, job, Verb.APPROVE)


def _plan(context: PlanContext, body: None, job_id: str) -> Plan:
    return plan_action(context, job_id, Approve(context.mint.claim_id(), job_id), "pending")


ENDPOINTS = (
    Endpoint(
        name="approve",
        access="jobs:approve",
        method="POST",
        repeats="by key",
        path="/jobs/{job_id}/approve",
        summary="Let a held job run",
        answers={200: Done},
        refusals=REFUSALS,
        plan=_plan,
    ),
)
