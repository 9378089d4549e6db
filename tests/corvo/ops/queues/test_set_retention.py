"""Retention: how long jobs are kept after their end."""

from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from corvo.endpoint import Operation
from corvo.model.errors import Refusal
from corvo.model.events import Event, EventKind
from corvo.model.job import Controls
from corvo.model.limits import RETENTION_MS_DEFAULT
from corvo.ops.queues.set_retention import ENDPOINTS, FOR_EVER, KEPT, OF_THE_SERVER, RetentionBody, SetRetention
from corvo.ops.upkeep.ring import Ring
from tests.corvo.ops.queues.events import told
from tests.support.builders import NOW, SECOND, ack, an_asking, cancel, enqueue, fail, fetch
from tests.support.machine import Machine, nothing_changes

[ENDPOINT] = ENDPOINTS


def is_there(machine: Machine, after: int) -> bool:
    machine.one(Ring(), at=NOW + after)
    machine.check()
    return bool(machine.jobs())


@pytest.mark.parametrize(
    ("spans", "end"),
    [
        ((5_000, KEPT, KEPT), [fetch(), ack(1)]),
        ((KEPT, 5_000, KEPT), [fetch(), fail(1, is_final=True)]),
        ((KEPT, KEPT, 5_000), [cancel(1)]),
    ],
)
def test_a_job_is_kept_for_the_span_of_its_end_and_no_longer(spans: Any, end: list[Operation]) -> None:
    machine = Machine()
    machine.apply(SetRetention("mail", spans), enqueue(1), *end)

    assert is_there(machine, 5 * SECOND - 1)
    assert not is_there(machine, 5 * SECOND)


def test_other_ends_keep_the_span_of_the_server() -> None:
    machine = Machine()
    machine.apply(SetRetention("mail", (KEPT, 5_000, 5_000)), enqueue(1), fetch(), ack(1))

    assert is_there(machine, RETENTION_MS_DEFAULT * 10**6 - 1)
    assert not is_there(machine, RETENTION_MS_DEFAULT * 10**6)


def test_for_ever_is_for_ever_also_for_what_has_ended_already() -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2), fetch(count=2), ack(1))
    machine.apply(SetRetention("mail", (FOR_EVER, KEPT, KEPT)))
    machine.apply(ack(2))

    assert is_there(machine, 400 * 24 * 3600 * SECOND)
    assert len(machine.jobs()) == 2


def test_a_longer_span_counts_for_what_has_ended_already() -> None:
    machine = Machine()
    machine.apply(SetRetention("mail", (5_000, KEPT, KEPT)), enqueue(1), fetch(), ack(1))
    machine.apply(SetRetention("mail", (9_000, KEPT, KEPT)))

    assert is_there(machine, 9 * SECOND - 1)
    assert not is_there(machine, 9 * SECOND)


def test_a_decision_leaves_the_others_and_is_told_once() -> None:
    machine = Machine()
    machine.apply(SetRetention("mail", (5_000, KEPT, FOR_EVER)))
    machine.apply(SetRetention("mail", (OF_THE_SERVER, 7_000, KEPT)))
    with nothing_changes(machine):
        machine.apply(SetRetention("mail", (KEPT, 7_000, KEPT)))

    assert machine.queue().controls == Controls(retention_ms=(-1, 7_000, 0))
    assert told(machine)[1:] == [
        Event(EventKind.QUEUE_CHANGED, "", "mail", b'{"retention_ms":{"completed":-1,"dead":7000,"cancelled":0}}')
    ]


def asked(body: RetentionBody) -> Any:
    assert ENDPOINT.plan is not None
    [(_, operation)] = ENDPOINT.plan(an_asking(), body, "mail").calls
    return operation.spans_ms


def test_a_request_says_spans_for_ever_the_servers_own_or_nothing() -> None:
    assert asked(RetentionBody("1h30m", "forever", None)) == (5_400_000, FOR_EVER, OF_THE_SERVER)
    assert asked(RetentionBody(dead="366d")) == (KEPT, 366 * 86_400_000, KEPT)
    assert msgspec.json.decode(b'{"completed":null}', type=RetentionBody) == RetentionBody(None, UNSET, UNSET)


@pytest.mark.parametrize("span", ["", "soon", "0s", "999ms", "367d", "5"])
def test_a_span_that_is_none_is_refused_with_its_field(span: str) -> None:
    with pytest.raises(Refusal) as refused:
        asked(RetentionBody(dead=span))

    assert (refused.value.code, refused.value.field) == ("VALIDATION_ERROR", "dead")


def test_an_empty_request_is_refused() -> None:
    with pytest.raises(Refusal, match="give at least one"):
        asked(RetentionBody())
