"""A checker that cannot fail proves nothing: each promise is broken here once, and must be noticed."""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing

import msgspec

from chaos import checkers
from chaos.state import Held
from chaos.workload import History
from corvo.model.job import Controls, Job, JobError, Minute, Priority, Worker, new_queue
from corvo.model.job_extras import Chain, ChainStep, JobExtras
from corvo.model.lifecycle import State
from corvo.model.retry import Backoff
from corvo.rules.batches import Batch
from corvo.state.schedules import CatchUp, JobTemplate, Schedule


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
    return (
        as_rows([{"id": job.id, "shard": 0, **checkers.job_row(job)} for job in held.jobs.values()]),
        as_rows([{"name": queue.name, **checkers.queue_row(queue)} for queue in held.queues.values()]),
    )


def as_rows(rows: Sequence[Mapping[str, object]]) -> list[sqlite3.Row]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.row_factory = sqlite3.Row
        selects = [f"SELECT {', '.join(f'? AS {column}' for column in row)}" for row in rows]
        values = [value for row in rows for value in row.values()]
        return connection.execute(" UNION ALL ".join(selects), values).fetchall()


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


NAMES = {"id", "job_id", "claim", "shard"}


def every_change_is_noticed(
    check: Callable[[list[sqlite3.Row]], list[str]], row: dict[str, object], names: set[str] = NAMES
) -> None:
    """A row that is missing, one too many, and one with any column changed."""
    assert check(as_rows([row])) == []
    assert check([]) != []
    for column in row.keys() - names:
        assert check(as_rows([row | {column: "changed"}])) != [], column
    for name in row.keys() & names:
        assert check(as_rows([row, row | {name: "other" if isinstance(row[name], str) else 9}])) != [], name


def test_a_recorded_failure_that_differs_is_noticed() -> None:
    error = JobError("j", 1, 1, "no", "", 10**18, "w", 10**18, queue="q")
    held = Held(errors={("j", 1): error})

    row = {"job_id": "j", "claim": 1, **checkers.error_row(error)}
    every_change_is_noticed(lambda rows: checkers.unlike_errors(held, rows), row)


def test_a_minute_that_differs_is_noticed() -> None:
    minute = Minute("q", 7, 4, 3, 2, 1)
    held = Held(minutes={("q", 7): minute})

    row = {"queue": "q", "minute": 7, **checkers.minute_row(minute)}
    every_change_is_noticed(lambda rows: checkers.unlike_minutes(held, rows), row, {"queue", "minute"})


def test_a_worker_that_differs_is_noticed() -> None:
    worker = Worker("w", "host", ["q", "r"], 10**18, 10**18, 4, "2")
    held = Held(workers={("w", 0): worker})

    row = {"id": "w", "shard": 0, **checkers.worker_row(worker)}
    every_change_is_noticed(lambda rows: checkers.unlike_workers(held, rows), row)


def test_a_batch_that_differs_is_noticed() -> None:
    batch = Batch("b", 10**18, ChainStep("q"), total=3, ended=[1, 0, 0, 0])
    held = Held(batches={"b": batch})

    every_change_is_noticed(lambda rows: checkers.unlike_batches(held, rows), {"id": "b", **checkers.batch_row(batch)})


def test_a_schedule_that_differs_is_noticed() -> None:
    terms = JobTemplate("q", "* * * * *", "UTC", b"{}", Priority.NORMAL, 3, b"", "", 0, CatchUp.SKIP, 1)
    schedule = Schedule("s", "name", terms, 10**18, 10**18, 10**18, 10**18)
    held = Held(schedules={"s": schedule})

    row = {"id": "s", **checkers.schedule_row(schedule)}
    every_change_is_noticed(lambda rows: checkers.unlike_schedules(held, rows), row)


def test_a_job_in_two_places_or_the_wrong_one_is_noticed() -> None:
    job = a_job(1)
    held = Held(jobs={job.id: job}, places={(job.id, 0)})
    here, there = ({"id": job.id, "shard": shard} for shard in (0, 1))

    assert checkers.misplaced_jobs(held, as_rows([here])) == []
    assert checkers.misplaced_jobs(held, as_rows([there])) != []
    assert checkers.misplaced_jobs(held, as_rows([here, there])) != []
    held.places.add((job.id, 1))
    assert checkers.misplaced_jobs(held, as_rows([here, there])) == [f"job {job.id} is on 2 shards"]


def test_bonds_and_controls_that_differ_are_noticed() -> None:
    chain = Chain("c", 1, (ChainStep("a"), ChainStep("b", b'{"x": 1}')), on_exit=ChainStep("e"))
    extras = JobExtras(unique_key="k", batch_id="b", chain=chain, expire_at=10**18, hold_reason="r")
    held = held_with(msgspec.structs.replace(a_job(1), extras=extras))
    held.queues["q"].controls = Controls(True, True, 1, 2, 3, (4, 5, 6))
    jobs, queues = rows_like(held)

    assert checkers.unlike_rows(held, jobs, queues) == []
    assert len(checkers.unlike_rows(held_with(a_job(1)), jobs, queues)) == 7 + 8


def test_only_a_job_that_waits_for_its_moment_has_one_in_its_row() -> None:
    moments = {}
    for state in (State.SCHEDULED, State.RETRYING, State.PENDING, State.COMPLETED):
        job = msgspec.structs.replace(a_job(1, state), due_at=10**18)
        moments[state.name] = checkers.job_row(job)["scheduled_at"]

    moment = "2001-09-09T01:46:40.000000000Z"
    assert moments == {"SCHEDULED": moment, "RETRYING": moment, "PENDING": None, "COMPLETED": None}


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
