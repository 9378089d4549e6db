"""Known jobs: those that are here, in whatever state, and those that have moved away."""

from corvo.queries.unknown_jobs import FindUnknown
from corvo.state import keys
from tests.support.builders import ack, enqueue, fetch, job_id
from tests.support.machine import Machine


def test_only_what_is_nowhere_is_unknown() -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2), fetch(), ack(1))
    machine.tables.put(keys.forwarded(job_id(3)), keys.pack_forwarding(1, 1))

    unknown = FindUnknown([job_id(number) for number in (4, 1, 2, 3, 5)]).read(machine.tables)

    assert unknown == [job_id(4), job_id(5)]
