"""ChangePriority: give a waiting job another priority; a pending job goes to the end of its new priority."""

from typing import Any, ClassVar, Literal

import msgspec

from corvo.endpoint import Body, Endpoint, Operation, Plan, PlanContext
from corvo.model.errors import Refusal
from corvo.model.events import EventKind
from corvo.model.job import PRIORITY_NAMES, Priority, RequestId
from corvo.model.lifecycle import STATE_NAMES, State
from corvo.ops.jobs.actions import REFUSALS, Done, is_repeated, note, plan_action
from corvo.state.tables import Tables
from corvo.state.transitions import reindex, unindex

WAITING = frozenset({State.PENDING, State.SCHEDULED, State.RETRYING, State.HELD})


class PriorityBody(Body):
    priority: Literal["critical", "high", "normal"]


class ChangePriority(Operation, tag=26):
    job_id: str
    priority: Priority
    ask_id: RequestId = 0  # 0: written by a former version, which gave it none

    result: ClassVar[Any] = type(None)

    def apply(self, tables: Tables) -> None:
        job = tables.require_job(self.job_id)
        if is_repeated(job, self.ask_id):
            return
        if job.state not in WAITING:
            raise Refusal(
                "WRONG_STATE",
                f"cannot change the priority of a job that is {STATE_NAMES[job.state]}; only of a waiting one",
            )
        if self.ask_id:
            note(job, self.ask_id)
            tables.touch(job)
        if job.priority is self.priority:
            return
        unindex(tables, job)
        job.priority = self.priority
        reindex(tables, job)
        data = msgspec.json.encode({"priority": PRIORITY_NAMES[self.priority]})
        tables.event_log.tell(EventKind.PRIORITY_CHANGED, job.id, job.queue, data)


def _plan(context: PlanContext, body: PriorityBody, job_id: str) -> Plan:
    priority = Priority(PRIORITY_NAMES.index(body.priority))
    operation = ChangePriority(job_id, priority, context.mint.claim_id())
    return plan_action(context, job_id, operation, "ok")


ENDPOINTS = (
    Endpoint(
        name="change_priority",
        access="jobs:priority",
        method="POST",
        repeats="by key",
        path="/jobs/{job_id}/priority",
        summary="Change the priority of a waiting job",
        body=PriorityBody,
        example={"priority": "high"},
        answers={200: Done},
        refusals=REFUSALS,
        plan=_plan,
    ),
)
