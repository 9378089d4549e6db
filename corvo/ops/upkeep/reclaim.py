"""Reclaim: leases that ran out are ended, and count as failed attempts.

A job with attempts left goes back to pending at once, for its worker is gone, not the cause; a job with none is
dead. So a job that kills every worker that touches it stops doing so. One that was to be cancelled is cancelled.
"""

from typing import Any, ClassVar

from corvo.endpoint import Operation
from corvo.model.job import Job
from corvo.model.lifecycle import Verb
from corvo.model.limits import UPKEEP_JOBS_PER_ENTRY
from corvo.model.retry import attempts_remaining
from corvo.ops.jobs.fail import record_failure
from corvo.state.tables import Tables
from corvo.state.transitions import change


class Reclaim(Operation, tag=101):
    result: ClassVar[Any] = int

    def apply(self, tables: Tables) -> int:
        over = tables.leases.over(tables.now, UPKEEP_JOBS_PER_ENTRY)
        for job_id in over:
            job = tables.require_job(job_id)
            job.settled_id = 0  # no request ended this claim
            record_failure(tables, job, f"lease of worker {job.worker_id} expired", "")
            verb = _verb(job)
            if verb is not Verb.RECLAIM:
                job.failed_at = tables.now
            change(tables, job, verb)
        return len(over)


def _verb(job: Job) -> Verb:
    if job.extras is not None and job.extras.cancel_at:
        return Verb.CANCEL  # its worker was asked to stop
    return Verb.RECLAIM if attempts_remaining(job.max_retries, job.attempt) else Verb.GIVE_UP
