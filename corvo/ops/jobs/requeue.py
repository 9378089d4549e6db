"""Requeue: run a dead job once more; its attempts are not reset."""

from typing import Any, ClassVar

from corvo.endpoint import Endpoint, Operation, Plan, PlanContext
from corvo.model.job import RequestId
from corvo.model.lifecycle import Verb
from corvo.ops.jobs.actions import REFUSALS, Done, is_repeated, plan_action
from corvo.ops.jobs.retry import run_again
from corvo.state.tables import Tables


class Requeue(Operation, tag=21):
    ask_id: RequestId
    job_id: str

    result: ClassVar[Any] = type(None)

    def apply(self, tables: Tables) -> None:
        job = tables.require_job(self.job_id)
        if not is_repeated(job, self.ask_id):
            run_again(tables, job, Verb.REQUEUE, self.ask_id)


def _plan(context: PlanContext, body: None, job_id: str) -> Plan:
    return plan_action(context, job_id, Requeue(context.mint.claim_id(), job_id), "requeued")


ENDPOINTS = (
    Endpoint(
        name="requeue",
        access="jobs:requeue",
        method="POST",
        repeats="by key",
        path="/jobs/{job_id}/requeue",
        summary="Run a dead job once more; its attempts are not reset",
        answers={200: Done},
        refusals=(*REFUSALS, "UNIQUE_CONFLICT"),
        plan=_plan,
    ),
)
