"""Forget: the note that led to a job which is gone is removed."""

from corvo.ops.upkeep.deliver import Deliver
from corvo.rules.errands.forget import Forget
from corvo.state import keys
from corvo.wire import encode
from tests.support.builders import job_id
from tests.support.machine import Machine, nothing_changes


def test_a_note_is_removed() -> None:
    machine = Machine(shard=0, shard_count=3)
    machine.tables.put(keys.forwarded(job_id(1)), keys.pack_forwarding(2, 1))

    machine.apply(Deliver(1, 1, [encode(Forget(job_id(1)))]))

    assert machine.tables.forwarded_to(job_id(1)) is None
    assert machine.tables.errands.targets() == []


def test_without_a_note_there_is_nothing_to_do() -> None:
    machine = Machine(shard=0, shard_count=3)
    machine.apply(Deliver(1, 1, [encode(Forget(job_id(1)))]))

    assert machine.tables.errands.targets() == []
    with nothing_changes(machine):
        machine.apply(Deliver(1, 1, [encode(Forget(job_id(1)))]))
