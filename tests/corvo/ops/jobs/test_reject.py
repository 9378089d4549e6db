"""Reject: a held job is dead, and its history says why."""

import pytest

from corvo.model.lifecycle import State
from corvo.ops.jobs.hold import Hold
from corvo.ops.jobs.reject import Reject
from tests.support.builders import NOW, SECOND, job_id
from tests.support.courier_sockets import a_machine_with


@pytest.mark.parametrize(("reason", "text"), [("", "rejected"), ("too dear", "rejected: too dear")])
def test_the_reason_stands_in_the_history(reason: str, text: str) -> None:
    machine = a_machine_with(State.HELD)

    machine.apply(Reject(9, job_id(1), reason), at=NOW + SECOND)

    assert machine.job(1).failed_at == NOW + SECOND
    assert [(error.error, error.worker_id) for error in machine.tables.errors(job_id(1))] == [(text, "")]


def test_an_earlier_failure_is_not_written_over() -> None:
    machine = a_machine_with(State.RETRYING)
    machine.apply(Hold(8, job_id(1)), Reject(9, job_id(1)))

    assert [error.error for error in machine.tables.errors(job_id(1))] == ["boom", "rejected"]
