"""Reclaim: end expired leases; each counts as a failed attempt.

A job with attempts left becomes pending at once, without backoff, because the worker is gone and the job is probably
fine; a job without is dead. So a job that kills its workers stops after its last attempt. A job that is being cancelled
becomes cancelled.
"""

from typing import Any, ClassVar

from corvo.endpoint import Operation
from corvo.model.job import Job
from corvo.model.lifecycle import Verb
from corvo.model.limits import UPKEEP_JOBS_PER_ENTRY
from corvo.model.namespaces import shown_name
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
            record_failure(tables, job, f"lease of worker {shown_name(job.worker_id)} expired", "")
            verb = _verb(job)
            if verb is not Verb.RECLAIM:
                job.failed_at = tables.now
            change(tables, job, verb)
        return len(over)


def _verb(job: Job) -> Verb:
    if job.extras is not None and job.extras.cancel_at:
        return Verb.CANCEL  # its worker was asked to stop
    return Verb.RECLAIM if attempts_remaining(job.max_retries, job.attempt) else Verb.GIVE_UP
