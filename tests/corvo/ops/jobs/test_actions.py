"""What all actions on one job have in common: allowed or refused as the table says, and harmless when repeated."""

from collections.abc import Callable

import pytest

from corvo.endpoint import Operation
from corvo.model.errors import Refusal
from corvo.model.lifecycle import RULES, STATE_NAMES, State, Verb
from corvo.ops.jobs import approve, change_priority, hold, move, reject, requeue, retry
from corvo.ops.jobs.approve import Approve
from corvo.ops.jobs.change_priority import PriorityBody
from corvo.ops.jobs.hold import Hold, HoldBody
from corvo.ops.jobs.move import MoveBody
from corvo.ops.jobs.reject import Reject, RejectBody
from corvo.ops.jobs.requeue import Requeue
from corvo.ops.jobs.retry import Retry
from tests.support.builders import an_asking, job_id
from tests.support.courier_sockets import a_machine_with
from tests.support.machine import nothing_changes

ACTIONS: dict[Verb, Callable[[int, str], Operation]] = {
    Verb.RUN_AGAIN: Retry,
    Verb.REQUEUE: Requeue,
    Verb.HOLD: Hold,
    Verb.APPROVE: Approve,
    Verb.REJECT: Reject,
}


@pytest.mark.parametrize("state", State, ids=STATE_NAMES)
@pytest.mark.parametrize("verb", ACTIONS)
def test_an_action_does_what_the_table_says_or_is_refused_with_the_state_named(verb: Verb, state: State) -> None:
    machine = a_machine_with(state)
    action = ACTIONS[verb](9, job_id(1))
    rule = RULES[verb]

    if state in rule.sources:
        assert machine.one(action) is None
        assert machine.job(1).state is rule.destination
        machine.check()
        with nothing_changes(machine):
            assert machine.one(action) is None, "the same request again"
    else:
        with nothing_changes(machine):
            refused = machine.one(action)
        assert refused.code == "WRONG_STATE"
        assert f"is {STATE_NAMES[state]}" in refused.message


@pytest.mark.parametrize("verb", ACTIONS)
def test_a_job_that_nobody_knows_is_refused(verb: Verb) -> None:
    machine = a_machine_with(State.PENDING)

    with nothing_changes(machine):
        assert machine.one(ACTIONS[verb](9, job_id(2))).code == "JOB_NOT_FOUND"


@pytest.mark.parametrize(
    ("module", "body", "status"),
    [
        (retry, None, "retried"),
        (requeue, None, "requeued"),
        (hold, HoldBody("why"), "held"),
        (approve, None, "pending"),
        (reject, RejectBody("why"), "dead"),
        (move, MoveBody("other"), "moved"),
        (change_priority, PriorityBody("high"), "ok"),
    ],
)
def test_an_action_goes_to_the_shard_of_the_job_and_answers_with_its_word(module, body, status: str) -> None:
    [endpoint] = module.ENDPOINTS
    plan = endpoint.plan(an_asking(), body, job_id(1, shard=2))

    [(shard, operation)] = plan.calls
    assert (shard, operation.job_id) == (2, job_id(1, shard=2))
    answer = plan.conclude([None])
    assert (answer.status, answer.body.status) == (200, status)
    with pytest.raises(Refusal) as refused:
        endpoint.plan(an_asking(), body, "nonsense")
    assert refused.value.code == "JOB_NOT_FOUND"
