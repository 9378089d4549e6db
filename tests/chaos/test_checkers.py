"""A checker that cannot fail proves nothing: each promise is broken here once, and must be noticed."""

import sqlite3

import msgspec

from chaos import checkers
from chaos.state import Held
from chaos.workload import History
from corvo.job import Job, JobError, Priority, Worker, new_queue
from corvo.lifecycle import State
from corvo.moments import to_rfc3339
from corvo.retry import Backoff


def a_job(number: int, state: State = State.COMPLETED, token: int = 1) -> Job:
    return Job(
        id=f"s00_job_{number:026d}",
        queue="q",
        state=state,
        priority=Priority.NORMAL,
        payload=b"{}",
        max_retries=3,
        backoff=Backoff.FIXED,
        base_delay_ms=1,
        max_delay_ms=1,
        created_at=10**18,
        lease_token=token,
    )


def held_with(*jobs: Job) -> Held:
    queue = new_queue("q", 10**18)
    for job in jobs:
        queue.counts[job.state] += 1
        queue.completed += job.state == State.COMPLETED
    return Held(jobs={job.id: job for job in jobs}, queues={"q": queue})


def rows_like(held: Held) -> tuple[list[sqlite3.Row], list[sqlite3.Row]]:
    """Rows as SQLite would return them, made from what is held."""
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    tables = []
    for rows in (
        [{"id": job.id, **checkers._row_of(job)} for job in held.jobs.values()],
        [
            {"name": queue.name, **{state.name.lower(): queue.counts[state] for state in State}}
            for queue in held.queues.values()
        ],
    ):
        selects = [f"SELECT {', '.join(f'? AS {column}' for column in row)}" for row in rows]
        values = [value for row in rows for value in row.values()]
        tables.append(connection.execute(" UNION ALL ".join(selects), values).fetchall())
    connection.close()
    return tables[0], tables[1]


def test_a_lost_job_is_noticed() -> None:
    job = a_job(1)
    assert checkers.lost_jobs(History(enqueued={job.id}), held_with(job)) == []
    assert checkers.lost_jobs(History(enqueued={job.id}), held_with()) != []


def test_a_job_completed_under_two_leases_is_noticed() -> None:
    job = a_job(1)
    assert checkers.completed_twice(History(acked={job.id: {1}}), held_with(job)) == []
    assert checkers.completed_twice(History(acked={job.id: {1, 2}}), held_with(job)) != []


def test_an_acked_job_that_is_not_completed_is_noticed() -> None:
    job = a_job(1, State.ACTIVE)
    assert checkers.completed_twice(History(acked={job.id: {1}}), held_with(job)) != []
    assert checkers.completed_twice(History(acked={job.id: {1}}), held_with()) != []


def test_an_ack_under_an_old_lease_is_noticed() -> None:
    assert checkers.completed_twice(History(acked={a_job(1).id: {1}}), held_with(a_job(1, token=2))) != []


def test_a_lease_given_to_two_workers_is_noticed() -> None:
    assert checkers.reused_leases(History(claims={"j": [(1, "a"), (2, "b"), (2, "b"), (3, "a")]})) == []
    assert checkers.reused_leases(History(claims={"j": [(1, "a"), (1, "b")]})) != []


def test_a_recorded_failure_or_worker_that_differs_is_noticed() -> None:
    error = JobError("j", 1, 1, "no", "", 10**18)
    worker = Worker("w", "host", ["q"], 10**18, 10**18)
    held = Held(errors={("j", 1): error}, workers={("w", 0): worker})
    row = {"job_id": "j", "claim": 1, "attempt": 1, "error": "no", "created_at": to_rfc3339(10**18)}
    seen = {"id": "w", "shard": 0, "hostname": "host", "last_heartbeat": to_rfc3339(10**18)}

    assert checkers.unlike_errors(held, [row]) == checkers.unlike_workers(held, [seen]) == []  # type: ignore[list-item]
    assert checkers.unlike_errors(held, []) != []
    assert checkers.unlike_errors(held, [row | {"error": "yes"}]) != []  # type: ignore[list-item]
    assert checkers.unlike_workers(held, []) != []
    assert checkers.unlike_workers(held, [seen | {"hostname": "other"}]) != []  # type: ignore[list-item]


def test_a_wrong_count_is_noticed() -> None:
    held = held_with(a_job(1))
    assert checkers.wrong_counts(held) == []
    held.queues["q"].counts[State.PENDING] = 1
    assert checkers.wrong_counts(held) != []


def test_a_row_that_differs_is_missing_or_too_many_is_noticed() -> None:
    held = held_with(a_job(1), a_job(2))
    jobs, queues = rows_like(held)
    assert checkers.unlike_rows(held, jobs, queues) == []
    assert checkers.unlike_rows(held, jobs[:1], queues) != []
    assert checkers.unlike_rows(held_with(a_job(1)), jobs, queues) != []
    changed = held_with(a_job(1), msgspec.structs.replace(a_job(2), attempt=7))
    assert checkers.unlike_rows(changed, jobs, queues) != []
    counted = held_with(a_job(1), a_job(2))
    counted.queues["q"].counts[State.DEAD] = 1
    assert checkers.unlike_rows(counted, jobs, queues) != []
