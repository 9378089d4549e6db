"""What all actions on one job have in common: allowed or refused as the table says, and harmless when repeated."""

from collections.abc import Callable

import pytest

from corvo.endpoint import Operation
from corvo.model.errors import Refusal, Refused
from corvo.model.job import Priority
from corvo.model.lifecycle import RULES, STATE_NAMES, State, Verb
from corvo.ops.jobs import approve, change_priority, hold, move, reject, requeue, retry
from corvo.ops.jobs.actions import ACTIONS_REMEMBERED
from corvo.ops.jobs.approve import Approve
from corvo.ops.jobs.change_priority import ChangePriority, PriorityBody
from corvo.ops.jobs.hold import Hold, HoldBody
from corvo.ops.jobs.move import Move, MoveBody
from corvo.ops.jobs.reject import Reject, RejectBody
from corvo.ops.jobs.requeue import Requeue
from corvo.ops.jobs.retry import Retry
from tests.support.builders import an_asking, cancel, fetch, job_id
from tests.support.courier_sockets import a_machine_with
from tests.support.machine import nothing_changes


def priority(ask_id: int, priority: Priority) -> ChangePriority:
    return ChangePriority(job_id(1), priority, ask_id)


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


# An action, and others that undo what it did.
UNDONE: dict[str, tuple[State, Operation, list[Operation]]] = {
    "hold": (State.PENDING, Hold(1, job_id(1)), [Approve(2, job_id(1))]),
    "approve": (State.HELD, Approve(1, job_id(1)), [Hold(2, job_id(1))]),
    "retry": (State.DEAD, Retry(1, job_id(1)), [cancel(1, ask=2)]),
    "cancel": (State.PENDING, cancel(1, ask=1), [Retry(2, job_id(1))]),
    "cancel of an active job": (State.ACTIVE, cancel(1, ask=1), [Retry(2, job_id(1))]),
    "move": (State.PENDING, Move(1, job_id(1), "a"), [Move(2, job_id(1), "b")]),
    "move to where it is": (State.PENDING, Move(1, job_id(1), "mail"), [Move(2, job_id(1), "b")]),
    "priority": (State.PENDING, priority(1, Priority.HIGH), [priority(2, Priority.NORMAL)]),
    "priority that it has": (State.PENDING, priority(1, Priority.NORMAL), [priority(2, Priority.HIGH)]),
    "priority of a job that is active now": (State.PENDING, priority(1, Priority.HIGH), [fetch()]),
    "the oldest that is remembered": (
        State.PENDING,
        priority(1, Priority.HIGH),
        [priority(2 + number, Priority(2 - number % 2)) for number in range(ACTIONS_REMEMBERED - 1)],
    ),
}


@pytest.mark.parametrize(("state", "action", "others"), UNDONE.values(), ids=UNDONE)
def test_an_action_that_comes_again_after_others_does_not_undo_them(
    state: State, action: Operation, others: list[Operation]
) -> None:
    machine = a_machine_with(state)
    first = machine.one(action)
    for other in others:
        assert not isinstance(machine.one(other), Refused)

    with nothing_changes(machine):
        assert machine.one(action) == first


def test_a_job_remembers_a_bounded_number_of_actions() -> None:
    machine = a_machine_with(State.PENDING)
    for number in range(1, 3 * ACTIONS_REMEMBERED):
        machine.one(priority(number, Priority(number % 3)))

    extras = machine.job(1).extras
    assert extras is not None and len(extras.asked_before) == ACTIONS_REMEMBERED - 1


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
