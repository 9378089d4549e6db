"""What the end of a job means for its key, its batch, its chain and those that wait for it: once, whatever the road."""

from collections.abc import Callable
from typing import Any

import pytest

from corvo.model.job_extras import EXIT_STEP, FAILURE_STEP, Chain, ChainStep, IfLost, JobExtras, Outcome
from corvo.model.lifecycle import State, Verb
from corvo.ops.upkeep.ring import Ring
from corvo.rules.batches import Batch, find_batch, put_batch
from corvo.rules.errands.forget import Forget
from corvo.rules.errands.member_ended import MemberEnded
from corvo.rules.errands.register import decode_errand
from corvo.rules.job_creation import derived_id
from corvo.state import keys, locks
from corvo.state.transitions import EXPIRE_ALARM, change, remove
from tests.support.builders import MS, NOW, SECOND, ack, cancel, enqueue, fail, fetch, job_id, new_job, reclaim
from tests.support.machine import Machine

BATCH = "s00_batch_" + "0" * 26
FAR_BATCH = "s01_batch_" + "0" * 26


def a_machine(shard_count: int = 1, **extras: Any) -> Machine:
    """Job 1 with these bonds, claimed."""
    machine = Machine(0, shard_count)
    machine.apply(enqueue(new_job(1, max_retries=1, extras=JobExtras(**extras))), fetch(lease_ms=1_000))
    return machine


def _by_hand(verb: Verb) -> Callable[[Machine], None]:
    """What only other operations say: a heartbeat to an expired job, a cancel that its worker has heard."""

    def act(machine: Machine) -> None:
        with machine.by_hand() as tables:
            change(tables, machine.job(1), verb)

    return act


def _delete(machine: Machine) -> None:
    with machine.by_hand() as tables:
        remove(tables, machine.job(1))


# Every road to an end, and the outcome that others are told.
ENDS: dict[str, tuple[Callable[[Machine], Any], Outcome]] = {
    "ack": (lambda machine: machine.one(ack(1)), Outcome.COMPLETED),
    "last fail": (lambda machine: machine.one(fail(1)), Outcome.DEAD),
    "lease over": (lambda machine: machine.one(reclaim(), at=NOW + 2 * SECOND), Outcome.DEAD),
    "expired": (_by_hand(Verb.EXPIRE), Outcome.DEAD),
    "cancelled": (_by_hand(Verb.CANCEL), Outcome.CANCELLED),
    "deleted": (_delete, Outcome.DELETED),
}
every_end = pytest.mark.parametrize(("end", "outcome"), ENDS.values(), ids=ENDS)
End = Callable[[Machine], Any]


@every_end
def test_every_end_frees_the_unique_key(end: End, outcome: Outcome) -> None:
    machine = a_machine(unique_key="k")
    assert locks.holder(machine.tables, "mail", JobExtras(unique_key="k")) == job_id(1)

    end(machine)

    assert locks.holder(machine.tables, "mail", JobExtras(unique_key="k")) is None


@every_end
def test_every_end_silences_the_alarm_of_expiry(end: End, outcome: Outcome) -> None:
    machine = a_machine(expire_after_ms=60_000)
    alarm = keys.due(keys.ALARMS, NOW + 60 * SECOND, EXPIRE_ALARM + job_id(1))
    assert alarm in machine.records()

    end(machine)

    assert alarm not in machine.records()


@every_end
def test_every_end_is_counted_by_the_batch_under_its_outcome(end: End, outcome: Outcome) -> None:
    machine = a_machine(batch_id=BATCH)
    with machine.by_hand() as tables:
        put_batch(tables, Batch(BATCH, NOW, total=2))

    end(machine)

    batch = find_batch(machine.tables, BATCH)
    assert batch is not None
    assert batch.ended == [int(each == outcome) for each in Outcome]


@every_end
def test_a_batch_on_another_shard_is_told_by_an_errand(end: End, outcome: Outcome) -> None:
    machine = a_machine(2, batch_id=FAR_BATCH)

    end(machine)

    _, raws = machine.tables.errands.waiting(1, 9, 9_999)
    assert [decode_errand(raw) for raw in raws] == [MemberEnded(FAR_BATCH, outcome)]


@every_end
def test_every_end_lets_the_chain_go_on_in_its_direction(end: End, outcome: Outcome) -> None:
    chain = Chain(
        "c", 0, (ChainStep("mail"), ChainStep("video")), on_failure=ChainStep("alarm"), on_exit=ChainStep("exit")
    )
    machine = a_machine(chain=chain)

    end(machine)

    number, queue = (1, "video") if outcome is Outcome.COMPLETED else (FAILURE_STEP, "alarm")
    made = machine.job(derived_id(0, "c", number))
    assert (made.queue, made.state, made.parent_id) == (queue, State.PENDING, job_id(1))
    assert made.extras is not None and made.extras.chain is not None and made.extras.chain.step == number
    assert machine.tables.find_job(derived_id(0, "c", EXIT_STEP)) is None
    machine.check()


@every_end
def test_every_end_is_told_to_those_that_wait(end: End, outcome: Outcome) -> None:
    machine = a_machine()
    for number, policy in ((2, IfLost.FAIL), (3, IfLost.CANCEL), (4, IfLost.RUN)):
        machine.one(enqueue(new_job(number, extras=JobExtras(waits_for=(job_id(1),), if_lost=policy))))

    end(machine)

    is_kept = outcome is Outcome.COMPLETED
    expected = [State.PENDING] * 3 if is_kept else [State.DEAD, State.CANCELLED, State.PENDING]
    assert [machine.job(number).state for number in (2, 3, 4)] == expected
    assert not any(key.startswith(keys.WATCHERS) for key in machine.records())
    machine.check()


def test_a_job_without_bonds_has_no_consequences() -> None:
    machine = Machine(0, 2)
    machine.apply(enqueue(1), fetch(), ack(1))

    assert not machine.tables.ended and not machine.tables.errands.here
    assert machine.tables.errands.targets() == []


@pytest.mark.parametrize("again", ["ack", "last fail", "cancelled", "deleted"])
def test_a_job_that_runs_again_and_ends_again_tells_batch_and_chain_nothing_new(again: str) -> None:
    machine = a_machine(2, batch_id=FAR_BATCH, chain=Chain("c", 0, (ChainStep("mail"),), on_failure=ChainStep("alarm")))
    machine.one(fail(1))
    first = machine.tables.errands.given[1]

    _by_hand(Verb.RUN_AGAIN)(machine)
    machine.one(fetch(claim=2))
    ENDS[again][0](machine)

    assert machine.tables.errands.given[1] == first
    assert machine.queue("alarm").enqueued == 1


def test_consequences_of_consequences_are_drawn_in_the_same_entry() -> None:
    """A dies; B, which waited for it, is forsaken; C waited for B, and the chain of C goes on with its failure."""
    machine = a_machine()
    machine.one(enqueue(new_job(2, extras=JobExtras(waits_for=(job_id(1),)))))
    chain = Chain("c", 0, (ChainStep("mail"),), on_failure=ChainStep("alarm"))
    machine.one(enqueue(new_job(3, extras=JobExtras(waits_for=(job_id(2),), chain=chain))))

    machine.one(fail(1))

    assert [machine.job(number).state for number in (1, 2, 3)] == [State.DEAD] * 3
    assert machine.job(derived_id(0, "c", FAILURE_STEP)).queue == "alarm"
    machine.check()


def test_a_job_that_expires_by_its_alarm_has_its_consequences_too() -> None:
    machine = Machine()
    chain = Chain("c", 0, (ChainStep("mail"),), on_failure=ChainStep("alarm"))
    machine.one(enqueue(new_job(1, extras=JobExtras(expire_after_ms=500, chain=chain))))

    machine.one(Ring(), at=NOW + 500 * MS)

    assert machine.job(1).state == State.DEAD
    assert machine.queue("alarm").counts[State.PENDING] == 1


def test_a_dependent_with_a_date_waits_for_the_date_too() -> None:
    machine = a_machine()
    machine.one(enqueue(new_job(2, scheduled_at=NOW + 5 * SECOND, extras=JobExtras(waits_for=(job_id(1),)))))

    machine.one(ack(1), at=NOW + SECOND)

    assert (machine.job(2).state, machine.job(2).due_at) == (State.SCHEDULED, NOW + 5 * SECOND)
    machine.check()


def test_a_job_that_was_cancelled_while_it_waited_is_not_woken() -> None:
    machine = a_machine()
    machine.one(enqueue(new_job(2, extras=JobExtras(waits_for=(job_id(1),)))))
    machine.one(cancel(2))

    machine.one(ack(1))

    assert machine.job(2).state == State.CANCELLED
    machine.check()


@every_end
def test_the_deletion_of_a_job_that_has_ended_tells_its_end_no_second_time(end: End, outcome: Outcome) -> None:
    machine = a_machine(shard_count=3, batch_id=FAR_BATCH, is_watched=True, was_at=(2, 0))
    machine.tables.put(keys.watcher(job_id(1), job_id(2)), b"")
    end(machine)
    given = machine.tables.errands.given.get(1, 0)
    if outcome is not Outcome.DELETED:
        _delete(machine)

    assert machine.tables.errands.given.get(1, 0) == given == 1, "the batch has heard of it once"
    _, sent = machine.tables.errands.waiting(2, 10, 10_000)
    assert [decode_errand(raw) for raw in sent] == [Forget(job_id(1))], "shard 2 need not lead to it any more"
