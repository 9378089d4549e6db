"""Who may speak for an active job: the rules that ack, fail and heartbeat share."""

from corvo.errors import Refused
from corvo.job import Job
from corvo.lifecycle import STATE_NAMES, State


def holds(job: Job, lease_token: int) -> bool:
    """Token 0 means that none was sent: older clients then speak for whatever claim is live."""
    return job.state == State.ACTIVE and lease_token in (0, job.lease_token)


def lost(job: Job | None, job_id: str, lease_token: int) -> Refused:
    """Why the caller may not speak for the job."""
    if job is None:
        return Refused("JOB_NOT_FOUND", f"no job has the id {job_id!r}")
    state = STATE_NAMES[job.state]
    if lease_token:
        return Refused(
            "LEASE_LOST",
            f"lease {lease_token} of job {job_id} is over: the job is {state}, its newest lease {job.lease_token}",
        )
    return Refused("WRONG_STATE", f"job {job_id} is {state}, not active")
