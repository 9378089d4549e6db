"""Cancel: stop a job that has not finished.

The job is settled at once. The worker of an active one learns of it from the answer to its next heartbeat; what it
reports afterwards is refused.
"""

from typing import Any, ClassVar

import msgspec

from corvo.job import RequestId
from corvo.lifecycle import State, Verb
from corvo.ops.operation import Answer, Asking, Endpoint, Operation, Plan
from corvo.sharding import shard_of_job
from corvo.state.effects import change
from corvo.state.tables import Tables


class Cancelled(msgspec.Struct):
    status: str  # `cancelling` when a worker has yet to be told


class Cancel(Operation, tag=6):
    ask_id: RequestId
    job_id: str

    result: ClassVar[Any] = bool

    def apply(self, tables: Tables) -> bool:
        """Whether a worker was on it."""
        job = tables.require_job(self.job_id)
        if job.state == State.CANCELLED and job.settled_id == self.ask_id:
            return job.lease_expires_at > 0
        was_active = job.state == State.ACTIVE
        change(tables, job, Verb.CANCEL)
        if not was_active:
            job.lease_expires_at = 0  # so that a repetition finds the same answer
        job.settled_id = self.ask_id
        job.failed_at = tables.now
        return was_active


def _plan(asking: Asking, body: None, job_id: str) -> Plan:
    operation = Cancel(asking.mint.claim_id(), job_id)

    def conclude(results: list[Any]) -> Answer:
        return Answer(200, Cancelled("cancelling" if results[0] else "cancelled"))

    return Plan([(shard_of_job(job_id, asking.shard_count), operation)], conclude)


ENDPOINTS = (
    Endpoint(
        name="cancel",
        method="POST",
        path="/jobs/{job_id}/cancel",
        summary="Cancel a job that has not finished",
        answers={200: Cancelled},
        refusals=("JOB_NOT_FOUND", "WRONG_STATE"),
        plan=_plan,
    ),
)
