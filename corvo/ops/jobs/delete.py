"""Delete: remove a job in any state, with its history.

The worker of an active job is told to stop at its next heartbeat. Nothing is kept of a deleted job. So the plan reads
the job first and refuses an unknown one; the operation itself, repeated after a crash, has nothing to do.
"""

from typing import Any, ClassVar

from corvo.endpoint import Endpoint, Operation, Plan, PlanContext
from corvo.model.errors import Refusal
from corvo.ops.jobs.actions import Done, plan_action
from corvo.queries.unknown_jobs import FindUnknown
from corvo.state.tables import Tables
from corvo.state.transitions import remove


class Delete(Operation, tag=25):
    job_id: str

    result: ClassVar[Any] = type(None)

    def apply(self, tables: Tables) -> None:
        job = tables.find_job(self.job_id)
        if job is not None:
            remove(tables, job)
        elif tables.forwarded_to(self.job_id) is not None:
            raise tables.missing(self.job_id)


def _plan(context: PlanContext, body: None, job_id: str) -> Plan:
    def delete(results: list[Any]) -> Plan:
        if results[0]:
            raise Refusal("JOB_NOT_FOUND", f"no job has the id {job_id!r}")
        return plan_action(context, job_id, Delete(job_id), "deleted")

    return Plan([(context.shard_of_job(job_id), FindUnknown([job_id]))], delete)


ENDPOINTS = (
    Endpoint(
        name="delete_job",
        access="jobs:delete",
        method="DELETE",
        repeats="freely",
        path="/jobs/{job_id}",
        summary="Delete a job in any state, with its history",
        answers={200: Done},
        refusals=("JOB_NOT_FOUND",),
        plan=_plan,
    ),
)
