"""Retry: run an ended job again, or a scheduled job at once.

It goes to the end of its queue with its attempts reset. Result, errors and checkpoint are kept. A job that waited for
others no longer waits, and its expiry starts again.
"""

from typing import Any, ClassVar

from corvo.endpoint import Endpoint, Operation, Plan, PlanContext
from corvo.model.job import Job, RequestId
from corvo.model.job_extras import JobExtras
from corvo.model.lifecycle import Verb, destination
from corvo.ops.jobs.actions import REFUSALS, Done, is_repeated, note, plan_action
from corvo.state import locks
from corvo.state.tables import Tables
from corvo.state.transitions import EXPIRE_ALARM, change


class Retry(Operation, tag=20):
    ask_id: RequestId
    job_id: str

    result: ClassVar[Any] = type(None)

    def apply(self, tables: Tables) -> None:
        job = tables.require_job(self.job_id)
        if not is_repeated(job, self.ask_id):
            run_again(tables, job, Verb.RUN_AGAIN, self.ask_id)
            job.attempt = 0


def run_again(tables: Tables, job: Job, verb: Verb, ask_id: int) -> None:
    destination(job.state, verb)
    locks.lock_again(tables, job)
    extras = note(job, ask_id)
    change(tables, job, verb)
    job.due_at = job.completed_at = job.failed_at = 0
    job.settled_id = 0
    _begin_anew(tables, job, extras)


def _begin_anew(tables: Tables, job: Job, extras: JobExtras) -> None:
    extras.waits_for = ()
    extras.cancel_at = 0
    extras.hold_reason = ""
    if extras.expire_after_ms:
        tables.alarms.remove(extras.expire_at, EXPIRE_ALARM + job.id)
        extras.expire_at = tables.now + extras.expire_after_ms * 1_000_000
        tables.alarms.add(extras.expire_at, EXPIRE_ALARM + job.id)


def _plan(context: PlanContext, body: None, job_id: str) -> Plan:
    return plan_action(context, job_id, Retry(context.mint.claim_id(), job_id), "retried")


ENDPOINTS = (
    Endpoint(
        name="retry",
        access="jobs:retry",
        method="POST",
        repeats="by key",
        path="/jobs/{job_id}/retry",
        summary="Run an ended job again, or a scheduled job at once, with all its attempts",
        answers={200: Done},
        refusals=(*REFUSALS, "UNIQUE_CONFLICT"),
        plan=_plan,
    ),
)
