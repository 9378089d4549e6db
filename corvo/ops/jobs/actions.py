"""What the actions on one job share: how they are asked for, and how a repetition is known.

Every action names itself by an `ask_id` before it is first sent. The newest one is kept with the job, so that the same
request sent again, after a crash, say, gets its old answer and changes nothing.
"""

from typing import Any

import msgspec

from corvo.endpoint import Answer, Operation, Plan, PlanContext
from corvo.model.job import Job
from corvo.model.job_extras import JobExtras
from corvo.model.sharding import shard_of_job

REFUSALS = ("JOB_NOT_FOUND", "WRONG_STATE")


class Done(msgspec.Struct):
    status: str


def is_repeated(job: Job, ask_id: int) -> bool:
    return job.extras is not None and job.extras.asked_id == ask_id


def note(job: Job, ask_id: int) -> JobExtras:
    """This is the newest action by now. Called when nothing can refuse it any more."""
    extras = job.extras = job.extras or JobExtras()
    extras.asked_id = ask_id
    return extras


def plan_action(context: PlanContext, job_id: str, operation: Operation, status: str) -> Plan:
    def conclude(results: list[Any]) -> Answer:
        return Answer(200, Done(status))

    return Plan([(shard_of_job(job_id, context.shard_count), operation)], conclude)
