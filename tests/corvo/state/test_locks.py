"""Unique and idempotency keys: held by one job of a queue at a time, and freed when it is time, by their own."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.model.errors import Refusal
from corvo.model.job import Job
from corvo.model.job_extras import JobExtras, UniqueUntil
from corvo.model.limits import UNIQUE_PERIOD_MS_DEFAULT
from corvo.state import keys, locks
from tests.support.builders import MS, NOW, SECOND, a_job, job_id
from tests.support.machine import Machine


def a_machine(at: int = NOW) -> Machine:
    machine = Machine()
    machine.tables.begin(1, 1, at)
    return machine


def pass_time(machine: Machine, ns: int) -> None:
    applied = machine.tables.applied
    machine.tables.seal()
    machine.tables.begin(applied.index + 1, 1, applied.now + ns)


def a_holder(machine: Machine, job: int = 1, **extras: Any) -> Job:
    made = a_job(job, extras=JobExtras(**extras))
    locks.lock(machine.tables, made)
    return made


def holder(machine: Machine, queue: str = "mail", **extras: Any) -> str | None:
    return locks.holder(machine.tables, queue, JobExtras(**extras))


def test_a_key_leads_to_its_job_in_its_queue_only() -> None:
    machine = a_machine()
    a_holder(machine, unique_key="k", idempotency_key="i")

    assert holder(machine, unique_key="k") == job_id(1)
    assert holder(machine, idempotency_key="i") == job_id(1)
    assert holder(machine, "video", unique_key="k") is None
    assert holder(machine, "video", idempotency_key="i") is None
    assert holder(machine, unique_key="i", idempotency_key="k") is None, "the two kinds never meet"
    assert holder(machine) is None


def test_an_idempotency_key_goes_before_a_unique_one() -> None:
    machine = a_machine()
    a_holder(machine, 1, unique_key="k")
    a_holder(machine, 2, idempotency_key="i")

    assert holder(machine, unique_key="k", idempotency_key="i") == job_id(2)


@pytest.mark.parametrize(("period_ms", "kept_ms"), [(0, UNIQUE_PERIOD_MS_DEFAULT), (1_500, 1_500)])
def test_a_unique_key_is_free_when_its_period_is_over_alarm_or_not(period_ms: int, kept_ms: int) -> None:
    machine = a_machine()
    a_holder(machine, unique_key="k", unique_period_ms=period_ms)

    pass_time(machine, kept_ms * MS - 1)
    assert holder(machine, unique_key="k") == job_id(1)
    pass_time(machine, 1)
    assert holder(machine, unique_key="k") is None


def test_an_idempotency_key_has_no_period() -> None:
    machine = a_machine()
    a_holder(machine, unique_key="k", unique_period_ms=1, idempotency_key="i")

    pass_time(machine, 10**6 * SECOND)

    assert holder(machine, idempotency_key="i") == job_id(1)


@pytest.mark.parametrize(
    ("until", "at_start", "at_end", "at_removal"),
    [
        (UniqueUntil.DONE, False, True, True),
        (UniqueUntil.START, True, True, True),
        (UniqueUntil.PERIOD, False, False, False),
    ],
)
def test_a_unique_key_is_freed_by_what_it_was_kept_for(
    until: UniqueUntil, at_start: bool, at_end: bool, at_removal: bool
) -> None:
    for release, is_freed in (
        (lambda tables, job: locks.unlock(tables, job, is_start=True), at_start),
        (locks.unlock, at_end),
        (locks.forget, at_removal),
    ):
        machine = a_machine()
        job = a_holder(machine, unique_key="k", unique_until=until)

        release(machine.tables, job)

        assert (holder(machine, unique_key="k") is None) == is_freed
        assert bool(machine.tables.alarms.over(NOW + 10**6 * SECOND, 9)) != is_freed, "the alarm goes with its lock"


def test_an_idempotency_key_is_freed_only_by_removal() -> None:
    machine = a_machine()
    job = a_holder(machine, idempotency_key="i")

    locks.unlock(machine.tables, job)
    assert holder(machine, idempotency_key="i") == job.id
    locks.forget(machine.tables, job)
    assert holder(machine, idempotency_key="i") is None


def test_a_job_whose_period_is_over_does_not_free_the_key_of_the_next() -> None:
    machine = a_machine()
    early = a_holder(machine, 1, unique_key="k", unique_period_ms=1_000)
    pass_time(machine, SECOND)
    a_holder(machine, 2, unique_key="k", unique_period_ms=1_000)

    locks.unlock(machine.tables, early)
    locks.forget(machine.tables, early)

    assert holder(machine, unique_key="k") == job_id(2)


def test_the_alarm_of_an_early_lock_does_not_remove_a_later_one() -> None:
    machine = a_machine()
    a_holder(machine, 1, unique_key="k", unique_period_ms=1_000)
    pass_time(machine, SECOND)
    a_holder(machine, 2, unique_key="k", unique_period_ms=1_000)

    locks.ring(machine.tables, "mail\0k")
    assert holder(machine, unique_key="k") == job_id(2)
    pass_time(machine, SECOND)
    locks.ring(machine.tables, "mail\0k")

    assert machine.tables.overlay.get(keys.unique("mail", "k")) is None


def test_a_key_may_hold_anything_also_what_separates_names() -> None:
    machine = a_machine()
    a_holder(machine, unique_key="a\0b|ü", unique_period_ms=1)

    [(_, subject, _)] = machine.tables.alarms.over(NOW + SECOND, 9)
    pass_time(machine, SECOND)
    locks.ring(machine.tables, subject[1:])

    assert machine.tables.overlay.get(keys.unique("mail", "a\0b|ü")) is None


def test_a_job_that_runs_again_takes_its_key_again_or_is_refused_while_another_holds_it() -> None:
    machine = a_machine()
    job = a_holder(machine, 1, unique_key="k")
    locks.lock_again(machine.tables, job)
    assert holder(machine, unique_key="k") == job.id, "it holds it still"
    locks.unlock(machine.tables, job)
    locks.lock_again(machine.tables, job)
    assert holder(machine, unique_key="k") == job.id

    locks.unlock(machine.tables, job)
    other = a_holder(machine, 2, unique_key="k")
    with pytest.raises(Refusal, match=job_id(2)) as refused:
        locks.lock_again(machine.tables, job)

    assert refused.value.code == "UNIQUE_CONFLICT"
    assert holder(machine, unique_key="k") == other.id


def test_jobs_without_keys_pass_by() -> None:
    machine = a_machine()
    for extras in (None, JobExtras()):
        job = a_job(extras=extras)
        locks.lock_again(machine.tables, job)
        locks.unlock(machine.tables, job)
        locks.forget(machine.tables, job)

    assert machine.tables.seal().writes == {}


script = st.lists(
    st.tuples(
        st.sampled_from(("make", "make", "end", "start", "remove", "wait", "ring", "restart")),
        st.integers(0, 3),
    ),
    max_size=40,
)


@given(script, st.sampled_from(UniqueUntil))
def test_locks_are_what_a_dictionary_with_dates_says(steps: list[tuple[str, int]], until: UniqueUntil) -> None:
    """Two unique keys, many jobs; at any time at most one job holds a key, and the right one."""
    machine, now, born = a_machine(), NOW, 0
    made: list[Job] = []
    naive: dict[str, tuple[str, int]] = {}

    for verb, number in steps:
        key = "ab"[number % 2]
        job = made[-1 - number] if number < len(made) else None
        if verb == "make" and holder(machine, unique_key=key) is None:
            born += 1
            made.append(a_holder(machine, born, unique_key=key, unique_period_ms=1_000, unique_until=until))
            naive[key] = (job_id(born), now + SECOND)
        elif verb in ("end", "start", "remove") and job is not None and job.extras is not None:
            if verb == "remove":
                locks.forget(machine.tables, job)
            else:
                locks.unlock(machine.tables, job, is_start=verb == "start")
            is_freed = until is UniqueUntil.START if verb == "start" else until is not UniqueUntil.PERIOD
            if is_freed and naive.get(job.extras.unique_key, ("", 0))[0] == job.id:
                del naive[job.extras.unique_key]
        elif verb == "wait":
            now += number * 400 * MS
            pass_time(machine, number * 400 * MS)
        elif verb == "ring":
            for due_at, subject, _ in machine.tables.alarms.over(now, 100):
                machine.tables.alarms.remove(due_at, subject)
                locks.ring(machine.tables, subject[1:])
        elif verb == "restart":
            machine.tables.seal()
            machine.flush()
            machine.tables = type(machine.tables)(machine.kv)
            machine.tables.begin(machine.tables.applied.index + 1, 1, now)
        naive = {key: held for key, held in naive.items() if held[1] > now}
        for each in "ab":
            assert holder(machine, unique_key=each) == naive.get(each, (None,))[0]
    machine.tables.seal()
    pass_time(machine, 10**6 * SECOND)
    for _, subject, _ in machine.tables.alarms.over(machine.tables.now, 100):
        locks.ring(machine.tables, subject[1:])
    machine.tables.seal()
    assert not any(key.startswith(keys.UNIQUE) for key in machine.records()), "no lock outlives its alarm"
