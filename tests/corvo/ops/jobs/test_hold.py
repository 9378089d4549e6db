"""Hold: a job is kept from running; the worker of an active one loses it."""

import msgspec
import pytest

from corvo.model.errors import Refusal
from corvo.model.json_input import decode_body
from corvo.model.lifecycle import State
from corvo.ops.jobs.heartbeat import Pulse
from corvo.ops.jobs.hold import Hold, HoldBody
from tests.support.builders import NOW, SECOND, ack, fail, fetch, heartbeat, job_id, promote, reclaim
from tests.support.courier_sockets import a_machine_with
from tests.support.machine import nothing_changes

HOLD = Hold(9, job_id(1), "ask Ada")


@pytest.mark.parametrize("state", [State.PENDING, State.SCHEDULED, State.RETRYING, State.ACTIVE])
def test_time_and_workers_pass_a_held_job_by(state: State) -> None:
    machine = a_machine_with(state)
    machine.apply(HOLD)
    assert (machine.job(1).extras.hold_reason, machine.job(1).due_at) == ("ask Ada", 0)

    with nothing_changes(machine):
        assert machine.apply(promote(), reclaim(), at=NOW + 10**6 * SECOND) == [0, 0]
        assert machine.one(fetch(claim=9)) == []


def test_the_worker_of_a_held_job_is_told_to_stop_and_its_reports_are_refused() -> None:
    machine = a_machine_with(State.ACTIVE)
    machine.apply(HOLD)

    with nothing_changes(machine):
        assert machine.one(heartbeat(1, token=1)) == [Pulse.CANCEL]
        assert machine.one(ack(1, ask=2, token=1))[0].code == "LEASE_LOST"
        assert machine.one(fail(1, ask=2, token=1))[0].code == "LEASE_LOST"
        assert machine.one(ack(1, ask=2))[0].code == "WRONG_STATE"


def test_a_reason_that_is_too_long_is_refused() -> None:
    with pytest.raises(Refusal) as refused:
        decode_body(msgspec.json.Decoder(HoldBody), msgspec.json.encode({"reason": "x" * 257}))

    assert refused.value.field == "reason"
