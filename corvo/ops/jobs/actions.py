"""What the actions on one job share: how they are asked for, and how a repetition is known.

Every action names itself by an `ask_id` before it is first sent. The newest one is kept with the job, so that the same
request sent again, after a crash, say, gets its old answer and changes nothing.
"""

from typing import Any

import msgspec

from corvo.model.job import Job
from corvo.model.job_extras import Bonds
from corvo.model.sharding import shard_of_job
from corvo.ops.operation import Answer, Asking, Operation, Plan

REFUSALS = ("JOB_NOT_FOUND", "WRONG_STATE")


class Done(msgspec.Struct):
    status: str


def is_repeated(job: Job, ask_id: int) -> bool:
    return job.bonds is not None and job.bonds.asked_id == ask_id


def note(job: Job, ask_id: int) -> Bonds:
    """This is the newest action by now. Called when nothing can refuse it any more."""
    bonds = job.bonds = job.bonds or Bonds()
    bonds.asked_id = ask_id
    return bonds


def plan_action(asking: Asking, job_id: str, operation: Operation, status: str) -> Plan:
    def conclude(results: list[Any]) -> Answer:
        return Answer(200, Done(status))

    return Plan([(shard_of_job(job_id, asking.shard_count), operation)], conclude)
