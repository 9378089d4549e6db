"""Confirm: the outbox forgets what another shard has done, once, and nothing else."""

from corvo.model.job_extras import Chain, ChainStep, JobExtras
from corvo.ops.upkeep.confirm import Confirm
from corvo.state import keys
from tests.support.builders import cancel, enqueue, job_id, new_job
from tests.support.machine import Machine, nothing_changes
from tests.support.shards import queue_on

FAR = queue_on(1, 2)


def a_machine(errands: int) -> Machine:
    """Shard 0 of two, with so many errands for the other."""
    machine = Machine(0, 2)
    for number in range(1, errands + 1):
        chain = Chain(f"chain-{number}", 0, (ChainStep("mail"),), on_failure=ChainStep(FAR))
        machine.apply(enqueue(new_job(number, extras=JobExtras(chain=chain))), cancel(number))
    return machine


def outbox(machine: Machine) -> list[int]:
    return [keys.outbox_number(key) for key in sorted(machine.records()) if key.startswith(keys.OUTBOX)]


def test_what_is_confirmed_is_forgotten_and_the_rest_stays() -> None:
    machine = a_machine(3)
    assert outbox(machine) == [1, 2, 3]

    assert machine.one(Confirm(1, 2)) == 2

    assert outbox(machine) == [3]
    assert machine.tables.errands.waiting(1, 9, 9_999)[0] == 3


def test_the_same_confirmation_again_and_an_older_one_change_nothing() -> None:
    machine = a_machine(3)
    machine.one(Confirm(1, 2))

    with nothing_changes(machine):
        assert machine.one(Confirm(1, 2)) == 0
        assert machine.one(Confirm(1, 1)) == 0
        assert machine.one(Confirm(1, 0)) == 0
        assert machine.one(Confirm(0, 5)) == 0


def test_more_than_was_given_cannot_be_confirmed() -> None:
    machine = a_machine(2)

    assert machine.one(Confirm(1, 50)) == 2

    assert outbox(machine) == []
    machine.apply(
        enqueue(new_job(9, extras=JobExtras(chain=Chain("c", 0, (ChainStep("mail"),), on_failure=ChainStep(FAR)))))
    )
    machine.one(cancel(9))
    assert outbox(machine) == [3]
    assert machine.tables.errands.targets() == [1], "and the next one is carried"


def test_a_confirmation_survives_a_crash_flushed_or_not() -> None:
    for is_flushed in (True, False):
        machine = a_machine(2)
        machine.flush()
        machine.one(Confirm(1, 1))
        if is_flushed:
            machine.flush()
        before = machine.state()

        machine.restart()

        assert machine.state() == before
        assert machine.tables.errands.waiting(1, 9, 9_999)[0] == 2
        assert machine.job(job_id(1)).id == job_id(1)
