"""Clear: what waits in a queue is deleted, slice by slice, and nothing else."""

from typing import Any

import pytest

from corvo.endpoint import Answer, Plan
from corvo.model.events import Event, EventKind
from corvo.model.job import Priority
from corvo.model.job_extras import Chain, ChainStep, IfLost, JobExtras
from corvo.model.lifecycle import State
from corvo.model.sharding import shard_of_queue
from corvo.ops.queues import clear_queue
from corvo.ops.queues.clear_queue import ENDPOINTS, ClearQueue, QueueCleared, Slice
from tests.corvo.ops.queues.events import told
from tests.support.builders import (
    NOW,
    SECOND,
    ack,
    an_asking,
    cancel,
    enqueue,
    fail,
    fetch,
    job_id,
    new_job,
    promote,
)
from tests.support.machine import Machine, nothing_changes
from tests.support.shards import Shards


def a_bit_of_everything() -> Machine:
    machine = Machine()
    machine.apply(
        enqueue(1, 2, 3, 4, 5),
        fetch(claim=1, count=4),
        ack(1),
        fail(2, is_final=True),
        fail(3),
        enqueue(6, scheduled_at=NOW + SECOND),
        enqueue(7, priority=Priority.CRITICAL),
        enqueue(8, priority=Priority.HIGH),
        enqueue(9),
        cancel(9),
        enqueue(new_job(10, queue="other")),
    )
    return machine


def ids(machine: Machine) -> list[str]:
    return [job.id for job in machine.jobs()]


def test_what_waits_is_deleted_and_what_is_active_or_has_ended_stays() -> None:
    machine = a_bit_of_everything()

    done = machine.one(ClearQueue(1, "mail"))

    assert done == Slice(5, NOW, 5, b"")
    assert ids(machine) == [job_id(number) for number in (1, 2, 4, 9, 10)]
    assert machine.queue().counts[State.ACTIVE] == 1
    machine.check()
    assert told(machine) == [Event(EventKind.QUEUE_CLEARED, "", "mail")]


def test_nothing_that_was_cleared_is_ever_fetched() -> None:
    machine = a_bit_of_everything()
    machine.apply(ClearQueue(1, "mail"))
    machine.apply(promote(), at=NOW + 3600 * SECOND)

    assert machine.one(fetch(claim=9, count=99)) == []
    machine.apply(enqueue(20))
    assert [claim.job_id for claim in machine.one(fetch(claim=10, count=99))] == [job_id(20)]


def test_a_clearing_that_is_repeated_says_the_same_and_changes_nothing() -> None:
    machine = a_bit_of_everything()
    first = machine.one(ClearQueue(1, "mail"))

    with nothing_changes(machine):
        assert machine.one(ClearQueue(1, "mail")) == first


def test_a_clearing_that_is_repeated_leaves_alone_what_was_born_since() -> None:
    machine = a_bit_of_everything()
    first = machine.one(ClearQueue(1, "mail"))
    machine.one(enqueue(20), at=NOW + SECOND)

    with nothing_changes(machine):
        assert machine.one(ClearQueue(1, "mail")) == first


def test_a_clearing_that_is_repeated_leaves_alone_what_it_has_caused_itself() -> None:
    """The job of a chain's `on_failure` is born at the very moment of the clearing."""
    machine = Machine()
    machine.one(
        enqueue(1, extras=JobExtras(chain=Chain("chn_1", 0, (ChainStep("mail"),), on_failure=ChainStep("mail"))))
    )
    first = machine.one(ClearQueue(1, "mail"))

    with nothing_changes(machine):
        assert machine.one(ClearQueue(1, "mail")) == first

    assert [job.parent_id for job in machine.jobs()] == [job_id(1)]


def test_what_a_job_brings_along_counts_for_the_size_of_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clear_queue, "CLAIMED_BYTES_MAX", 1_000)
    chain = Chain("chn_1", 0, (ChainStep("mail"), ChainStep("mail", b'"' + b"x" * 998 + b'"')))
    machine = Machine()
    machine.apply(*(enqueue(number, extras=JobExtras(chain=chain)) for number in range(1, 5)))

    assert finished(machine) == (QueueCleared("cleared", 4), 4)


def finished(machine: Machine, between: Any = lambda: None, twice: bool = False) -> tuple[QueueCleared, int]:
    """As the gateway does: round after round. The answer and the number of rounds."""
    [endpoint] = ENDPOINTS
    assert endpoint.plan is not None
    outcome: Answer | Plan = endpoint.plan(an_asking(1), None, "mail")
    rounds = 0
    while isinstance(outcome, Plan):
        [(_, operation)] = outcome.calls
        result = machine.one(operation)
        if twice:
            result = machine.one(operation)
        between()
        machine.check()
        rounds += 1
        outcome = outcome.conclude([result])
    return outcome.body, rounds


@pytest.mark.parametrize("twice", [False, True])
def test_a_long_queue_is_cleared_in_slices_that_are_counted_together(
    monkeypatch: pytest.MonkeyPatch, twice: bool
) -> None:
    monkeypatch.setattr(clear_queue, "JOBS_PER_REQUEST_MAX", 3)
    machine = Machine()
    machine.apply(enqueue(*range(1, 8)), enqueue(*range(10, 15), scheduled_at=NOW + SECOND))

    cleared, rounds = finished(machine, twice=twice)

    assert cleared == QueueCleared("cleared", 12)
    assert machine.jobs() == []
    assert rounds == (2 if twice else 4)
    assert len(told(machine)) == 1


def test_large_jobs_make_small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clear_queue, "CLAIMED_BYTES_MAX", 1_000)
    machine = Machine()
    machine.apply(enqueue(*range(1, 5), payload=b'"' + b"x" * 998 + b'"'))

    assert finished(machine) == (QueueCleared("cleared", 4), 4)


def test_jobs_born_meanwhile_stay_and_jobs_that_fall_due_meanwhile_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clear_queue, "JOBS_PER_REQUEST_MAX", 2)
    machine = Machine()
    machine.apply(enqueue(*range(1, 6)), enqueue(*range(10, 15), scheduled_at=NOW + SECOND))
    born = iter(range(100, 200))

    def between() -> None:
        machine.apply(enqueue(next(born)), promote(), at=machine.now + SECOND)

    cleared, rounds = finished(machine, between)

    assert cleared.deleted == 10
    assert ids(machine) == [job_id(number) for number in range(100, 100 + rounds)]
    assert len(machine.one(fetch(count=99))) == rounds


def test_the_next_fetch_does_not_wade_through_what_was_cleared() -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2, 3))
    last = machine.job(3).position
    machine.apply(ClearQueue(1, "mail"))

    assert machine.queue().cursors[Priority.NORMAL] == last


def test_a_held_key_is_free_again() -> None:
    machine = Machine()
    machine.apply(enqueue(new_job(1, extras=JobExtras(unique_key="k", unique_period_ms=60_000))), ClearQueue(1, "mail"))

    assert machine.one(enqueue(new_job(2, extras=JobExtras(unique_key="k", unique_period_ms=60_000)))) == [
        State.PENDING
    ]


def test_an_unknown_queue_is_refused_and_one_that_vanished_meanwhile_is_clear() -> None:
    machine = Machine()

    with nothing_changes(machine):
        assert machine.one(ClearQueue(1, "mail")).code == "QUEUE_NOT_FOUND"
        assert machine.one(ClearQueue(1, "mail", NOW, 2, b"x", 7)) == Slice(7, NOW, 0, b"")


@pytest.mark.parametrize(
    ("if_lost", "state"), list(zip(IfLost, (State.DEAD, State.CANCELLED, State.PENDING), strict=True))
)
def test_who_waits_for_a_cleared_job_learns_that_it_is_gone(if_lost: IfLost, state: State) -> None:
    machine = Machine()
    machine.apply(
        enqueue(1), enqueue(new_job(2, queue="other", extras=JobExtras(waits_for=(job_id(1),), if_lost=if_lost)))
    )
    machine.apply(ClearQueue(1, "mail"))

    assert machine.job(2).state == state
    machine.check()


def test_a_batch_counts_what_was_cleared_also_on_another_shard() -> None:
    shards = Shards(3)
    batch_id = f"s02_batch_{1:026d}"
    home = shard_of_queue("mail", 3)
    members = [new_job(job_id(number, home), extras=JobExtras(batch_id=batch_id)) for number in (1, 2)]
    shards.one(home, enqueue(*members))
    shards.one(home, ClearQueue(1, "mail"))

    assert shards[home].jobs() == []
    assert not shards[home].tables.errands.targets(), "the batch's shard was told, and has confirmed"
    shards.check()
