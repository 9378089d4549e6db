"""Promote: what is due becomes pending, oldest first."""

import pytest

from corvo.model.lifecycle import State
from corvo.model.retry import Backoff
from corvo.ops.upkeep import promote as module
from tests.support.builders import NOW, SECOND, cancel, enqueue, fail, fetch, job_id, new_job, promote
from tests.support.machine import Machine, nothing_changes


def test_a_scheduled_job_becomes_pending_at_its_moment_and_not_before() -> None:
    machine = Machine()
    machine.apply(enqueue(1, scheduled_at=NOW + SECOND))

    with nothing_changes(machine):
        assert machine.one(promote(), at=NOW + SECOND - 1) == 0
    assert machine.one(promote(), at=NOW + SECOND) == 1

    assert machine.job(1).state == State.PENDING
    assert machine.changes.woken == {"mail"}
    machine.check()


def test_a_retrying_job_becomes_pending_when_its_backoff_is_over() -> None:
    machine = Machine()
    machine.apply(enqueue(1, backoff=Backoff.FIXED, base_delay_ms=1_000), fetch(), fail(1))

    assert machine.one(promote(), at=NOW + SECOND - 1) == 0
    assert machine.one(promote(), at=NOW + SECOND) == 1
    assert machine.job(1).attempt == 1
    machine.check()


def test_a_retry_without_backoff_is_due_in_the_entry_that_failed_it() -> None:
    machine = Machine()
    machine.apply(enqueue(1, backoff=Backoff.NONE), fetch())

    assert machine.apply(fail(1), promote())[1] == 1


def test_jobs_become_pending_in_the_order_in_which_they_fell_due() -> None:
    machine = Machine()
    machine.apply(
        enqueue(new_job(1, scheduled_at=NOW + 3), new_job(2, scheduled_at=NOW + 1), new_job(3, scheduled_at=NOW + 2))
    )

    machine.apply(promote(), at=NOW + SECOND)

    assert [claim.job_id for claim in machine.one(fetch(count=3))] == [job_id(2), job_id(3), job_id(1)]


def test_a_crowd_is_promoted_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "UPKEEP_JOBS_PER_ENTRY", 2)
    machine = Machine()
    machine.apply(enqueue(*range(1, 6), scheduled_at=NOW + 1))

    assert [machine.one(promote(), at=NOW + 1) for _ in range(4)] == [2, 2, 1, 0]
    machine.check()


def test_a_cancelled_job_is_not_promoted() -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2, scheduled_at=NOW + 1), cancel(1))

    assert machine.one(promote(), at=NOW + 1) == 1
    assert machine.job(1).state == State.CANCELLED


def test_what_was_due_before_a_crash_is_due_after_it() -> None:
    machine = Machine()
    machine.apply(enqueue(1, scheduled_at=NOW + SECOND))
    machine.apply(promote())
    machine.flush()
    machine.restart()

    assert machine.one(promote(), at=NOW + SECOND) == 1


def test_nothing_is_due_when_the_leaders_clock_goes_back() -> None:
    machine = Machine()
    machine.apply(enqueue(1, scheduled_at=NOW + SECOND))

    with nothing_changes(machine):
        assert machine.one(promote(), at=NOW - 100 * SECOND) == 0
