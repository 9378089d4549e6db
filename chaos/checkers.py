"""The promises, as functions from the recorded history and the final state to a list of violations.

Pure, so that each can be shown to fail: `tests/chaos/test_checkers.py` breaks every promise once.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from chaos.state import Held
from chaos.workload import History
from corvo.model.fingerprint import fingerprint
from corvo.model.job import Controls, Job, JobError, Minute, Queue, Worker
from corvo.model.job_extras import Chain, ChainStep, JobExtras
from corvo.model.lifecycle import STATE_NAMES, State
from corvo.model.retry import BACKOFF_NAMES
from corvo.model.timestamps import LATEST_NS, to_rfc3339, to_rfc3339_or_none
from corvo.rules.batches import Batch
from corvo.state.schedules import Schedule

T = TypeVar("T")


def lost_jobs(history: History, held: Held) -> list[str]:
    """Promise 1: every acknowledged job exists."""
    return [f"{job_id} was acknowledged and is gone" for job_id in sorted(history.enqueued - held.jobs.keys())]


def completed_twice(history: History, held: Held) -> list[str]:
    """Promise 3: a job completes once, under one lease; and an acked job is completed."""
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
    """Promise 2: a lease token never decreases, and belongs to one worker. The same worker may see it twice: it repeats
    a fetch whose answer was lost."""
    faults = []
    for job_id, claims in sorted(history.claims.items()):
        owners: dict[int, str] = {}
        for token, worker in claims:
            if owners.setdefault(token, worker) != worker:
                faults.append(f"{job_id}: lease {token} was given to {owners[token]} and to {worker}")
    return faults


def wrong_counts(held: Held) -> list[str]:
    """The counters of each queue equal the number of its jobs."""
    faults = []
    for name, queue in sorted(held.queues.items()):
        jobs = [job for job in held.jobs.values() if job.queue == name]
        counted = [sum(job.state == state for job in jobs) for state in State]
        if counted != queue.counts:
            faults.append(f"queue {name} says {queue.counts}, its jobs say {counted}")
        if queue.completed != counted[State.COMPLETED]:
            faults.append(f"queue {name} completed {queue.completed}, {counted[State.COMPLETED]} jobs are completed")
    return faults


def misplaced_jobs(held: Held, jobs: Iterable[sqlite3.Row]) -> list[str]:
    """Promise 6, for moved jobs: each is on one shard and has one row, from that shard."""
    rows = {(row["id"], row["shard"]) for row in jobs}
    shards = Counter(job_id for job_id, _ in held.places)
    faults = [f"job {job_id} is on {count} shards" for job_id, count in sorted(shards.items()) if count > 1]
    return faults + [
        f"job {job_id} of shard {shard} is only in {'read.db' if (job_id, shard) in rows else 'its shard'}"
        for job_id, shard in sorted(rows ^ held.places)
    ]


def unlike_rows(held: Held, jobs: Iterable[sqlite3.Row], queues: Iterable[sqlite3.Row]) -> list[str]:
    """Promise 6: read.db equals the shards' state, row for row."""
    return [
        *_unlike("job", {row["id"]: row for row in jobs}, held.jobs, job_row),
        *_unlike("queue", {row["name"]: row for row in queues}, held.queues, queue_row),
    ]


def unlike_errors(held: Held, errors: Iterable[sqlite3.Row]) -> list[str]:
    """Promise 6, for recorded failures."""
    return _unlike("error", {(row["job_id"], row["claim"]): row for row in errors}, held.errors, error_row)


def unlike_minutes(held: Held, minutes: Iterable[sqlite3.Row]) -> list[str]:
    return _unlike("minute", {(row["queue"], row["minute"]): row for row in minutes}, held.minutes, minute_row)


def unlike_workers(held: Held, workers: Iterable[sqlite3.Row]) -> list[str]:
    return _unlike("worker", {(row["id"], row["shard"]): row for row in workers}, held.workers, worker_row)


def unlike_batches(held: Held, batches: Iterable[sqlite3.Row]) -> list[str]:
    return _unlike("batch", {row["id"]: row for row in batches}, held.batches, batch_row)


def unlike_schedules(held: Held, schedules: Iterable[sqlite3.Row]) -> list[str]:
    return _unlike("schedule", {row["id"]: row for row in schedules}, held.schedules, schedule_row)


def _unlike(
    kind: str, rows: dict[Any, sqlite3.Row], kept: dict[Any, T], row_of: Callable[[T], dict[str, object]]
) -> list[str]:
    faults = [
        f"{kind} {key} is only in {'read.db' if key in rows else 'its shard'}"
        for key in sorted(rows.keys() ^ kept.keys())
    ]
    for key in sorted(rows.keys() & kept.keys()):
        faults += [
            f"{kind} {key}: {column} is {rows[key][column]!r} in read.db and {value!r} in its shard"
            for column, value in row_of(kept[key]).items()
            if rows[key][column] != value
        ]
    return faults


# A second implementation of the rows, on purpose: a checker that shares the mirror's code shares its bugs.


def job_row(job: Job) -> dict[str, object]:
    extras = job.extras or JobExtras()
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
        "parent_id": job.parent_id or None,
        "lease_expires_at": to_rfc3339(job.lease_expires_at) if job.state == State.ACTIVE else None,
        "scheduled_at": to_rfc3339_or_none(job.due_at) if _has_moment(job) else None,
        "created_at": to_rfc3339(job.created_at),
        "started_at": to_rfc3339_or_none(job.started_at),
        "completed_at": to_rfc3339_or_none(job.completed_at),
        "failed_at": to_rfc3339_or_none(job.failed_at),
        "unique_key": extras.unique_key or None,
        "batch_id": extras.batch_id or None,
        "chain_id": extras.chain.id if extras.chain else None,
        "chain_step": extras.chain.step if extras.chain else None,
        "chain_config": _chain_text(extras.chain) if extras.chain else None,
        "expire_at": to_rfc3339_or_none(extras.expire_at),
        "hold_reason": extras.hold_reason or None,
    }


def _has_moment(job: Job) -> bool:
    """A job with dependencies has LATEST_NS as its due time, which is no date."""
    return job.state in (State.SCHEDULED, State.RETRYING) and job.due_at != LATEST_NS


def _chain_text(chain: Chain) -> str:
    steps = ",".join(_step_text(step) for step in chain.steps)
    on_failure, on_exit = (_step_text(step) if step else "null" for step in (chain.on_failure, chain.on_exit))
    return f'{{"steps":[{steps}],"on_failure":{on_failure},"on_exit":{on_exit}}}'


def _step_text(step: ChainStep) -> str:
    """Keeps the payload byte for byte; a queue's name needs no escape."""
    return f'{{"queue":"{step.queue}","payload":{step.payload.decode()}}}'


def error_row(error: JobError) -> dict[str, object]:
    return {
        "attempt": error.attempt,
        "error": error.error,
        "backtrace": error.backtrace or None,
        "created_at": to_rfc3339(error.created_at),
        "worker_id": error.worker_id or None,
        "started_at": to_rfc3339_or_none(error.started_at),
        "queue": error.queue,
        "fingerprint": None if error.is_interrupted else fingerprint(error.error),
    }


def minute_row(minute: Minute) -> dict[str, object]:
    return {
        "enqueued": minute.enqueued,
        "completed": minute.completed,
        "failed": minute.failed,
        "dead": minute.died,
    }


def queue_row(queue: Queue) -> dict[str, object]:
    controls = queue.controls or Controls()
    retention = [None if span_ms == -1 else span_ms for span_ms in controls.retention_ms]
    return {
        **{STATE_NAMES[state]: queue.counts[state] for state in State},
        "created_at": to_rfc3339(queue.created_at),
        "enqueued": queue.enqueued,
        "completed_total": queue.completed,
        "failed": queue.failed,
        "dead_total": queue.died,
        "minute": queue.began[0],
        "minute_enqueued": queue.began[1],
        "minute_completed": queue.began[2],
        "minute_failed": queue.began[3],
        "minute_dead": queue.began[4],
        "paused": 1 if controls.is_paused else 0,
        "draining": 1 if controls.is_draining else 0,
        "max_concurrency": controls.max_concurrency or None,
        "rate_limit": controls.rate or None,
        "rate_window_ms": controls.window_ms or None,
        "retention_completed_ms": retention[0],
        "retention_dead_ms": retention[1],
        "retention_cancelled_ms": retention[2],
    }


def worker_row(worker: Worker) -> dict[str, object]:
    return {
        "hostname": worker.hostname or None,
        "queues": json.dumps(worker.queues, separators=(",", ":")),
        "last_heartbeat": to_rfc3339(worker.last_seen_at),
        "started_at": to_rfc3339(worker.started_at or worker.last_seen_at),
        "pool_size": worker.pool_size or None,
        "version": worker.version or None,
    }


def batch_row(batch: Batch) -> dict[str, object]:
    completed, dead, cancelled, deleted = batch.ended
    state = "open"
    if batch.is_sealed:
        state = "completed" if batch.finished_at else "sealed"
    return {
        "state": state,
        "description": batch.description or None,
        "total": batch.total,
        "pending": batch.total - completed - dead - cancelled - deleted,
        "succeeded": completed,
        "failed": dead + cancelled + deleted,
        "dead": dead,
        "cancelled": cancelled,
        "deleted": deleted,
        "on_complete": _step_text(batch.on_complete) if batch.on_complete else None,
        "on_success": _step_text(batch.on_success) if batch.on_success else None,
        "on_failure": _step_text(batch.on_failure) if batch.on_failure else None,
        "created_at": to_rfc3339(batch.created_at),
        "finished_at": to_rfc3339_or_none(batch.finished_at),
    }


def schedule_row(schedule: Schedule) -> dict[str, object]:
    terms = schedule.terms
    return {
        "name": schedule.name,
        "queue": terms.queue,
        "cron": terms.cron,
        "timezone": terms.timezone,
        "payload": terms.payload.decode(),
        "unique_key": terms.unique_key or None,
        "max_retries": terms.max_retries,
        "last_run": to_rfc3339_or_none(schedule.last_slot),
        "next_run": None if schedule.is_paused else to_rfc3339_or_none(schedule.next_at),
        "created_at": to_rfc3339(schedule.created_at),
        "updated_at": to_rfc3339(schedule.updated_at),
        "paused": 1 if schedule.is_paused else 0,
        "priority": int(terms.priority),
        "tags": terms.tags.decode() or None,
        "catch_up": ("skip", "last", "all")[terms.catch_up],
        "catch_up_max": terms.catch_up_max,
        "fired": schedule.fired,
    }
