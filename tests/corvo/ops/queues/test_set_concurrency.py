"""Concurrency: so many jobs of a queue are active at a time, and no more."""

import pytest

from corvo.endpoint import Operation
from corvo.model.events import Event, EventKind
from corvo.model.lifecycle import State
from corvo.ops.jobs.delete import Delete
from corvo.ops.queues.set_concurrency import ENDPOINTS, ConcurrencyBody, SetConcurrency
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
    reclaim,
)
from tests.support.machine import Machine, nothing_changes


def test_no_more_than_so_many_are_active_over_all_workers() -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2, 3, 4), SetConcurrency("mail", 2))

    assert len(machine.one(fetch(claim=1, count=10))) == 2
    with nothing_changes(machine):
        assert machine.one(fetch(worker="w2", claim=2)) == []
    machine.one(ack(1))
    assert len(machine.one(fetch(worker="w2", claim=3, count=10))) == 1
    machine.check()


def test_a_full_queue_does_not_keep_the_next_one_waiting() -> None:
    machine = Machine()
    machine.apply(enqueue(new_job(1, queue="a"), new_job(2, queue="a"), new_job(3, queue="b")), SetConcurrency("a", 1))

    assert [claim.job_id for claim in machine.one(fetch("a", "b", count=3))] == [job_id(1), job_id(3)]


WAYS_OUT: dict[str, list[Operation]] = {
    "ack": [ack(1)],
    "fail": [fail(1)],
    "fail for good": [fail(1, is_final=True)],
    "cancel": [cancel(1)],
    "delete": [Delete(job_id(1))],
    "lease over": [reclaim()],
}


@pytest.mark.parametrize("way", WAYS_OUT)
def test_every_way_out_of_active_frees_a_place_and_wakes(way: str) -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2), SetConcurrency("mail", 1), fetch(lease_ms=10_000))
    machine.apply(*WAYS_OUT[way], at=NOW + 11 * SECOND)

    assert "mail" in machine.changes.woken
    assert len(machine.one(fetch(claim=2))) == 1


def test_a_lower_limit_takes_nothing_away_and_a_higher_one_lets_out_at_once() -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2, 3, 4), fetch(count=3))
    machine.apply(SetConcurrency("mail", 1))

    assert machine.queue().counts[State.ACTIVE] == 3
    assert machine.one(fetch(claim=2)) == []
    machine.apply(SetConcurrency("mail", 4))
    assert machine.changes.woken == {"mail"}
    assert len(machine.one(fetch(claim=3, count=9))) == 1


def test_no_limit_is_no_control_and_it_is_told() -> None:
    machine = Machine()
    machine.apply(SetConcurrency("mail", 1))
    machine.apply(SetConcurrency("mail", 0))
    with nothing_changes(machine):
        machine.apply(SetConcurrency("mail", 0))

    assert machine.queue().controls is None
    assert told(machine) == [
        Event(EventKind.QUEUE_CHANGED, "", "mail", b'{"max_concurrency":1}'),
        Event(EventKind.QUEUE_CHANGED, "", "mail", b'{"max_concurrency":0}'),
    ]


def test_the_limit_of_an_unknown_queue_cannot_be_removed() -> None:
    machine = Machine()

    with nothing_changes(machine):
        assert machine.one(SetConcurrency("mial", 0)).code == "QUEUE_NOT_FOUND"


@pytest.mark.parametrize(("asked", "limit"), [(5, 5), (0, 0), (-1, 0)])
def test_zero_or_less_asks_for_no_limit(asked: int, limit: int) -> None:
    [endpoint] = ENDPOINTS
    assert endpoint.plan is not None
    [(_, operation)] = endpoint.plan(an_asking(), ConcurrencyBody(asked), "mail").calls

    assert operation == SetConcurrency("mail", limit)
