from corvo.job import JobError, Priority, Worker, encode, new_queue
from corvo.lifecycle import State
from corvo.moments import to_rfc3339
from corvo.state import keys
from gateway.mirror import rows
from gateway.mirror.rows import to_rows, to_stretch
from tests.support.builders import NOW, a_job, job_id


def named(columns, row):
    return dict(zip(columns, row, strict=True))


def test_a_job_becomes_a_row_with_names_and_text_moments():
    job = a_job(
        1,
        state=State.ACTIVE,
        priority=Priority.HIGH,
        payload=b'{"a": 1}',
        attempt=1,
        started_at=NOW + 5,
        lease_expires_at=NOW + 9,
        worker_id="w1",
        tags=b'{"t":"x"}',
    )

    row = named(rows.JOB_COLUMNS, rows.job_row(3, job))

    assert row == {
        "id": job_id(1),
        "shard": 3,
        "queue": "mail",
        "state": "active",
        "payload": '{"a": 1}',
        "priority": 1,
        "attempt": 1,
        "max_retries": 3,
        "retry_backoff": "exponential",
        "retry_base_delay_ms": 5_000,
        "retry_max_delay_ms": 600_000,
        "worker_id": "w1",
        "hostname": None,
        "tags": '{"t":"x"}',
        "progress": None,
        "checkpoint": None,
        "result": None,
        "parent_id": None,
        "lease_expires_at": "2026-01-01T00:00:00.000000009Z",
        "scheduled_at": None,
        "created_at": "2026-01-01T00:00:00.000000000Z",
        "started_at": "2026-01-01T00:00:00.000000005Z",
        "completed_at": None,
        "failed_at": None,
    }


def test_a_lease_that_is_over_is_not_shown():
    row = named(rows.JOB_COLUMNS, rows.job_row(0, a_job(state=State.COMPLETED, lease_expires_at=NOW)))

    assert row["lease_expires_at"] is None


def test_a_queue_becomes_a_row_with_each_count_under_its_name():
    queue = new_queue("mail", NOW)
    queue.counts = [10 + state for state in State]
    queue.enqueued, queue.completed, queue.failed = 1, 2, 3

    row = named(rows.QUEUE_COLUMNS, rows.queue_row(1, queue))

    assert {name: row[name] for name in ("pending", "active", "completed", "retrying")} == {
        "pending": 10,
        "active": 11,
        "completed": 12,
        "retrying": 13,
    }
    assert {name: row[name] for name in ("dead", "cancelled", "scheduled", "held")} == {
        "dead": 14,
        "cancelled": 15,
        "scheduled": 16,
        "held": 17,
    }
    assert (row["enqueued"], row["completed_total"], row["failed"]) == (1, 2, 3)


def test_of_several_records_with_one_key_the_last_counts():
    first, last = a_job(1, attempt=1), a_job(1, attempt=2)
    key = keys.job(job_id(1))

    put = to_rows(0, [(key, encode(first)), (key, encode(last))])
    gone = to_rows(0, [(key, encode(first)), (key, None)])

    assert put.jobs.put == [rows.job_row(0, last)]
    assert (gone.jobs.put, gone.jobs.gone) == ([], [(job_id(1), 0)])


def test_every_family_finds_its_table_and_others_are_passed_over():
    error = JobError(job_id(1), 7, 2, "boom", "", NOW)
    worker = Worker("w1", "host", ["mail", "sms"], NOW, NOW + 1)
    records = [
        (keys.job_error(job_id(1), 7), encode(error)),
        (keys.queue("mail"), encode(new_queue("mail", NOW))),
        (keys.worker("w1"), encode(worker)),
        (keys.active("mail", job_id(1)), b"whatever"),
        (keys.due(NOW, job_id(1)), b""),
    ]

    made = to_rows(2, records)

    assert made.job_errors.put == [(job_id(1), 7, 2, 2, "boom", None, to_rfc3339(NOW))]
    assert len(made.queues.put) == 1
    assert made.workers.put == [("w1", 2, "host", '["mail","sms"]', to_rfc3339(NOW + 1), to_rfc3339(NOW))]
    assert made.count == 3


def test_deleted_records_are_named_by_their_keys():
    made = to_rows(
        1,
        [
            (keys.job_error(job_id(1), 258), None),
            (keys.queue("mail"), None),
            (keys.worker("w1"), None),
        ],
    )

    assert made.job_errors.gone == [(job_id(1), 258, 1)]
    assert made.queues.gone == [("mail", 1)]
    assert made.workers.gone == [("w1", 1)]


def test_a_scan_in_one_piece_covers_everything():
    stretch = to_stretch(b"", b"")

    assert stretch.jobs == ("", "\U0010ffff")
    assert stretch.job_errors == ("", 0, "\U0010ffff", 0)
    assert stretch.queues == stretch.workers == stretch.jobs


def test_the_pieces_of_a_scan_cover_each_key_once():
    inside = keys.after(keys.job_error("b", 5))

    first, second = to_stretch(b"", inside), to_stretch(inside, b"")

    assert first.job_errors == ("", 0, "b", 6)
    assert second.job_errors == ("b", 6, "\U0010ffff", 0)
    assert (first.jobs, first.queues, first.workers) == (None, None, None)
    assert second.jobs == ("", "\U0010ffff")


def test_a_piece_that_ends_inside_a_family_bounds_that_family_only():
    stretch = to_stretch(keys.after(keys.job("a")), keys.queue("m"))

    assert stretch.job_errors is None
    assert stretch.jobs == ("a\0", "\U0010ffff")
    assert stretch.queues == ("", "m")
    assert stretch.workers is None
