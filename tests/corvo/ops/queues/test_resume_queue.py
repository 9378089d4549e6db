"""Resume: the end of a pause and of a drain."""

import msgspec
import pytest

from corvo.endpoint import Operation
from corvo.model.events import EventKind
from corvo.model.job import Controls
from corvo.ops.queues.drain_queue import DrainQueue
from corvo.ops.queues.pause_queue import PauseQueue
from corvo.ops.queues.resume_queue import ENDPOINTS, ResumeQueue
from corvo.ops.queues.set_concurrency import SetConcurrency
from tests.corvo.ops.queues.events import told
from tests.support.builders import an_asking, enqueue, fetch
from tests.support.machine import Machine, nothing_changes


@pytest.mark.parametrize("halt", [PauseQueue("mail"), DrainQueue("mail")])
def test_jobs_are_given_out_again(halt: Operation) -> None:
    machine = Machine()
    machine.apply(enqueue(1), halt)
    machine.one(ResumeQueue("mail"))

    assert machine.changes.woken == {"mail"}
    assert machine.queue().controls is None
    assert len(machine.one(fetch())) == 1
    assert told(machine)[-1].kind == EventKind.QUEUE_RESUMED


def test_limits_stay() -> None:
    machine = Machine()
    machine.apply(SetConcurrency("mail", 3), PauseQueue("mail"), ResumeQueue("mail"))

    assert machine.queue().controls == Controls(max_concurrency=3)


def test_a_queue_that_runs_is_left_alone() -> None:
    machine = Machine()
    machine.apply(enqueue(1))

    with nothing_changes(machine):
        assert machine.one(ResumeQueue("mail")) is None


def test_an_unknown_queue_is_refused() -> None:
    machine = Machine()

    with nothing_changes(machine):
        assert machine.one(ResumeQueue("mial")).code == "QUEUE_NOT_FOUND"


def test_the_answer_says_resumed() -> None:
    [endpoint] = ENDPOINTS
    assert endpoint.plan is not None

    assert msgspec.to_builtins(endpoint.plan(an_asking(), None, "mail").conclude([None]).body) == {"status": "resumed"}
