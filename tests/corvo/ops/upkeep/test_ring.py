"""Ring: alarms go off at their moment, and each looks first whether there is still something to do."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.model.events import Event, EventKind
from corvo.model.job import Controls
from corvo.model.job_extras import JobExtras, UniqueUntil
from corvo.model.lifecycle import State, Verb
from corvo.model.limits import RETENTION_MS_DEFAULT, UPKEEP_JOBS_PER_ENTRY
from corvo.ops.upkeep import ring
from corvo.ops.upkeep.ring import ALARMS_AT_ONCE, HANDLERS, Ring
from corvo.rules.expiry import GRACE_ALARM
from corvo.state import keys
from corvo.state.transitions import change
from tests.support.builders import MS, NOW, SECOND, ack, cancel, enqueue, fail, fetch, job_id, new_job
from tests.support.machine import Machine, nothing_changes
from tests.tidy.house import ROOT

RETENTION = RETENTION_MS_DEFAULT * MS


def alarms(machine: Machine) -> list[str]:
    prefix = keys.ALARMS
    return [keys.due_parts(prefix, key)[1] for key in machine.records() if key.startswith(prefix)]


def controlled(machine: Machine, **controls: object) -> None:
    with machine.by_hand() as tables:
        tables.queue("mail").controls = Controls(**controls)  # type: ignore[arg-type]


def test_every_alarm_has_a_letter_of_its_own() -> None:
    named = [
        line.split('"')[1]
        for path in (ROOT / "corvo").rglob("*.py")
        for line in path.read_text().splitlines()
        if re.match(r"[A-Z]+_ALARM = ", line)
    ]

    assert sorted(named) == sorted(HANDLERS), "two alarms with one letter: the handler of one would hear both"
    assert all(len(letter) == 1 for letter in HANDLERS)


def test_without_anything_due_nothing_changes() -> None:
    machine = Machine()
    machine.apply(enqueue(1), cancel(1))

    with nothing_changes(machine):
        assert machine.one(Ring(), at=NOW + RETENTION - 1) == 0


# Expiry


@pytest.mark.parametrize(
    ("state", "fields"), [(State.PENDING, {}), (State.SCHEDULED, {"scheduled_at": NOW + 60 * SECOND})]
)
def test_a_waiting_job_expires_to_the_nanosecond(state: State, fields: dict[str, int]) -> None:
    machine = Machine()
    machine.one(enqueue(new_job(1, extras=JobExtras(expire_after_ms=1_000), **fields)))

    machine.one(Ring(), at=NOW + SECOND - 1)
    assert machine.job(1).state == state
    assert machine.one(Ring(), at=NOW + SECOND) == 1

    job = machine.job(1)
    assert (job.state, job.failed_at) == (State.DEAD, NOW + SECOND)
    assert "expired" in machine.tables.errors(job.id)[0].error
    machine.check()


def test_an_active_job_is_let_finish() -> None:
    machine = Machine()
    machine.apply(enqueue(new_job(1, extras=JobExtras(expire_after_ms=1_000))), fetch())

    machine.one(Ring(), at=NOW + SECOND)

    assert machine.job(1).state == State.ACTIVE
    machine.check()


def test_a_job_that_has_ended_does_not_expire() -> None:
    machine = Machine()
    machine.apply(enqueue(new_job(1, extras=JobExtras(expire_after_ms=1_000))), fetch(), ack(1))

    with nothing_changes(machine):
        assert machine.one(Ring(), at=NOW + SECOND) == 0


# Locks


def test_a_lock_that_is_over_is_removed_with_its_alarm() -> None:
    machine = Machine()
    extras = JobExtras(unique_key="k", unique_period_ms=1_000, unique_until=UniqueUntil.PERIOD)
    machine.one(enqueue(new_job(1, extras=extras)))

    machine.one(Ring(), at=NOW + SECOND)

    assert keys.unique("mail", "k") not in machine.records()
    assert alarms(machine) == []
    assert machine.job(1).state == State.PENDING


# Gates


def test_a_throttle_that_has_room_again_wakes_its_queue() -> None:
    machine = Machine()
    controlled(machine, rate=1, window_ms=1_000)
    machine.apply(enqueue(1), enqueue(2), fetch(count=5))
    assert machine.tables.claimable("mail") == 0

    machine.one(Ring(), at=NOW + SECOND)

    assert machine.changes.woken == {"mail"}
    assert machine.tables.claimable("mail") == 1


# Grace


def asked_to_stop(cancel_at: int) -> Machine:
    machine = Machine()
    machine.apply(enqueue(new_job(1, extras=JobExtras())), fetch())
    with machine.by_hand() as tables:
        job = machine.job(1)
        assert job.extras is not None
        job.extras.cancel_at = cancel_at
        tables.touch(job)
        tables.alarms.add(cancel_at, GRACE_ALARM + job.id)
    return machine


def test_a_worker_that_had_time_enough_to_stop_loses_its_job() -> None:
    machine = asked_to_stop(NOW + SECOND)

    machine.one(Ring(), at=NOW + SECOND)

    assert (machine.job(1).state, machine.job(1).failed_at) == (State.CANCELLED, NOW + SECOND)
    machine.check()


def test_a_job_that_its_worker_has_ended_meanwhile_stays_as_it_is() -> None:
    machine = asked_to_stop(NOW + SECOND)
    machine.one(ack(1))

    machine.one(Ring(), at=NOW + SECOND)

    assert machine.job(1).state == State.COMPLETED


def test_grace_of_an_earlier_claim_does_not_end_the_next_one() -> None:
    machine = asked_to_stop(NOW + SECOND)
    with machine.by_hand() as tables:
        change(tables, machine.job(1), Verb.RECLAIM)
    machine.one(fetch(claim=2))

    machine.one(Ring(), at=NOW + SECOND)

    assert machine.job(1).state == State.ACTIVE


# Retention


def test_a_job_is_forgotten_with_all_that_belongs_to_it_when_its_time_is_over() -> None:
    machine = Machine()
    machine.apply(
        enqueue(new_job(1, max_retries=1, extras=JobExtras(idempotency_key="i"))), fetch(), fail(1, error="boom")
    )
    before = machine.tables.event_log.last

    machine.one(Ring(), at=NOW + RETENTION)

    families = (keys.JOBS, keys.JOB_ERRORS, keys.IDEMPOTENT)
    assert not any(key.startswith(families) for key in machine.records())
    assert machine.queue().counts == [0] * len(State)
    told = [told.event for told in machine.tables.event_log.after(before)]
    assert told == [Event(EventKind.DELETED, job_id(1), "mail", b'{"reason":"retention"}')]
    machine.check()


@pytest.mark.parametrize(
    ("state", "retention_ms"),
    [(State.COMPLETED, (500, 0, 0)), (State.DEAD, (0, 500, 0)), (State.CANCELLED, (0, 0, 500))],
)
def test_each_final_state_has_a_retention_of_its_own(state: State, retention_ms: tuple[int, int, int]) -> None:
    machine = Machine()
    controlled(machine, retention_ms=retention_ms)
    machine.one(enqueue(new_job(1), new_job(2, max_retries=1), new_job(3)))
    machine.apply(fetch(count=2), ack(1), fail(2), cancel(3))
    assert {machine.job(number).state for number in (1, 2, 3)} == {State.COMPLETED, State.DEAD, State.CANCELLED}

    machine.one(Ring(), at=NOW + 500 * MS)

    assert state not in {job.state for job in machine.jobs()}
    assert len(machine.jobs()) == 2, "0 keeps for ever"


def test_jobs_that_ended_in_one_entry_share_an_alarm() -> None:
    machine = Machine()
    machine.one(enqueue(1, 2, 3))
    machine.apply(cancel(1), cancel(2), cancel(3))

    assert len(alarms(machine)) == 1
    assert machine.one(Ring(), at=NOW + RETENTION) == 3
    assert machine.jobs() == []


def test_a_job_that_runs_again_is_kept_from_its_last_end() -> None:
    machine = Machine()
    machine.apply(enqueue(1), fetch(), ack(1))
    with machine.by_hand(at=NOW + SECOND) as tables:
        change(tables, machine.job(1), Verb.RUN_AGAIN)

    machine.one(Ring(), at=NOW + RETENTION)
    assert machine.job(1).state == State.PENDING
    machine.apply(fetch(claim=2), ack(1, ask=2))
    machine.one(Ring(), at=NOW + 2 * RETENTION - 1)
    assert machine.job(1).state == State.COMPLETED
    machine.one(Ring(), at=NOW + 2 * RETENTION)

    assert machine.jobs() == []


@pytest.mark.parametrize(("retention_ms", "is_kept"), [(RETENTION_MS_DEFAULT * 2, True), (0, True), (1_000, False)])
def test_a_retention_that_was_changed_meanwhile_counts(retention_ms: int, is_kept: bool) -> None:
    machine = Machine()
    machine.apply(enqueue(1), fetch(), ack(1))
    controlled(machine, retention_ms=(retention_ms,) * 3)

    machine.one(Ring(), at=NOW + RETENTION)

    assert bool(machine.jobs()) == is_kept
    machine.one(Ring(), at=NOW + 2 * RETENTION)
    assert bool(machine.jobs()) == (retention_ms == 0)


# Slices


def test_many_alarms_are_settled_in_slices_and_none_is_left() -> None:
    machine = Machine()
    count = UPKEEP_JOBS_PER_ENTRY + 2 * ALARMS_AT_ONCE
    machine.one(enqueue(*(new_job(number, extras=JobExtras(expire_after_ms=1_000)) for number in range(1, count + 1))))

    first = machine.one(Ring(), at=NOW + SECOND)
    assert UPKEEP_JOBS_PER_ENTRY <= first < count
    assert machine.tables.alarms.look_ahead(machine.now) <= machine.now, "the rest is due at once"
    second = machine.one(Ring())

    assert first + second == count
    assert machine.queue().counts[State.DEAD] == count


def test_jobs_that_ended_together_are_forgotten_in_slices() -> None:
    machine = Machine()
    count = 3 * UPKEEP_JOBS_PER_ENTRY
    for first in range(1, count + 1, 500):
        machine.apply(enqueue(*range(first, first + 500)))
    machine.apply(*(cancel(number) for number in range(1, count + 1)))
    assert len(alarms(machine)) == 3

    left = [count]
    machine.now = NOW + RETENTION
    while machine.jobs():
        assert machine.tables.alarms.look_ahead(machine.now) <= machine.now, "the rest is due at once"
        machine.one(Ring())
        left.append(len(machine.jobs()))

    assert left == [count, 2 * UPKEEP_JOBS_PER_ENTRY, UPKEEP_JOBS_PER_ENTRY, 0]
    assert alarms(machine) == []


@given(st.lists(st.tuples(st.integers(1, 4), st.sampled_from((0, 1, 400, 1_000))), min_size=1, max_size=12))
def test_every_alarm_goes_off_once_whatever_the_slices(lives: list[tuple[int, int]]) -> None:
    machine = Machine()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ring, "ALARMS_AT_ONCE", 2)
        patch.setattr(ring, "UPKEEP_JOBS_PER_ENTRY", 3)
        for number, (seconds, _) in enumerate(lives, 1):
            machine.one(enqueue(new_job(number, extras=JobExtras(expire_after_ms=seconds * 1_000))))
        for _, wait_ms in lives:
            machine.one(Ring(), at=machine.now + wait_ms * MS)
            machine.restart()
        for _ in lives:
            machine.one(Ring(), at=max(machine.now, NOW + 4 * SECOND))

    assert [job.state for job in machine.jobs()] == [State.DEAD] * len(lives)
    assert machine.tables.alarms.look_ahead(machine.now) > machine.now
    machine.check()
