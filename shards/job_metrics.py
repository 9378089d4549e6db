"""What a shard counts about its jobs: how many came and ended, how long they waited and ran.

Counted from the events of an entry, by the leader alone: each entry has one leader, so the figures of all nodes add up
to those of the cluster. Times are read from a bounded sample of an entry's jobs, each weighted, so that a batch of a
thousand jobs costs no more than one of thirty.
"""

from collections.abc import Callable

from corvo.model.events import EventKind
from corvo.model.job import Job
from corvo.queries.cluster import Histogram, JobFigures
from corvo.state.tables import Tables

SAMPLED_PER_ENTRY = 32
_SECONDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1800.0, 3600.0, 21600.0]

_ENQUEUED = EventKind.ENQUEUED  # to look up an enum's member is a call, and every job comes this way
_STARTED = EventKind.STARTED
_COMPLETED = EventKind.COMPLETED
_FAILED = EventKind.FAILED
_DEAD = frozenset({EventKind.DEAD, EventKind.EXPIRED, EventKind.REJECTED})  # each of these ends a job as dead


def job_figures() -> JobFigures:
    return JobFigures(wait_s=_times(), run_s=_times())


def _times() -> Histogram:
    return Histogram(_SECONDS, [0] * (len(_SECONDS) + 1))


def count_jobs(figures: JobFigures, tables: Tables) -> None:
    """Of the entry that was just applied."""
    started: list[str] = []
    completed: list[str] = []
    for event in tables.event_log.told:
        kind = event.kind
        if kind is _ENQUEUED:
            figures.enqueued += 1
        elif kind is _STARTED:
            started.append(event.job_id)
        elif kind is _COMPLETED:
            completed.append(event.job_id)
        elif kind is _FAILED:
            figures.failed += 1
        elif kind in _DEAD:
            figures.dead += 1
    figures.completed += len(completed)
    if started:
        _sample(figures.wait_s, tables, started, _waited_ns)
    if completed:
        _sample(figures.run_s, tables, completed, _ran_ns)


def _sample(histogram: Histogram, tables: Tables, job_ids: list[str], span_ns: Callable[[Job], int | None]) -> None:
    step = -(-len(job_ids) // SAMPLED_PER_ENTRY)
    for first in range(0, len(job_ids), step):
        job = tables.find_job(job_ids[first])
        span = None if job is None else span_ns(job)
        if span is not None:
            histogram.observe(max(span, 0) / 1e9, min(step, len(job_ids) - first))


def _waited_ns(job: Job) -> int | None:
    """From when it could be claimed to its first claim. A later claim follows a failure or a person's wish: no wait."""
    if job.lease_token != 1:
        return None
    claimed_at = job.started_at or (job.extras.claimed_at if job.extras is not None else 0)
    return claimed_at - max(job.created_at, job.due_at) if claimed_at else None


def _ran_ns(job: Job) -> int | None:
    return job.completed_at - job.started_at if job.started_at and job.completed_at else None
