"""How a job comes into the world: once, where its keys are free, and not before those it waits for."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from corvo.model.job_extras import IfLost, JobExtras
from corvo.model.lifecycle import State
from corvo.model.limits import JOB_ID
from corvo.model.timestamps import LATEST_NS
from corvo.rules.errands.register import decode_errand
from corvo.rules.errands.watch import Watch
from corvo.rules.job_creation import Existing, derived_id
from corvo.state import keys
from corvo.state.transitions import EXPIRE_ALARM
from tests.support.builders import MS, NOW, SECOND, ack, cancel, enqueue, fetch, job_id, new_job
from tests.support.machine import Machine, nothing_changes


def made(machine: Machine, job: int, at: int | None = None, **extras: Any) -> State | Existing:
    """Make a job with these bonds; what became of it."""
    [outcome] = machine.one(enqueue(new_job(job, extras=JobExtras(**extras))), at=at)
    return outcome  # type: ignore[no-any-return]


def test_a_job_is_born_once_whatever_became_of_it_since() -> None:
    machine = Machine()
    new = new_job(1, extras=JobExtras(unique_key="k"))
    first = machine.one(enqueue(new))
    machine.apply(fetch(), ack(1), at=NOW + SECOND)

    with nothing_changes(machine):
        assert machine.one(enqueue(new)) == first == [State.PENDING]


def test_a_unique_key_that_is_held_leads_to_its_job_and_nothing_is_made() -> None:
    machine = Machine()
    made(machine, 1, unique_key="k")

    with nothing_changes(machine):
        assert made(machine, 2, unique_key="k") == Existing(job_id(1))


def test_of_two_jobs_with_one_key_in_one_request_the_first_is_made() -> None:
    machine = Machine()

    outcomes = machine.one(enqueue(*(new_job(number, extras=JobExtras(unique_key="k")) for number in (1, 2))))

    assert outcomes == [State.PENDING, Existing(job_id(1))]
    assert machine.queue().enqueued == 1


def test_a_unique_key_is_free_after_its_jobs_end_an_idempotency_key_is_not() -> None:
    machine = Machine()
    made(machine, 1, unique_key="k", idempotency_key="i")
    machine.one(cancel(1))

    assert made(machine, 2, unique_key="k") == State.PENDING
    assert made(machine, 3, idempotency_key="i") == Existing(job_id(1))


def test_the_keys_of_another_queue_are_other_keys() -> None:
    machine = Machine()
    made(machine, 1, unique_key="k")

    [outcome] = machine.one(enqueue(new_job(2, queue="video", extras=JobExtras(unique_key="k"))))

    assert outcome == State.PENDING


def test_time_to_live_begins_with_birth() -> None:
    machine = Machine()
    made(machine, 1, at=NOW + SECOND, expire_after_ms=1_500)

    extras = machine.job(1).extras
    assert extras is not None and extras.expire_at == NOW + SECOND + 1_500 * MS
    assert keys.due(keys.ALARMS, extras.expire_at, EXPIRE_ALARM + job_id(1)) in machine.records()


def test_a_job_that_waits_for_others_is_scheduled_without_a_date_and_asks_to_be_told() -> None:
    machine = Machine(0, 3)
    machine.one(enqueue(1))
    waits_for = (job_id(1), job_id(9, 1), job_id(9, 2))

    new = new_job(2, scheduled_at=NOW + SECOND, extras=JobExtras(waits_for=waits_for))
    assert machine.one(enqueue(new)) == [State.SCHEDULED]

    job = machine.job(2)
    assert job.due_at == LATEST_NS
    assert job.extras is not None and job.extras.scheduled_at == NOW + SECOND
    assert keys.watcher(job_id(1), job_id(2)) in machine.records(), "the one that lives here knows already"
    for shard in (1, 2):
        _, [raw] = machine.tables.errands.waiting(shard, 9, 9_999)
        assert decode_errand(raw) == Watch(job_id(9, shard), job_id(2))
    machine.check()


def test_a_repeated_request_for_a_job_that_waited_gets_the_same_answer() -> None:
    machine = Machine()
    machine.one(enqueue(1))
    new = new_job(2, extras=JobExtras(waits_for=(job_id(1),)))
    first = machine.one(enqueue(new))
    machine.apply(fetch(), ack(1))
    assert machine.job(2).state == State.PENDING

    assert machine.one(enqueue(new)) == first


def test_a_job_that_waits_for_one_that_has_ended_before_need_not_wait() -> None:
    machine = Machine()
    machine.apply(enqueue(1), fetch(), ack(1))

    made(machine, 2, waits_for=(job_id(1),))

    assert machine.job(2).state == State.PENDING
    machine.check()


def test_a_job_that_waits_for_nobody_anybody_knows_has_lost_it() -> None:
    machine = Machine()

    made(machine, 1, waits_for=(job_id(99),))
    made(machine, 2, waits_for=(job_id(99),), if_lost=IfLost.CANCEL)
    made(machine, 3, waits_for=(job_id(99),), if_lost=IfLost.RUN)

    assert [machine.job(number).state for number in (1, 2, 3)] == [State.DEAD, State.CANCELLED, State.PENDING]
    assert job_id(99) in machine.tables.errors(job_id(1))[0].error
    machine.check()


names = st.lists(st.one_of(st.text(max_size=8), st.integers(-3, 99)), min_size=1, max_size=3)


@given(st.integers(0, 63), names, st.integers(0, 63), names)
def test_derived_ids_are_legal_repeatable_and_as_different_as_their_names(
    shard: int, one: list[object], other_shard: int, other: list[object]
) -> None:
    first, second = derived_id(shard, *one), derived_id(other_shard, *other)

    assert JOB_ID.fullmatch(first)
    assert int(first[1:3]) == shard
    assert first == derived_id(shard, *one)
    texts, other_texts = "\0".join(map(str, one)), "\0".join(map(str, other))
    assert (first == second) == ((shard, texts) == (other_shard, other_texts))
