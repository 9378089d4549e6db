"""Drain: no new claims, and word of what is still active."""

import msgspec
import pytest

from corvo.model.events import Event, EventKind
from corvo.ops.queues.drain_queue import ENDPOINTS, DrainQueue
from tests.corvo.ops.queues.events import told
from tests.support.builders import ack, an_asking, enqueue, fetch
from tests.support.machine import Machine, nothing_changes


def test_a_drain_says_what_is_active_and_lets_nothing_more_out() -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2, 3), fetch(count=2))

    assert machine.one(DrainQueue("mail")) == 2
    with nothing_changes(machine):
        assert machine.one(fetch(claim=2)) == []
    machine.apply(ack(1), ack(2))
    assert machine.one(DrainQueue("mail")) == 0
    assert told(machine) == [Event(EventKind.QUEUE_DRAINING, "", "mail")]


def test_a_queue_that_does_not_exist_is_made_and_drained() -> None:
    machine = Machine()

    assert machine.one(DrainQueue("mail")) == 0
    assert machine.queue().controls is not None


@pytest.mark.parametrize(("active", "status"), [(2, "draining"), (0, "drained")])
def test_the_answer_tells_draining_from_drained(active: int, status: str) -> None:
    [endpoint] = ENDPOINTS
    assert endpoint.plan is not None
    answer = endpoint.plan(an_asking(), None, "mail").conclude([active])

    assert msgspec.to_builtins(answer.body) == {"status": status, "active": active}
