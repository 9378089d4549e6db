import json

import pytest

from corvo.model.fingerprint import fingerprint
from corvo.model.job import Controls, JobError, Minute, Priority, Worker, encode, new_queue
from corvo.model.job_extras import Chain, ChainStep, JobExtras, Outcome
from corvo.model.lifecycle import STATE_NAMES, State
from corvo.model.timestamps import LATEST_NS, to_rfc3339
from corvo.rules.batches import Batch
from corvo.state import keys
from corvo.state.locks import Lock
from gateway.mirror import columns
from gateway.mirror.rows import to_rows, to_stretch
from gateway.readdb.minutes import MINUTE_COLUMNS, minute_row
from tests.support.builders import NOW, a_job, job_id

from .mirrors import a_schedule


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

    row = named(columns.PLAIN_JOB_COLUMNS, columns.job_row(3, job))

    assert row == {
        "id": job_id(1),
        "shard": 3,
        "namespace": "default",
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
    row = named(columns.PLAIN_JOB_COLUMNS, columns.job_row(0, a_job(state=State.COMPLETED, lease_expires_at=NOW)))

    assert row["lease_expires_at"] is None


def test_a_job_with_bonds_shows_them_in_columns_of_their_own():
    chain = Chain("c1", 1, (ChainStep("a"), ChainStep("b", b'{"x": 1.50}')), on_failure=ChainStep("f", b"[1]"))
    extras = JobExtras(unique_key="k", batch_id="b1", chain=chain, expire_at=NOW + 1, hold_reason="look at it")

    made = to_rows(0, [(keys.job(job_id(1)), encode(a_job(1, extras=extras)))])

    assert made.jobs.put == []
    (whole,) = made.bonded_jobs.put
    row = named(columns.JOB_COLUMNS, whole)
    assert (row["id"], row["unique_key"], row["batch_id"], row["hold_reason"]) == (job_id(1), "k", "b1", "look at it")
    assert (row["chain_id"], row["chain_step"], row["expire_at"]) == ("c1", 1, to_rfc3339(NOW + 1))
    assert json.loads(row["chain_config"]) == {
        "steps": [{"queue": "a", "payload": {}}, {"queue": "b", "payload": {"x": 1.5}}],
        "on_failure": {"queue": "f", "payload": [1]},
        "on_exit": None,
    }
    assert '{"x": 1.50}' in row["chain_config"]  # byte for byte as it was sent


def test_bonds_that_say_nothing_are_null():
    assert columns.bond_values(JobExtras()) == (None,) * len(columns.BOND_COLUMNS)


def test_a_job_that_waits_for_others_has_no_date():
    waiting = a_job(state=State.SCHEDULED, due_at=LATEST_NS, extras=JobExtras(waits_for=(job_id(2),)))
    dated = a_job(state=State.SCHEDULED, due_at=NOW)

    assert named(columns.PLAIN_JOB_COLUMNS, columns.job_row(0, waiting))["scheduled_at"] is None
    assert named(columns.PLAIN_JOB_COLUMNS, columns.job_row(0, dated))["scheduled_at"] == to_rfc3339(NOW)


@pytest.mark.parametrize("state", State, ids=lambda state: STATE_NAMES[state])
def test_only_a_job_that_waits_for_its_moment_has_one(state: State) -> None:
    row = named(columns.PLAIN_JOB_COLUMNS, columns.job_row(0, a_job(state=state, due_at=NOW)))

    waits = state in (State.SCHEDULED, State.RETRYING)
    assert row["scheduled_at"] == (to_rfc3339(NOW) if waits else None)


def test_what_was_decided_about_a_queue_stands_in_its_row():
    decided, undecided = new_queue("mail", NOW), new_queue("sms", NOW)
    decided.controls = Controls(True, True, 5, 10, 1_000, (0, -1, 60_000))

    row, plain = (named(columns.QUEUE_COLUMNS, columns.queue_row(1, queue)) for queue in (decided, undecided))

    decisions = columns.QUEUE_COLUMNS[columns.QUEUE_COLUMNS.index("paused") :]
    assert [row[name] for name in decisions] == [1, 1, 5, 10, 1_000, 0, None, 60_000]
    assert [plain[name] for name in decisions] == [0, 0, None, None, None, None, None, None]
    undecided.controls = Controls()
    assert columns.queue_row(1, undecided) == tuple(plain.values())


def test_a_batch_becomes_a_row_with_every_outcome():
    batch = Batch("b1", NOW, on_success=ChainStep("done", b'{"a":1}'), description="night", is_sealed=True, total=12)
    batch.ended = [5 - outcome for outcome in Outcome]

    row = named(columns.BATCH_COLUMNS, columns.batch_row(2, batch))

    assert row == {
        "id": "b1",
        "shard": 2,
        "namespace": "default",
        "state": "sealed",
        "description": "night",
        "total": 12,
        "pending": -2,
        "succeeded": 5,
        "failed": 9,
        "dead": 4,
        "cancelled": 3,
        "deleted": 2,
        "on_complete": None,
        "on_success": '{"queue":"done","payload":{"a":1}}',
        "on_failure": None,
        "created_at": to_rfc3339(NOW),
        "finished_at": None,
        "callback_queue": None,
        "callback_payload": None,
        "queues": None,
    }
    batch.is_sealed = False
    assert named(columns.BATCH_COLUMNS, columns.batch_row(2, batch))["state"] == "open"
    batch.is_sealed, batch.finished_at = True, NOW + 1
    assert named(columns.BATCH_COLUMNS, columns.batch_row(2, batch))["state"] == "completed"


def test_a_schedule_becomes_a_row():
    row = named(columns.SCHEDULE_COLUMNS, columns.schedule_row(1, a_schedule(last_slot=NOW + 2, fired=7)))

    assert row == {
        "id": "sch",
        "shard": 1,
        "name": "nightly",
        "queue": "mail",
        "cron": "* * * * *",
        "timezone": "Europe/Rome",
        "payload": "{}",
        "unique_key": "k",
        "max_retries": 3,
        "last_run": to_rfc3339(NOW + 2),
        "next_run": to_rfc3339(NOW + 60),
        "created_at": to_rfc3339(NOW),
        "updated_at": to_rfc3339(NOW + 1),
        "paused": 0,
        "priority": 1,
        "tags": '{"t":"x"}',
        "catch_up": "last",
        "catch_up_max": 10,
        "fired": 7,
    }


def test_a_paused_schedule_has_no_next_run():
    row = named(columns.SCHEDULE_COLUMNS, columns.schedule_row(1, a_schedule(is_paused=True)))

    assert (row["paused"], row["next_run"], row["last_run"]) == (1, None, None)


def test_a_queue_becomes_a_row_with_each_count_under_its_name():
    queue = new_queue("mail", NOW)
    queue.counts = [10 + state for state in State]
    queue.enqueued, queue.completed, queue.failed = 1, 2, 3

    row = named(columns.QUEUE_COLUMNS, columns.queue_row(1, queue))

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

    assert put.jobs.put == [columns.job_row(0, last)]
    assert (gone.jobs.put, gone.jobs.gone) == ([], [(job_id(1), 0)])


def test_every_family_finds_its_table_and_others_are_passed_over():
    error = JobError(job_id(1), 7, 2, "boom", "", NOW, "w1", NOW - 1, queue="mail")
    stopped = JobError(job_id(1), 8, 3, "held while it ran", "", NOW, "w1", NOW - 1, True, "mail")
    worker = Worker("w1", "host", ["mail", "sms"], NOW, NOW + 1, 8, "1.2")
    records = [
        (keys.job_error(job_id(1), 7), encode(error)),
        (keys.job_error(job_id(1), 8), encode(stopped)),
        (keys.queue("mail"), encode(new_queue("mail", NOW))),
        (keys.minute("mail", 29_000_000), encode(Minute("mail", 29_000_000, 4, 3, 2, 1))),
        (keys.worker("w1"), encode(worker)),
        (keys.batch("b1"), encode(Batch("b1", NOW))),
        (keys.schedule("sch"), encode(a_schedule())),
        (keys.active("mail", job_id(1)), b"whatever"),
        (keys.due(keys.DUE, NOW, job_id(1)), b""),
        (keys.forwarded(job_id(1)), b"\x01"),
        (keys.unique("mail", "j|\0é"), encode(Lock(job_id(1), NOW + 5))),
        (keys.claims_at("mail", NOW), encode(3)),
    ]

    made = to_rows(2, records)

    failed_at, started_at = to_rfc3339(NOW), to_rfc3339(NOW - 1)
    rest = (None, failed_at, "w1", started_at, "mail")
    assert made.job_errors.put == [
        (job_id(1), 7, 2, "default", 2, "boom", *rest, fingerprint("boom")),
        (job_id(1), 8, 2, "default", 3, "held while it ran", *rest, None),
    ]
    assert made.queue_minutes.put == [("mail", 29_000_000, 2, "default", 4, 3, 2, 1)]
    assert len(made.queues.put) == len(made.batches.put) == len(made.schedules.put) == 1
    seen_at, begun_at = to_rfc3339(NOW + 1), to_rfc3339(NOW)
    assert made.workers.put == [("w1", 2, "default", "host", '["mail","sms"]', seen_at, begun_at, 8, "1.2")]
    assert made.unique_locks.put == [("mail", "j|\0é", job_id(1), to_rfc3339(NOW + 5), 2)]
    assert made.queue_claims.put == [("mail", to_rfc3339(NOW), 2, 3)]
    assert made.count == 9


def test_rows_have_the_namespace_that_names_and_ids_carry():
    job = a_job(1, queue="acme|mail", worker_id="acme|w1")
    error = JobError(f"{job_id(1)}_acme", 1, 1, "boom", "", NOW, queue="acme|mail")

    for names, row in (
        (columns.PLAIN_JOB_COLUMNS, columns.job_row(2, job)),
        (columns.JOB_ERROR_COLUMNS, columns.job_error_row(2, error)),
        (columns.QUEUE_COLUMNS, columns.queue_row(2, new_queue("acme|mail", NOW))),
        (columns.WORKER_COLUMNS, columns.worker_row(2, Worker("acme|w1", "", [], NOW, NOW))),
        (columns.BATCH_COLUMNS, columns.batch_row(2, Batch("s02_batch_1_acme", NOW))),
        (MINUTE_COLUMNS, minute_row(2, Minute("acme|mail", 1, 1, 1, 1, 1))),
    ):
        assert named(names, row)["namespace"] == "acme"


def test_deleted_records_are_named_by_their_keys():
    made = to_rows(
        1,
        [
            (keys.job_error(job_id(1), 258), None),
            (keys.queue("mail"), None),
            (keys.minute("mail", 258), None),
            (keys.worker("w1"), None),
            (keys.job(job_id(1)), None),
            (keys.batch("b1"), None),
            (keys.schedule("sch"), None),
            (keys.unique("mail", "k"), None),
            (keys.claims_at("mail", NOW), None),
        ],
    )

    assert made.job_errors.gone == [(job_id(1), 258, 1)]
    assert made.queues.gone == [("mail", 1)]
    assert made.queue_minutes.gone == [("mail", 258, 1)]
    assert made.workers.gone == [("w1", 1)]
    assert made.jobs.gone == [(job_id(1), 1)]
    assert made.batches.gone == [("b1", 1)]
    assert made.schedules.gone == [("sch", 1)]
    assert made.unique_locks.gone == [("mail", "k", 1)]
    assert made.queue_claims.gone == [("mail", to_rfc3339(NOW), 1)]
    assert made.count == 9


def test_a_scan_in_one_piece_covers_everything():
    stretch = to_stretch(b"", b"")

    assert stretch.jobs == ("", "\U0010ffff")
    assert stretch.job_errors == stretch.queue_minutes == ("", 0, "\U0010ffff", 0)
    assert stretch.queues == stretch.workers == stretch.batches == stretch.schedules == stretch.jobs
    assert stretch.unique_locks == ("", "", "\U0010ffff", "")
    assert stretch.queue_claims == ("", to_rfc3339(0), "\U0010ffff", "")


def test_the_pieces_of_a_scan_cover_each_key_once():
    inside = keys.after(keys.job_error("b", 5))

    first, second = to_stretch(b"", inside), to_stretch(inside, b"")

    assert first.job_errors == ("", 0, "b", 6)
    assert second.job_errors == ("b", 6, "\U0010ffff", 0)
    assert (first.jobs, first.queues, first.workers) == (None, None, None)
    assert second.jobs == ("", "\U0010ffff")


def test_a_piece_that_ends_among_the_minutes_of_a_queue_bounds_them_by_queue_and_minute():
    first, second = to_stretch(b"", keys.minute("mail", 258)), to_stretch(keys.minute("mail", 258), b"")

    assert (first.queue_minutes, second.queue_minutes) == (("", 0, "mail", 258), ("mail", 258, "\U0010ffff", 0))
    assert (first.queues, second.queues) == (None, ("", "\U0010ffff"))


@pytest.mark.parametrize("after", [False, True])
def test_a_piece_that_ends_among_locks_or_claims_bounds_them_by_queue(after):
    lock, claims = keys.unique("mail", "k"), keys.claims_at("mail", NOW)
    if after:
        lock, claims = keys.after(lock), keys.after(claims)

    first, second = to_stretch(b"", lock), to_stretch(lock, b"")
    name = ("mail", "k\0" if after else "k")
    assert (first.unique_locks, second.unique_locks) == (("", "", *name), (*name, "\U0010ffff", ""))

    first, second = to_stretch(b"", claims), to_stretch(claims, b"")
    name = ("mail", to_rfc3339(NOW + 1 if after else NOW))
    assert (first.queue_claims, second.queue_claims) == (
        ("", to_rfc3339(0), *name),
        (*name, "\U0010ffff", ""),
    )


def test_a_piece_that_ends_inside_a_family_bounds_that_family_only():
    stretch = to_stretch(keys.after(keys.job("a")), keys.queue("m"))

    assert stretch.job_errors is None
    assert stretch.jobs == ("a\0", "\U0010ffff")
    assert stretch.queues == ("", "m")
    assert stretch.workers is None
    assert stretch.batches is None
    assert stretch.schedules is None
