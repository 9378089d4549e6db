"""The promises, as functions from what was promised and what is held to a list of violations.

Pure, so that each can be shown to bite: `tests/chaos/test_checkers.py` breaks every promise once.
"""

import sqlite3
from collections.abc import Iterable

from chaos.state import Held
from chaos.workload import History
from corvo.job import Job
from corvo.lifecycle import STATE_NAMES, State
from corvo.moments import to_rfc3339, to_rfc3339_or_none
from corvo.retry import BACKOFF_NAMES


def lost_jobs(history: History, held: Held) -> list[str]:
    """Promise 1: every acknowledged enqueue is there."""
    return [f"{job_id} was acknowledged and is gone" for job_id in sorted(history.enqueued - held.jobs.keys())]


def completed_twice(history: History, held: Held) -> list[str]:
    """Promise 3: a job completes once, under one lease; and what was acked is completed."""
    faults = []
    for job_id, tokens in sorted(history.acked.items()):
        if len(tokens) != 1:
            faults.append(f"{job_id} was completed under the leases {sorted(tokens)}")
        job = held.jobs.get(job_id)
        if job is None or job.state != State.COMPLETED:
            faults.append(f"{job_id} was acked and is {'gone' if job is None else STATE_NAMES[job.state]}")
        elif job.lease_token not in tokens:
            faults.append(f"{job_id} was acked under {sorted(tokens)}, its newest lease is {job.lease_token}")
    return faults


def reused_leases(history: History) -> list[str]:
    """Promise 2: a lease token never goes back, and belongs to one worker. Seeing it twice by the same worker is the
    repetition of a fetch whose answer was lost."""
    faults = []
    for job_id, claims in sorted(history.claims.items()):
        owners: dict[int, str] = {}
        for token, worker in claims:
            if owners.setdefault(token, worker) != worker:
                faults.append(f"{job_id}: lease {token} was given to {owners[token]} and to {worker}")
    return faults


def wrong_counts(held: Held) -> list[str]:
    """Queue counters equal what is counted job by job."""
    faults = []
    for name, queue in sorted(held.queues.items()):
        jobs = [job for job in held.jobs.values() if job.queue == name]
        counted = [sum(job.state == state for job in jobs) for state in State]
        if counted != queue.counts:
            faults.append(f"queue {name} says {queue.counts}, its jobs say {counted}")
        if queue.completed != counted[State.COMPLETED]:
            faults.append(f"queue {name} completed {queue.completed}, {counted[State.COMPLETED]} jobs are completed")
    return faults


def unlike_errors(held: Held, errors: Iterable[sqlite3.Row]) -> list[str]:
    """Promise 6, for the failures that were recorded."""
    rows = {(row["job_id"], row["claim"]): (row["attempt"], row["error"], row["created_at"]) for row in errors}
    kept = {key: (one.attempt, one.error, to_rfc3339(one.created_at)) for key, one in held.errors.items()}
    return [
        f"error {key} is {rows.get(key)} in read.db and {kept.get(key)} in its shard"
        for key in sorted(rows.keys() | kept.keys())
        if rows.get(key) != kept.get(key)
    ]


def unlike_workers(held: Held, workers: Iterable[sqlite3.Row]) -> list[str]:
    rows = {(row["id"], row["shard"]): (row["hostname"] or "", row["last_heartbeat"]) for row in workers}
    kept = {key: (one.hostname, to_rfc3339(one.last_seen_at)) for key, one in held.workers.items()}
    return [
        f"worker {key} is {rows.get(key)} in read.db and {kept.get(key)} in its shard"
        for key in sorted(rows.keys() | kept.keys())
        if rows.get(key) != kept.get(key)
    ]


def unlike_rows(held: Held, jobs: Iterable[sqlite3.Row], queues: Iterable[sqlite3.Row]) -> list[str]:
    """Promise 6: read.db equals the shards' state, row for row."""
    faults = []
    rows = {row["id"]: row for row in jobs}
    for job_id in sorted(rows.keys() ^ held.jobs.keys()):
        faults.append(f"job {job_id} is only in {'read.db' if job_id in rows else 'its shard'}")
    for job_id in sorted(rows.keys() & held.jobs.keys()):
        faults += [
            f"job {job_id}: {column} is {rows[job_id][column]!r} in read.db and {value!r} in its shard"
            for column, value in _row_of(held.jobs[job_id]).items()
            if rows[job_id][column] != value
        ]
    counts = {row["name"]: row for row in queues}
    for name in sorted(counts.keys() ^ held.queues.keys()):
        faults.append(f"queue {name} is only in {'read.db' if name in counts else 'its shard'}")
    for name in sorted(counts.keys() & held.queues.keys()):
        for state in State:
            stored, exact = counts[name][STATE_NAMES[state]], held.queues[name].counts[state]
            if stored != exact:
                faults.append(f"queue {name}: {STATE_NAMES[state]} is {stored} in read.db and {exact} in its shard")
    return faults


def _row_of(job: Job) -> dict[str, object]:
    """Written down a second time on purpose: a checker that shares the mirror's code shares its mistakes."""
    return {
        "queue": job.queue,
        "state": STATE_NAMES[job.state],
        "payload": job.payload.decode(),
        "priority": int(job.priority),
        "attempt": job.attempt,
        "max_retries": job.max_retries,
        "retry_backoff": BACKOFF_NAMES[job.backoff],
        "retry_base_delay_ms": job.base_delay_ms,
        "retry_max_delay_ms": job.max_delay_ms,
        "worker_id": job.worker_id or None,
        "hostname": job.hostname or None,
        "tags": job.tags.decode() or None,
        "progress": job.progress.decode() or None,
        "checkpoint": job.checkpoint.decode() or None,
        "result": job.result.decode() or None,
        "created_at": to_rfc3339(job.created_at),
        "started_at": to_rfc3339_or_none(job.started_at),
        "completed_at": to_rfc3339_or_none(job.completed_at),
        "failed_at": to_rfc3339_or_none(job.failed_at),
    }
