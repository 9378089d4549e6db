"""Jobs that a timer ends: expired jobs, and active jobs whose worker did not stop within the grace of a cancel."""

from corvo.model.job import JobError
from corvo.model.lifecycle import SETTLED, State, Verb
from corvo.state.tables import Tables
from corvo.state.transitions import change

GRACE_ALARM = "g"  # followed by a job id: the grace of its worker is over


def expire_unless_active(tables: Tables, job_id: str, value: bytes) -> int:
    """The alarm of `expire_after`. An active job continues: its worker is told at its next heartbeat."""
    job = tables.find_job(job_id)
    if job is not None and job.state not in SETTLED and job.state is not State.ACTIVE:
        expire(tables, job_id)
    return 1


def expire(tables: Tables, job_id: str) -> None:
    job = tables.require_job(job_id)
    job.failed_at = tables.now
    reason = "expired before it was done"
    if job.state is State.ACTIVE:
        attempt = (job.worker_id, job.started_at)
        tables.add_error(
            JobError(job.id, job.lease_token, job.attempt, reason, "", tables.now, *attempt, queue=job.queue)
        )
    else:
        tables.add_note(job, reason)
    change(tables, job, Verb.EXPIRE)


def end_grace(tables: Tables, job_id: str, value: bytes) -> int:
    """The alarm of a cancellation with a grace."""
    job = tables.find_job(job_id)
    extras = None if job is None else job.extras
    if job is not None and extras is not None and job.state is State.ACTIVE and 0 < extras.cancel_at <= tables.now:
        job.failed_at = tables.now
        change(tables, job, Verb.CANCEL)
    return 1
