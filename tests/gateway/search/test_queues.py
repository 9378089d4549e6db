import pytest

from corvo.model.job import Controls, Minute, new_queue
from corvo.model.lifecycle import State
from corvo.model.timestamps import to_rfc3339
from corvo.state.minutes import MINUTE_NS
from gateway.search import queues
from tests.support.builders import NOW, a_job


def a_queue(name="mail", **counts):
    queue = new_queue(name, NOW)
    for state, count in counts.items():
        queue.counts[State[state.upper()]] = count
    return queue


def test_queues_come_by_name_with_the_shards_counts(written, ask):
    queue = a_queue("b", pending=1, active=2, completed=3, retrying=4, dead=5, cancelled=6, scheduled=7, held=8)
    queue.enqueued, queue.failed = 36, 9
    written.put(queue, a_queue("a"))

    first, second = ask(queues.answer)

    assert (first.name, first.pending, first.oldest_pending_at) == ("a", 0, None)
    assert (second.name, second.created_at, second.paused) == ("b", to_rfc3339(NOW), False)
    assert [second.pending, second.active, second.completed, second.retrying] == [1, 2, 3, 4]
    assert [second.dead, second.cancelled, second.scheduled, second.held] == [5, 6, 7, 8]
    assert [second.enqueued, second.failed] == [36, 9]


def test_the_oldest_pending_job_is_that_of_the_queue_itself(written, ask):
    written.put(
        a_queue(pending=2),
        a_queue("other", pending=1),
        a_job(1, created_at=NOW + 5),
        a_job(2, created_at=NOW + 3, priority=0),
        a_job(3, created_at=NOW + 1, state=State.COMPLETED),
        a_job(4, created_at=NOW + 2, queue="other"),
    )

    mail, _ = ask(queues.answer)

    assert mail.oldest_pending_at == to_rfc3339(NOW + 3)


def test_the_oldest_pending_job_is_found_by_an_index(explain):
    _, steps = explain(queues._OF_TENANT)

    plan = str(steps)

    assert "SEARCH jobs USING COVERING INDEX idx_jobs_queue_state_priority (queue=? AND state=? AND priority=?)" in plan
    assert "SCAN jobs" not in plan
    assert "SEARCH queue_minutes USING PRIMARY KEY (queue=? AND minute=?)" in plan


@pytest.mark.parametrize(
    ("newest_ago", "over_ago", "rates"),
    [
        (0, 1, (30, 3, 0.3)),  # something in both minutes
        (0, 2, (20, 2, 0.2)),  # nothing in the last full one
        (1, 2, (20, 2, 0.2)),  # nothing yet in the one that runs
        (2, 3, (0, 0, 0)),  # nothing in either
        (-1, 1, (30, 3, 0.3)),  # the shard's clock is ahead of ours
    ],
)
def test_rates_are_of_the_last_full_minute_and_the_one_that_runs(
    written, ask, monkeypatch, newest_ago, over_ago, rates
):
    now = NOW // MINUTE_NS * MINUTE_NS + 30 * 10**9  # half a minute has passed: 90 seconds are looked at
    monkeypatch.setattr(queues.time, "time_ns", lambda: now)
    minute = now // MINUTE_NS
    queue = a_queue()
    queue.enqueued, queue.completed, queue.failed = 11_800, 1_180, 118
    queue.began = (minute - newest_ago, 10_000, 1_000, 100, 0)
    written.put(queue, Minute("mail", minute - over_ago, 900, 90, 9, 0))

    [view] = ask(queues.answer)

    assert (view.enqueued_per_s, view.completed_per_s, view.failed_per_s) == rates


def test_the_age_of_the_oldest_pending_job_is_from_its_birth(written, ask, monkeypatch):
    monkeypatch.setattr(queues.time, "time_ns", lambda: NOW + 5_000_000_000)
    written.put(a_queue(pending=1), a_queue("empty"), a_job(1, created_at=NOW + 1_000_000))

    empty, mail = ask(queues.answer)

    assert (empty.oldest_pending_age_ms, mail.oldest_pending_age_ms) == (None, 4_999)


@pytest.mark.parametrize(
    ("controls", "active", "status"),
    [
        (None, 1, "active"),
        (Controls(is_paused=True), 1, "paused"),
        (Controls(is_draining=True), 1, "draining"),
        (Controls(is_draining=True), 0, "drained"),
        (Controls(max_concurrency=5, rate=10, window_ms=60_000), 1, "active"),
    ],
)
def test_what_was_decided_about_a_queue_is_shown(written, ask, controls, active, status):
    queue = a_queue(active=active)
    queue.controls = controls
    written.put(queue)

    [view] = ask(queues.answer)

    limits = (5, 10, 60_000) if controls is not None and controls.rate else (None, None, None)
    assert (view.status, view.paused) == (status, status == "paused")
    assert (view.max_concurrency, view.rate_limit, view.rate_window_ms) == limits
