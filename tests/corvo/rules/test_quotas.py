"""Quotas: a shard counts what a namespace has, and refuses jobs that do not fit, all of a request or none."""

import msgspec
import pytest

from corvo.model.access_records import Quotas
from corvo.model.errors import Refusal
from corvo.model.job_extras import JobExtras
from corvo.model.quotas import Room, StoredAmounts
from corvo.ops.jobs.delete import Delete
from corvo.ops.jobs.enqueue import Enqueue
from corvo.queries.stored import GetStored
from corvo.rules.job_creation import Existing, NewJob
from tests.support.builders import ack, an_asking, fetch, job_id, new_job
from tests.support.machine import Machine, nothing_changes

THREE = Room(Quotas(jobs_max=3))


def of_acme(number: int, queue: str = "mail", payload: bytes = b"1234567890", **fields: object) -> NewJob:
    return new_job(number, f"acme|{queue}", payload, **fields)


def held(machine: Machine, namespace: str = "acme") -> StoredAmounts:
    return GetStored([namespace]).read(machine.tables)[0]


def test_a_namespace_is_counted_by_what_is_stored() -> None:
    machine = Machine()
    machine.apply(Enqueue([of_acme(1), of_acme(2, "bills"), new_job(3)]))

    assert held(machine) == StoredAmounts(2, 20, 2)
    assert held(machine, "default") == StoredAmounts(1, 2, 1)
    assert held(machine, "nobody") == StoredAmounts()

    machine.apply(fetch("acme|mail"))
    machine.apply(ack(1))
    assert held(machine) == StoredAmounts(2, 20, 2), "a job that has ended is stored until it is removed"
    machine.apply(Delete(job_id(1)))
    assert held(machine) == StoredAmounts(1, 10, 2)


def test_counts_survive_a_restart() -> None:
    machine = Machine()
    machine.apply(Enqueue([of_acme(1), of_acme(2)]))

    machine.flush()
    machine.restart()

    assert held(machine) == StoredAmounts(2, 20, 1)


@pytest.mark.parametrize(
    ("room", "what"),
    [
        (Room(Quotas(jobs_max=3), jobs=1), "3 jobs and has 3"),
        (Room(Quotas(payload_bytes_max=35), payload_bytes=10), "35 bytes of payload and has 30"),
        (Room(Quotas(queues_max=2), queues=1), "2 queues and has 2"),
    ],
)
def test_what_does_not_fit_is_refused_and_what_fits_is_not(room: Room, what: str) -> None:
    machine = Machine()
    assert machine.one(Enqueue([of_acme(1), of_acme(2)], room))

    with nothing_changes(machine):
        refused = machine.one(Enqueue([of_acme(3, "bills")], room))
    assert refused.code == "QUOTA_EXCEEDED"
    assert what in refused.message

    machine.one(Enqueue([new_job(4, "umbrella|mail")], Room(room.quotas)))


def test_all_jobs_of_a_request_fit_or_none_is_made() -> None:
    machine = Machine()
    with nothing_changes(machine):
        assert machine.one(Enqueue([of_acme(number) for number in range(1, 5)], THREE)).code == "QUOTA_EXCEEDED"

    assert len(machine.one(Enqueue([of_acme(number) for number in range(1, 4)], THREE))) == 3


def test_a_repeated_request_and_a_duplicate_need_no_room() -> None:
    machine = Machine()
    first = Enqueue([of_acme(1, extras=JobExtras(unique_key="k")), of_acme(2), of_acme(3)], THREE)
    given = machine.one(first)

    assert machine.one(first) == given
    again = Enqueue([of_acme(4, extras=JobExtras(unique_key="k"))], THREE)
    assert machine.one(again) == [Existing(job_id(1))]
    assert machine.one(Enqueue([of_acme(5)], THREE)).code == "QUOTA_EXCEEDED"


def test_room_for_jobs_that_no_shard_can_refuse() -> None:
    class Rooms:
        def room(self, namespace: str, shard: int) -> Room | None:
            return None

        def everywhere(self, namespace: str) -> Room | None:
            return Room(Quotas(jobs_max=10), jobs=8) if namespace == "acme" else None

    context = msgspec.structs.replace(an_asking(), rooms=Rooms())

    context.require_room(100, 0)
    context.within("acme").require_room(2, 0)
    with pytest.raises(Refusal, match="10 jobs and has 8; 3 more"):
        context.within("acme").require_room(3, 0)
