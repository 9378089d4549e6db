"""The views: columns and meaning, on both databases."""

import json

import pytest

from corvo.model.job import JobError, Priority, Worker, encode, new_queue
from corvo.model.job_extras import ChainStep, JobExtras
from corvo.model.lifecycle import State
from corvo.model.timestamps import parse_rfc3339, to_rfc3339
from corvo.rules.batches import Batch
from corvo.state import keys
from corvo.state.locks import Lock
from tests.gateway.search.conftest import Written
from tests.support.builders import NOW, a_job, job_id

SECOND = 10**9
TASKS = """
id type payload status priority idempotency_key worker_id created_at claimed_at started_at completed_at updated_at
attempts max_retries last_error next_retry_at
"""
WORKERS = "id hostname started_at last_heartbeat pool_size version is_leader leader_until"


@pytest.fixture
def written(kept_place):
    made = Written(kept_place)
    yield made
    made.close()


def task(written, *columns):
    (row,) = written.place.read(f"SELECT {', '.join(columns)} FROM tasks")
    return row


def moment(value):
    """Both databases' idea of one."""
    return value[:19] if isinstance(value, str) else value and value.strftime("%Y-%m-%dT%H:%M:%S")


@pytest.mark.parametrize(("view", "columns"), [("tasks", TASKS), ("task_workers", WORKERS)])
def test_a_view_has_exactly_these_columns_in_this_order(written, view, columns):
    assert written.place.columns(view) == columns.split()


@pytest.mark.parametrize(
    ("state", "started_at", "status"),
    [
        (State.PENDING, 0, "pending"),
        (State.SCHEDULED, 0, "pending"),
        (State.RETRYING, NOW, "pending"),
        (State.HELD, 0, "pending"),
        (State.ACTIVE, 0, "claimed"),
        (State.ACTIVE, NOW, "running"),
        (State.COMPLETED, NOW, "completed"),
        (State.DEAD, NOW, "dead_letter"),
        (State.CANCELLED, 0, "failed"),
    ],
)
def test_every_state_has_a_status(written, state, started_at, status):
    written.put(a_job(1, state=state, started_at=started_at))

    assert task(written, "id", "type", "status") == (job_id(1), "mail", status)


@pytest.mark.parametrize(("priority", "number"), [(Priority.CRITICAL, 2), (Priority.HIGH, 1), (Priority.NORMAL, 0)])
def test_a_higher_number_is_more_urgent(written, priority, number):
    written.put(a_job(1, priority=priority))

    assert task(written, "priority") == (number,)


def test_moments_are_those_of_the_job(written):
    at = [NOW + number * SECOND for number in range(4)]
    extras = JobExtras(claimed_at=at[1])
    written.put(a_job(1, state=State.COMPLETED, created_at=at[0], extras=extras, started_at=at[2], completed_at=at[3]))

    found = task(written, "created_at", "claimed_at", "started_at", "completed_at", "updated_at", "next_retry_at")

    assert [moment(one) for one in found] == [*[to_rfc3339(one)[:19] for one in (*at, at[3])], None]


def test_a_claim_in_one_step_is_also_its_start(written):
    written.put(a_job(1, state=State.ACTIVE, started_at=NOW + SECOND))

    claimed_at, started_at = task(written, "claimed_at", "started_at")

    assert claimed_at == started_at is not None


def test_the_end_of_a_dead_task_is_its_last_failure(written):
    written.put(a_job(1, state=State.DEAD, started_at=NOW, failed_at=NOW + SECOND))

    assert moment(task(written, "completed_at")[0]) == to_rfc3339(NOW + SECOND)[:19]


def test_a_task_that_waits_for_its_next_attempt_says_when_and_why(written):
    written.put(
        a_job(1, state=State.RETRYING, attempt=2, due_at=NOW + SECOND, failed_at=NOW),
        JobError(job_id(1), 1, 1, "first", "", NOW),
        JobError(job_id(1), 2, 2, "second", "", NOW),
    )

    attempts, last_error, next_retry_at, completed_at = task(
        written, "attempts", "last_error", "next_retry_at", "completed_at"
    )

    assert (attempts, last_error, completed_at) == (2, "second", None)
    assert moment(next_retry_at) == to_rfc3339(NOW + SECOND)[:19]


def test_a_scheduled_task_has_not_failed_yet(written):
    written.put(a_job(1, state=State.SCHEDULED, due_at=NOW + SECOND))

    assert task(written, "next_retry_at", "last_error") == (None, None)


@pytest.mark.parametrize(
    ("extras", "key"),
    [(JobExtras(idempotency_key="i", unique_key="u"), "i"), (JobExtras(unique_key="u"), "u"), (None, None)],
)
def test_the_key_is_the_one_that_was_given(written, extras, key):
    written.put(a_job(1, extras=extras))

    assert task(written, "idempotency_key") == (key,)


@pytest.mark.parametrize("payload", [b'{"a":[1,"\\u0000"]}', b'"text"', b"null", b"1e5"])
def test_any_payload_can_be_read(written, payload):
    written.put(a_job(1, payload=payload))

    (found,) = task(written, "CAST(payload AS TEXT)")

    expected = json.loads(payload)
    if isinstance(expected, dict):
        expected["a"][1] = written.place.stored(expected["a"][1])
    assert json.loads(found) == expected


def test_a_worker_is_one_however_many_shards_know_it(written):
    written.put(Worker("w1", "host", ["mail"], NOW, NOW + SECOND, 4, "1.2"), shard=0)
    written.put(Worker("w1", "host", ["sms"], NOW + SECOND, NOW + 2 * SECOND), shard=1)
    written.put(shard=0, presence=[Worker("w2", "", ["mail"], NOW, NOW)])

    columns = "id, hostname, started_at, last_heartbeat, pool_size, version, is_leader, leader_until"
    first, second = written.place.read(f"SELECT {columns} FROM task_workers ORDER BY id")

    assert (first[0], first[1], first[4], first[5]) == ("w1", "host", 4, "1.2")
    assert [moment(one) for one in first[2:4]] == [to_rfc3339(one)[:19] for one in (NOW, NOW + 2 * SECOND)]
    assert (second[0], second[1], second[4], second[5]) == ("w2", "", 0, None)
    assert all(not row[6] and row[7] is None for row in (first, second))


def events(written, condition):
    found = written.place.read(f"SELECT created_at, type, queue FROM events WHERE {condition}")
    return sorted((parse_rfc3339(at), kind, queue) for at, kind, queue in found)


def test_the_totals_of_a_queue_are_its_statistics(written):
    queue = new_queue("mail", NOW)
    queue.enqueued, queue.completed, queue.failed, queue.died = 9, 5, 3, 1
    written.put(queue)

    assert written.place.columns("queue_stats") == ["queue", "enqueued", "completed", "failed", "dead"]
    assert written.place.read("SELECT * FROM queue_stats") == [("mail", 9, 5, 3, 1)]


def test_a_window_has_a_row_for_each_claim(written):
    written.records((keys.claims_at("mail", NOW), encode(3)), (keys.claims_at("mail", NOW + 1), encode(1)))
    written.records((keys.claims_at("video", NOW), encode(2)))

    assert written.place.columns("rate_limit_window") == ["queue", "fetched_at"]
    count = "SELECT count(*) FROM rate_limit_window WHERE queue = 'mail' AND fetched_at"
    assert written.place.read(f"{count} > '{to_rfc3339(NOW)}'") == [(1,)]
    assert written.place.read(f"{count} >= '{to_rfc3339(NOW)}'") == [(4,)]

    written.records((keys.claims_at("mail", NOW), None))
    assert written.place.read(f"{count} >= '{to_rfc3339(NOW)}'") == [(1,)]


def test_a_lock_stands_with_its_holder_until_it_is_gone(written):
    key = keys.unique("mail", "user-42")
    written.records((key, encode(Lock(job_id(1), NOW + 5))))
    assert written.place.read("SELECT queue, unique_key, job_id, expires_at FROM unique_locks") == [
        ("mail", "user-42", job_id(1), to_rfc3339(NOW + 5))
    ]

    written.records((key, None))
    assert written.place.read("SELECT * FROM unique_locks") == []


def test_a_batch_shows_its_callback_in_the_seed_s_columns(written):
    callback = "SELECT callback_queue, callback_payload FROM batches"
    written.records((keys.batch("b1"), encode(Batch("b1", NOW))))
    assert written.place.read(callback) == [(None, None)]

    step = ChainStep("done", b'{"album":42}')
    written.records((keys.batch("b1"), encode(Batch("b1", NOW, on_complete=step))))
    assert written.place.read(callback) == [("done", '{"album":42}')]


def test_the_events_of_a_job_are_those_of_its_moments_and_errors(written):
    failed = JobError(job_id(1), 1, 1, "boom", "", NOW + 2, worker_id="w1", started_at=NOW + 1, queue="mail")
    written.put(failed, a_job(1, state=State.COMPLETED, created_at=NOW, started_at=NOW + 3, completed_at=NOW + 4))

    assert written.place.columns("events") == ["type", "job_id", "queue", "created_at"]
    assert events(written, f"job_id = '{job_id(1)}'") == [
        (NOW, "enqueued", "mail"),
        (NOW + 1, "started", "mail"),
        (NOW + 2, "failed", "mail"),
        (NOW + 3, "started", "mail"),
        (NOW + 4, "completed", "mail"),
    ]


@pytest.mark.parametrize(("state", "kind"), [(State.DEAD, "dead"), (State.CANCELLED, "cancelled")])
def test_an_attempt_that_failed_is_told_of_once(written, state, kind):
    failed = JobError(job_id(1), 1, 1, "boom", "", NOW + 2, worker_id="w1", started_at=NOW + 1, queue="mail")
    written.put(failed, a_job(1, state=state, created_at=NOW, started_at=NOW + 1, failed_at=NOW + 2))

    kinds = [found for _, found, _ in events(written, "queue = 'mail'")]
    assert sorted(kinds) == sorted(["enqueued", "started", "failed", kind])
