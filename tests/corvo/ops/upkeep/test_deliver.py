"""Deliver: another shard's errands are done here, each once and in order, as often as they are brought."""

import pytest

from corvo import wire
from corvo.model.job_extras import Chain, ChainStep, JobExtras, Outcome
from corvo.model.lifecycle import State
from corvo.model.limits import SHARDS_MAX
from corvo.ops.upkeep.deliver import Deliver
from corvo.rules.errands.make_job import MakeJob
from corvo.rules.errands.member_ended import MemberEnded
from corvo.rules.errands.register import ERRANDS
from corvo.rules.errands.watch import Ended, Watch
from corvo.rules.job_creation import NewJob
from tests.support.builders import job_id
from tests.support.machine import Machine, nothing_changes


def bring(first: int, *jobs: int, source: int = 1) -> Deliver:
    errands = [wire.encode(MakeJob(NewJob(job_id(job), "mail", b"{}"))) for job in jobs]
    return Deliver(source, first, errands)


def made(machine: Machine) -> list[str]:
    return [job.id for job in sorted(machine.jobs(), key=lambda job: job.position)]


def test_errands_are_done_in_their_order_and_the_last_number_is_the_answer() -> None:
    machine = Machine(0, 2)

    assert machine.one(bring(1, 3, 1, 2)) == 3

    assert made(machine) == [job_id(3), job_id(1), job_id(2)]


def test_what_was_done_is_passed_over_and_answered_alike() -> None:
    machine = Machine(0, 2)
    machine.one(bring(1, 1, 2))

    with nothing_changes(machine):
        assert machine.one(bring(1, 1, 2)) == 2
        assert machine.one(bring(1, 1)) == 2

    assert machine.one(bring(2, 2, 3)) == 3
    assert machine.queue().enqueued == 3


def test_beyond_a_hole_nothing_is_done() -> None:
    machine = Machine(0, 2)

    with nothing_changes(machine):
        assert machine.one(bring(2, 2, 3)) == 0


def test_every_source_has_numbers_of_its_own() -> None:
    machine = Machine(0, 3)

    assert machine.one(bring(1, 1, source=1)) == 1
    assert machine.one(bring(1, 2, source=2)) == 1

    assert made(machine) == [job_id(1), job_id(2)]


def test_nothing_brought_is_nothing_done() -> None:
    machine = Machine(0, 2)
    machine.one(bring(1, 1))

    with nothing_changes(machine):
        assert machine.one(Deliver(1, 2, [])) == 1


def test_numbers_survive_a_crash_flushed_or_not() -> None:
    for is_flushed in (True, False):
        machine = Machine(0, 2)
        machine.one(bring(1, 1, 2))
        if is_flushed:
            machine.flush()

        machine.restart()

        with nothing_changes(machine):
            assert machine.one(bring(1, 1, 2)) == 2


def test_the_consequences_of_an_errand_are_drawn_before_the_next_one() -> None:
    """The first errand makes a job that waits for nobody anybody knows: it is dead before the second is made."""
    machine = Machine(0, 2)
    chain = Chain("c", 0, (ChainStep("mail"),), on_failure=ChainStep("alarm"))
    lost = NewJob(job_id(1), "mail", b"{}", extras=JobExtras(waits_for=(job_id(99),), chain=chain))

    machine.one(Deliver(1, 1, [wire.encode(MakeJob(lost)), *bring(1, 2).errands]))

    assert machine.job(1).state == State.DEAD
    assert machine.queue("alarm").counts[State.PENDING] == 1
    [failure] = [job for job in machine.jobs() if job.queue == "alarm"]
    assert failure.position < machine.job(2).position
    machine.check()


@pytest.mark.parametrize(
    "errand",
    [
        Watch(job_id(98), job_id(99)),
        Ended(job_id(98), Outcome.DEAD, job_id(99)),
        MemberEnded("s00_batch_" + "9" * 26, Outcome.COMPLETED),
        MakeJob(NewJob(job_id(1), "mail", b"{}")),
    ],
    ids=lambda errand: type(errand).__name__,
)
def test_no_errand_refuses_whatever_it_finds(errand: object) -> None:
    machine = Machine(0, 2)

    assert machine.one(Deliver(1, 1, [wire.encode(errand)])) == 1
    assert machine.one(Deliver(1, 2, [wire.encode(errand)])) == 2, "nor when it finds its own work done"

    machine.check()


def test_numbers_of_errands_are_for_ever() -> None:
    tags = {errand.__struct_config__.tag: errand.__name__ for errand in ERRANDS}

    assert len(tags) == len(ERRANDS)
    assert {1: "Watch", 2: "Ended", 3: "MakeJob", 4: "MemberEnded", 5: "MoveIn"}.items() <= tags.items()


@pytest.mark.parametrize("source", [-1, SHARDS_MAX])
def test_a_shard_that_cannot_be_is_stopped_before_the_log(source: int) -> None:
    with pytest.raises(ValueError):
        wire.decode_ask(wire.encode(Deliver(source, 1, [])))
