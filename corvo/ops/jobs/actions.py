"""What the actions on one job share: how they are planned, and how a repeated request is recognised.

The gateway gives every action an `ask_id` before it first sends it. The job keeps the ids of its newest actions. A
request that is sent again, after a crash for example, gets its old answer and changes nothing, even if other actions
came in between.
"""

from typing import Any

import msgspec

from corvo.endpoint import Answer, Operation, Plan, PlanContext
from corvo.model.job import Job
from corvo.model.job_extras import JobExtras

ACTIONS_REMEMBERED = 8  # by each job: a repetition comes within seconds, and few actions on one job come that fast
REFUSALS = ("JOB_NOT_FOUND", "WRONG_STATE")


class Done(msgspec.Struct):
    status: str


def is_repeated(job: Job, ask_id: int) -> bool:
    """False for an action without an id (0), as former versions wrote them into the log."""
    extras = job.extras
    return extras is not None and ask_id != 0 and (extras.asked_id == ask_id or ask_id in extras.asked_before)


def note(job: Job, ask_id: int) -> JobExtras:
    """Remember the action as the newest one. Call it when nothing can refuse the action any more."""
    extras = job.extras = job.extras or JobExtras()
    if ask_id:
        if extras.asked_id:
            extras.asked_before = (extras.asked_id, *extras.asked_before)[: ACTIONS_REMEMBERED - 1]
        extras.asked_id = ask_id
    return extras


def plan_action(context: PlanContext, job_id: str, operation: Operation, status: str) -> Plan:
    def conclude(results: list[Any]) -> Answer:
        return Answer(200, Done(status))

    return Plan([(context.shard_of_job(job_id), operation)], conclude)
