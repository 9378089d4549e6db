"""Why a job is not running: the reason, from the state of its shard and from the fetches that its leader has seen.

If there are several reasons, the first that must go away is given; `also` has the codes of the others. Fetches are not
in the log: the leader knows them only since it took over, and the answer says since when.
"""

from collections.abc import Callable
from datetime import timedelta
from itertools import islice
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec
from msgspec import Meta

from corvo.endpoint import Answer, Endpoint, Plan, PlanContext, Read
from corvo.model.job import PRIORITY_NAMES, Controls, Job, Priority, Queue
from corvo.model.job_extras import JobExtras
from corvo.model.lifecycle import STATE_NAMES, State
from corvo.model.namespaces import shown_name
from corvo.model.timestamps import LATEST_NS, to_rfc3339, to_rfc3339_or_none
from corvo.state import keys
from corvo.state.tables import Tables

AHEAD_COUNTED_MAX = 10_000  # each is a key to read, while other requests wait
NOBODY_AFTER_NS = 5_000_000_000  # a queue without a fetch for this long has no worker
DEPENDENCIES_SHOWN = 10

REASONS: dict[str, str] = {
    "PAUSED": "the queue is paused",
    "DRAINING": "the queue is draining: no more jobs are claimed",
    "CONCURRENCY": "the queue is at its limit of active jobs",
    "THROTTLED": "the queue is at its limit of claims within its window",
    "NO_WORKER": "no worker asks for jobs of this queue",
    "JOBS_AHEAD": "workers ask for the queue, and other jobs are served first",
    "NEXT": "the next worker that asks for the queue gets it",
    "WAITING_FOR_JOBS": "other jobs must end first",
    "SCHEDULED": "it is scheduled for later",
    "RETRYING": "an attempt failed, and the next one waits",
    "HELD": "it must be approved or rejected",
    "RUNNING": "a worker has it",
    "CANCELLING": "a worker has it, and was asked to stop",
    "COMPLETED": "it is done",
    "DEAD": "it has no attempts left",
    "CANCELLED": "it was cancelled",
}


class Demand(NamedTuple):
    """What the leader knows about fetches from a queue. Times of its own clock."""

    now: int
    is_waited_for: bool  # a fetch waits for a job of this queue now
    asked_at: int  # time of the last fetch; 0: none since `known_since`
    known_since: int


class JobsAhead(msgspec.Struct):
    count: int
    is_exact: Annotated[bool, Meta(description="false: there are more than `count`")]
    by_priority: dict[str, int]


class WhyView(msgspec.Struct, omit_defaults=True):
    """`message` is for humans; `reason` and the fields below it for programs. Fields that do not apply are left out."""

    job_id: str
    queue: str
    state: str
    reason: str
    message: str
    also: Annotated[list[str], Meta(description="further reasons")] = []
    until: Annotated[str | None, Meta(description="when the reason goes away by itself")] = None
    since: str | None = None
    active: int | None = None
    max_concurrency: int | None = None
    rate: int | None = None
    window_ms: int | None = None
    jobs_ahead: JobsAhead | None = None
    workers_waiting: bool | None = None
    last_asked_at: str | None = None
    known_since: Annotated[str | None, Meta(description="since when fetches from the queue are known")] = None
    waits_for: list[str] = []
    waits_for_count: int | None = None
    worker_id: str = ""
    hostname: str = ""
    lease_expires_at: str | None = None
    attempt: int | None = None
    max_retries: int | None = None
    last_error: str | None = None
    hold_reason: str = ""


class Why(Read, tag=1045):
    job_id: str

    result: ClassVar[Any] = WhyView

    def read(self, tables: Tables) -> WhyView:
        """From the tables alone, as for a leader that has just taken over."""
        return self.explain(tables, lambda queue: Demand(tables.now, False, 0, tables.now))

    def explain(self, tables: Tables, demand_for: Callable[[str], Demand]) -> WhyView:
        job = tables.require_job(self.job_id)
        view = WhyView(job.id, shown_name(job.queue), STATE_NAMES[job.state], "", "")
        if job.state is State.PENDING:
            _of_pending(tables, job, demand_for(job.queue), view)
        else:
            _EXPLAIN[job.state](tables, job, view)
        return view


# Pending: the limits of its queue, then the jobs ahead of it, then the workers


def _of_pending(tables: Tables, job: Job, demand: Demand, view: WhyView) -> None:
    queue = tables.find_queue(job.queue)
    assert queue is not None, job.queue
    view.jobs_ahead = ahead = jobs_ahead(tables, queue, job)
    now = max(tables.now, demand.now)
    found = [] if queue.controls is None else _gates(tables, queue, queue.controls, now, view)
    found.append(_line(job, demand, ahead, view))
    (view.reason, view.message), *others = found
    view.also = [code for code, _ in others if code not in ("NEXT", "JOBS_AHEAD")]


def _gates(tables: Tables, queue: Queue, controls: Controls, now: int, view: WhyView) -> list[tuple[str, str]]:
    found = []
    name = shown_name(queue.name)
    if controls.is_paused:
        found.append(("PAUSED", f"the queue {name} is paused; resume it to let its jobs run"))
    if controls.is_draining:
        active = view.active = queue.counts[State.ACTIVE]
        text = f"the queue {name} is drained: none of its jobs run, and none start until it is resumed"
        if active:
            text = f"the queue {name} is draining: {active} of its jobs still run, none start until it is resumed"
        found.append(("DRAINING", text))
    if controls.max_concurrency and queue.counts[State.ACTIVE] >= controls.max_concurrency:
        view.active, view.max_concurrency = queue.counts[State.ACTIVE], controls.max_concurrency
        found.append(
            (
                "CONCURRENCY",
                f"concurrency {view.active}/{view.max_concurrency}: the queue {name} is at its limit of active jobs",
            )
        )
    if controls.rate and not tables.throttles.room(queue.name, controls, now):
        free_at = tables.throttles.free_at(queue.name, controls)
        view.rate, view.window_ms, view.until = controls.rate, controls.window_ms, to_rfc3339(free_at)
        found.append(
            (
                "THROTTLED",
                f"throttled until {_when(free_at)}: the queue {name} allows {controls.rate} claims in "
                f"{_span(controls.window_ms * 1_000_000)}",
            )
        )
    return found


def _line(job: Job, demand: Demand, ahead: JobsAhead, view: WhyView) -> tuple[str, str]:
    view.workers_waiting = demand.is_waited_for
    view.last_asked_at = to_rfc3339_or_none(demand.asked_at)
    view.known_since = to_rfc3339(demand.known_since)
    before = _count_of(ahead)
    silent_since = demand.asked_at or demand.known_since
    if not demand.is_waited_for and (not demand.asked_at or demand.now - silent_since >= NOBODY_AFTER_NS):
        for_long = _span(demand.now - silent_since)
        text = f"no worker has asked for the queue {view.queue} for {for_long}"
        if not demand.asked_at:
            text = f"no worker has asked for the queue {view.queue} since this leader took over {for_long} ago"
        return "NO_WORKER", f"{text}; {before}"
    if ahead.count:
        return "JOBS_AHEAD", before
    if demand.is_waited_for:
        return "NEXT", "it is next: workers are waiting"
    return "NEXT", f"it is next: a worker asked for the queue {view.queue} {_span(demand.now - demand.asked_at)} ago"


def jobs_ahead(tables: Tables, queue: Queue, job: Job) -> JobsAhead:
    """The jobs that a fetch from this queue claims first: of higher priority, or of the same priority and older."""
    by_priority: dict[str, int] = {}
    left = AHEAD_COUNTED_MAX + 1
    for priority in Priority:
        if priority > job.priority or left == 0:
            break
        prefix = keys.pending_prefix(queue.name, priority)
        stop = keys.prefix_end(prefix) if priority != job.priority else prefix + keys.pack_u64(job.position)
        start = prefix + keys.pack_u64(queue.cursors[priority] + 1)
        count = sum(1 for _ in islice(tables.overlay.scan(start, stop), left)) if start < stop else 0
        left -= count
        if count:
            by_priority[PRIORITY_NAMES[priority]] = count
    is_exact = left > 0
    if not is_exact:
        by_priority[next(reversed(by_priority))] -= 1  # the last one was counted only to find that there are more
    return JobsAhead(sum(by_priority.values()), is_exact, by_priority)


def _count_of(ahead: JobsAhead) -> str:
    if not ahead.count:
        return "no job is ahead of it"
    parts = ", ".join(f"{count:,} {name}" for name, count in ahead.by_priority.items())
    number = f"{ahead.count:,}" if ahead.is_exact else f"more than {ahead.count:,}"
    return f"{number} job{'s are' if ahead.count != 1 else ' is'} ahead of it ({parts})"


# The other states


def _of_scheduled(tables: Tables, job: Job, view: WhyView) -> None:
    extras = job.extras
    if job.due_at == LATEST_NS and extras is not None and extras.waits_for:
        _of_waiting(extras, view)
        return
    view.reason, view.until = "SCHEDULED", to_rfc3339(job.due_at)
    view.message = f"scheduled for {_when(job.due_at)}"


def _of_waiting(extras: JobExtras, view: WhyView) -> None:
    view.reason, view.waits_for_count = "WAITING_FOR_JOBS", len(extras.waits_for)
    view.waits_for = list(extras.waits_for[:DEPENDENCIES_SHOWN])
    others = len(extras.waits_for) - 1
    view.message = f"waiting for job {extras.waits_for[0]} to complete"
    if others:
        view.message = f"waiting for job {extras.waits_for[0]} and {others} other{'s' * (others > 1)} to complete"
    if extras.scheduled_at:
        view.until = to_rfc3339(extras.scheduled_at)
        view.message += f", and not before {_when(extras.scheduled_at)}"


def _of_retrying(tables: Tables, job: Job, view: WhyView) -> None:
    _tell_attempts(tables, job, view)
    view.reason, view.until = "RETRYING", to_rfc3339(job.due_at)
    view.message = f"retrying at {_when(job.due_at)}, {_after_error(job, view)}"


def _of_held(tables: Tables, job: Job, view: WhyView) -> None:
    view.reason = "HELD"
    view.hold_reason = job.extras.hold_reason if job.extras is not None else ""
    view.message = "held" + (f": {view.hold_reason}" if view.hold_reason else "") + "; approve or reject it"


def _of_active(tables: Tables, job: Job, view: WhyView) -> None:
    extras = job.extras
    view.worker_id, view.hostname = shown_name(job.worker_id), job.hostname
    view.attempt, view.max_retries = job.attempt, job.max_retries
    claimed_at = extras.claimed_at if extras is not None else 0
    since = job.started_at or claimed_at  # a worker that claims ahead reports later that it has started
    view.since, view.lease_expires_at = to_rfc3339_or_none(since), to_rfc3339(job.lease_expires_at)
    view.reason = "RUNNING"
    doing = "it is running" if job.started_at else "it is claimed and has not started"
    lease = f"its lease ends at {_when(job.lease_expires_at)}"
    view.message = f"{doing}: worker {view.worker_id} has had it since {_when(since)}, {lease}"
    if extras is not None and extras.cancel_at:
        view.reason, view.until = "CANCELLING", to_rfc3339(extras.cancel_at)
        view.message += f"; it was asked to stop and will be cancelled by {_when(extras.cancel_at)}"


def _of_completed(tables: Tables, job: Job, view: WhyView) -> None:
    view.reason, view.since = "COMPLETED", to_rfc3339(job.completed_at)
    view.message = f"it completed at {_when(job.completed_at)}"


def _of_dead(tables: Tables, job: Job, view: WhyView) -> None:
    _tell_attempts(tables, job, view)
    view.reason, view.since = "DEAD", to_rfc3339_or_none(job.failed_at)
    view.message = f"it died at {_when(job.failed_at)}, {_after_error(job, view)}; retry it to run it again"


def _of_cancelled(tables: Tables, job: Job, view: WhyView) -> None:
    _tell_attempts(tables, job, view)
    view.reason, view.since = "CANCELLED", to_rfc3339_or_none(job.failed_at)
    view.message = f"it was cancelled at {_when(job.failed_at)}; retry it to run it again"


_EXPLAIN: dict[State, Callable[[Tables, Job, WhyView], None]] = {
    State.SCHEDULED: _of_scheduled,
    State.RETRYING: _of_retrying,
    State.HELD: _of_held,
    State.ACTIVE: _of_active,
    State.COMPLETED: _of_completed,
    State.DEAD: _of_dead,
    State.CANCELLED: _of_cancelled,
}


def _tell_attempts(tables: Tables, job: Job, view: WhyView) -> None:
    view.attempt, view.max_retries = job.attempt, job.max_retries
    errors = tables.errors(job.id)
    if errors:
        view.last_error = errors[-1].error


def _after_error(job: Job, view: WhyView) -> str:
    tried = f"after attempt {job.attempt} of {job.max_retries}"
    return f"{tried}: {view.last_error}" if view.last_error else tried


def _when(moment_ns: int) -> str:
    """To the second, for the message; the exact time is in its own field."""
    return f"{to_rfc3339(moment_ns)[:19]}Z" if moment_ns else "an unknown time"


def _span(span_ns: int) -> str:
    seconds = max(span_ns, 0) // 1_000_000_000
    return f"{seconds} s" if seconds < 120 else str(timedelta(seconds=seconds))


def _plan(context: PlanContext, body: None, job_id: str) -> Plan:
    def conclude(results: list[Any]) -> Answer:
        return Answer(200, results[0])

    return Plan([(context.shard_of_job(job_id), Why(job_id))], conclude)


ENDPOINTS = (
    Endpoint(
        name="why",
        access="jobs:read",
        method="GET",
        path="/jobs/{job_id}/why",
        summary="Why a job is not running",
        answers={200: WhyView},
        refusals=("JOB_NOT_FOUND",),
        plan=_plan,
    ),
)
