"""What the operations on a queue have in common."""

import pytest

from corvo.endpoint import Answer
from corvo.model.errors import Refusal
from corvo.model.events import EventKind
from corvo.model.job import Controls
from corvo.model.sharding import shard_of_queue
from corvo.ops.queues.control import ask_queue, control
from corvo.ops.queues.pause_queue import PauseQueue
from corvo.queries.queue_names import checked_name, require_queue
from tests.support.builders import an_asking, enqueue
from tests.support.machine import Machine


def test_a_queue_without_any_control_keeps_none() -> None:
    machine = Machine()
    machine.apply(enqueue(1))

    control(machine.tables, "mail", EventKind.QUEUE_CHANGED, max_concurrency=3)
    assert machine.queue().controls == Controls(max_concurrency=3)
    control(machine.tables, "mail", EventKind.QUEUE_CHANGED, max_concurrency=0)
    assert machine.queue().controls is None


def test_a_queue_that_nobody_knows_is_refused_by_name() -> None:
    with pytest.raises(Refusal, match="no queue has the name 'nowhere'") as refused:
        require_queue(Machine().tables, "nowhere")

    assert (refused.value.code, refused.value.status) == ("QUEUE_NOT_FOUND", 404)


@pytest.mark.parametrize("name", ["mail", "a/b:c.d-e", "0", "a" * 200])
def test_every_name_that_a_job_can_name_is_one(name: str) -> None:
    assert checked_name(name) == name


@pytest.mark.parametrize(
    "name", ["", " ", "-a", "/a", "a b", "ä", "a" * 201, "a\nb", "a|b|c", "A|b", "a|", "|b", "a%2Fb", "a\0b"]
)
def test_what_is_no_name_of_a_queue_is_refused_harmlessly(name: str) -> None:
    with pytest.raises(Refusal, match="is not a valid queue name") as refused:
        checked_name(name)

    assert (refused.value.code, refused.value.field) == ("VALIDATION_ERROR", "name")
    assert refused.value.message.isprintable() and len(refused.value.message) < 300


def test_the_queues_shard_is_asked() -> None:
    plan = ask_queue(an_asking(4), "mail", PauseQueue, lambda result: Answer(200, result))

    assert plan.calls == [(shard_of_queue("mail", 4), PauseQueue("mail"))]
    assert plan.conclude([7]) == Answer(200, 7)
