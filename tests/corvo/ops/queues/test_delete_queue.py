"""Delete a queue: everything in it goes, then the queue."""

from typing import Any

import pytest

from corvo.endpoint import Answer, Plan
from corvo.model.errors import Refusal
from corvo.model.events import Event, EventKind
from corvo.model.job_extras import JobExtras
from corvo.model.lifecycle import State
from corvo.ops.jobs.move import Move
from corvo.ops.queues import delete_queue
from corvo.ops.queues.control import QueueChanged
from corvo.ops.queues.delete_queue import ENDPOINTS, DeleteQueue, DeleteQueueQuery, Looked
from corvo.ops.queues.set_throttle import SetThrottle
from corvo.queries.queue_names import KnowsQueue
from corvo.state import keys
from tests.corvo.ops.queues.events import told
from tests.support.builders import NOW, SECOND, ack, an_asking, cancel, enqueue, fail, fetch, job_id, new_job
from tests.support.machine import Machine, nothing_changes

[ENDPOINT] = ENDPOINTS


def a_bit_of_everything() -> Machine:
    machine = Machine()
    machine.apply(
        enqueue(1, 2, 3, 4),
        fetch(claim=1, count=3),
        ack(1),
        fail(2, is_final=True),
        fail(3),
        enqueue(6, scheduled_at=NOW + SECOND),
        enqueue(9),
        cancel(9),
        enqueue(new_job(10, queue="other")),
    )
    return machine


def planned(query: DeleteQueueQuery) -> Plan:
    assert ENDPOINT.plan is not None
    plan = ENDPOINT.plan(an_asking(1), query, "mail")
    assert isinstance(plan, Plan)
    return plan


def finished(machine: Machine, between: Any = lambda: None, **query: bool) -> Any:
    """As the gateway does: a question, then round after round, each of them twice."""
    plan = planned(DeleteQueueQuery(confirm=True, **query))
    assert plan.calls == [(0, KnowsQueue("mail"))]
    outcome: Answer | Plan = plan.conclude([KnowsQueue("mail").read(machine.tables)])
    while isinstance(outcome, Plan):
        [(_, operation)] = outcome.calls
        first = machine.one(operation)
        machine.one(operation)
        between()
        machine.check()
        outcome = outcome.conclude([first])
    return outcome.body


@pytest.mark.parametrize("slice_size", [1, 2, 1_000])
def test_all_jobs_of_the_queue_go_and_then_the_queue(monkeypatch: pytest.MonkeyPatch, slice_size: int) -> None:
    monkeypatch.setattr(delete_queue, "JOBS_PER_REQUEST_MAX", slice_size)
    machine = a_bit_of_everything()

    assert finished(machine) == QueueChanged("deleted")

    assert [job.id for job in machine.jobs()] == [job_id(10)]
    assert [queue.name for queue in machine.queues()] == ["other"]
    assert told(machine) == [Event(EventKind.QUEUE_DELETED, "", "mail")]
    machine.flush()
    machine.restart()
    machine.check()


def test_an_empty_queue_goes_at_once_whatever_else_is_on_the_shard() -> None:
    machine = Machine()
    machine.apply(SetThrottle("mail", 5, 1_000), enqueue(*range(1, 3_000), queue="other"))

    assert machine.one(DeleteQueue("mail")) == Looked(NOW, b"")
    assert machine.tables.find_queue("mail") is None


def test_jobs_older_than_the_queue_s_first_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a deletion takes the longer, the more jobs of other queues are stored."""
    monkeypatch.setattr(delete_queue, "JOBS_PER_REQUEST_MAX", 5)
    machine = Machine()
    machine.apply(*[enqueue(new_job(number, queue="other")) for number in range(100)])
    machine.apply(enqueue(101, 102, 103), fetch(claim=1), ack(101))

    assert machine.one(DeleteQueue("mail")) == Looked(machine.tables.now, b"")
    assert machine.tables.find_queue("mail") is None
    machine.check()


def test_a_job_that_moved_in_with_a_lesser_id_goes_too() -> None:
    machine = Machine()
    machine.apply(enqueue(new_job(1, queue="other"), new_job(2, queue="other")), enqueue(3))
    machine.apply(Move(1, job_id(1), "mail"))

    assert finished(machine) == QueueChanged("deleted")
    assert [job.id for job in machine.jobs()] == [job_id(2)]


def test_a_queue_of_a_former_version_is_deleted_from_the_shard_s_first_job_on() -> None:
    machine = a_bit_of_everything()
    machine.tables.queue("mail").first_id = ""

    assert finished(machine, force=True) == QueueChanged("deleted")
    assert [job.id for job in machine.jobs()] == [job_id(10)]


def test_while_jobs_are_active_it_is_refused_and_nothing_changes() -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2), fetch())

    with nothing_changes(machine):
        refused = machine.one(DeleteQueue("mail"))

    assert refused.code == "WRONG_STATE"
    assert "1 jobs of mail are active" in refused.message and "force=true" in refused.message


def test_forced_it_takes_jobs_away_from_workers() -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2), fetch(lease_ms=10_000))

    assert finished(machine, force=True) == QueueChanged("deleted")
    assert machine.jobs() == [] and len(machine.tables.leases) == 0
    assert machine.one(ack(1, token=1))[0].code in ("LEASE_LOST", "JOB_NOT_FOUND")


def test_nothing_is_claimed_meanwhile_and_jobs_born_meanwhile_make_a_new_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(delete_queue, "JOBS_PER_REQUEST_MAX", 2)
    machine = Machine()
    machine.apply(SetThrottle("mail", 5, 1_000), enqueue(*range(1, 8)))
    born = iter(range(100, 200))
    claimed: list[Any] = []

    def between() -> None:
        claimed.extend(machine.one(fetch(count=9), at=machine.now + SECOND) if len(machine.jobs()) > 4 else [])
        machine.apply(enqueue(next(born)))

    assert finished(machine, between) == QueueChanged("deleted")

    assert claimed == []
    left = [job.id for job in machine.jobs()]
    assert left and all(name >= job_id(100) for name in left)
    queue = machine.queue()
    assert queue.controls is None
    assert (queue.counts[State.PENDING], queue.enqueued) == (len(left), len(left))
    assert [claim.job_id for claim in machine.one(fetch(claim=7, count=99))] == left


def test_a_deletion_that_is_repeated_leaves_a_new_queue_alone() -> None:
    machine = Machine()
    machine.apply(enqueue(1))
    machine.apply(DeleteQueue("mail"))
    machine.apply(enqueue(2), at=NOW + SECOND)

    with nothing_changes(machine):
        assert machine.one(DeleteQueue("mail", False, NOW, b"j|")) == Looked(NOW, b"")


def test_a_first_slice_that_is_repeated_leaves_a_new_queue_alone() -> None:
    machine = Machine()
    machine.apply(enqueue(1))
    outcome = planned(DeleteQueueQuery(confirm=True)).conclude([KnowsQueue("mail").read(machine.tables)])
    assert isinstance(outcome, Plan)
    [(_, operation)] = outcome.calls
    first = machine.one(operation, at=NOW + SECOND)
    assert machine.jobs() == []
    machine.one(enqueue(2), at=NOW + 2 * SECOND)

    with nothing_changes(machine):
        assert machine.one(operation, at=NOW + 3 * SECOND) == first


def test_keys_throttles_and_errors_go_too() -> None:
    machine = Machine()
    machine.apply(
        SetThrottle("mail", 5, 1_000),
        enqueue(new_job(1, extras=JobExtras(unique_key="k", unique_period_ms=60_000, idempotency_key="i"))),
        fetch(),
        fail(1),
        DeleteQueue("mail"),
    )

    families = (keys.CLAIMS, keys.UNIQUE, keys.IDEMPOTENT, keys.JOB_ERRORS, keys.QUEUES, keys.JOBS)
    assert [key for family in families for key, _ in machine._scan(family)] == []


def test_without_confirmation_it_is_refused_and_says_so() -> None:
    with pytest.raises(Refusal, match="confirm=true") as refused:
        planned(DeleteQueueQuery())

    assert (refused.value.code, refused.value.status) == ("VALIDATION_ERROR", 400)


def test_an_unknown_queue_is_refused_before_anything_is_asked() -> None:
    with pytest.raises(Refusal) as refused:
        KnowsQueue("mial").read(Machine().tables)

    assert refused.value.code == "QUEUE_NOT_FOUND"
