"""Reschedule: from where, to when, and what stays."""

import pytest

from corvo.model.errors import Refusal
from corvo.model.events import EventKind
from corvo.model.job_extras import JobExtras
from corvo.model.lifecycle import RULES, STATE_NAMES, State, Verb
from corvo.ops.jobs.reschedule import ENDPOINTS, Reschedule, RescheduleBody
from corvo.ops.upkeep.promote import Promote
from tests.support.builders import SECOND, an_asking, enqueue, job_id
from tests.support.courier_sockets import a_machine_with
from tests.support.event_kinds import kinds_of
from tests.support.machine import Machine, nothing_changes

WAITING = RULES[Verb.RESCHEDULE].sources
[ENDPOINT] = ENDPOINTS


@pytest.mark.parametrize("state", sorted(WAITING), ids=lambda state: STATE_NAMES[state])
def test_a_job_that_waits_is_scheduled_for_the_new_time(state: State) -> None:
    machine = a_machine_with(state)
    attempt, due_at = machine.job(1).attempt, machine.now + 60 * SECOND

    assert machine.one(Reschedule(9, job_id(1), due_at)) is None

    job = machine.job(1)
    assert (job.state, job.due_at, job.attempt) == (State.SCHEDULED, due_at, attempt)
    assert kinds_of(machine, job_id(1))[-1] is EventKind.RESCHEDULED
    machine.check()
    with nothing_changes(machine):
        assert machine.one(Reschedule(9, job_id(1), due_at + SECOND)) is None, "the same request again"


@pytest.mark.parametrize("state", sorted(set(State) - WAITING), ids=lambda state: STATE_NAMES[state])
def test_another_job_is_refused_with_its_state(state: State) -> None:
    machine = a_machine_with(state)

    with nothing_changes(machine):
        refused = machine.one(Reschedule(9, job_id(1), machine.now + SECOND))

    assert refused.code == "WRONG_STATE" and f"is {STATE_NAMES[state]}" in refused.message


def test_a_time_in_the_past_is_now() -> None:
    machine = a_machine_with(State.SCHEDULED)

    machine.one(Reschedule(9, job_id(1), machine.now - SECOND))
    machine.one(Promote())

    assert machine.job(1).state is State.PENDING


def test_a_job_that_waits_for_another_keeps_waiting_and_remembers_the_time() -> None:
    machine = Machine()
    machine.one(enqueue(1))
    machine.one(enqueue(2, extras=JobExtras(waits_for=(job_id(1),))))
    before = machine.job(2).due_at

    machine.one(Reschedule(9, job_id(2), machine.now + 60 * SECOND))

    job = machine.job(2)
    assert (job.state, job.due_at, job.extras.scheduled_at) == (State.SCHEDULED, before, machine.now + 60 * SECOND)
    assert kinds_of(machine, job_id(2))[-1] is EventKind.RESCHEDULED


def test_a_request_names_a_moment_or_a_delay() -> None:
    context = an_asking()
    delayed = ENDPOINT.plan(context, RescheduleBody(delay="10m"), job_id(1, shard=2))
    moment = ENDPOINT.plan(context, RescheduleBody(scheduled_at="2030-01-31"), job_id(1, shard=2))

    assert [shard for shard, _ in delayed.calls] == [2]
    assert delayed.calls[0][1].due_at == context.clock_ns() + 600 * SECOND
    assert moment.calls[0][1].due_at == 1_896_048_000 * SECOND
    assert delayed.conclude([None]).body.status == "scheduled"


@pytest.mark.parametrize(
    "body", [RescheduleBody(), RescheduleBody(scheduled_at="soon"), RescheduleBody("2030-01-31", "1h")]
)
def test_a_request_with_neither_or_both_is_refused_by_the_field(body: RescheduleBody) -> None:
    with pytest.raises(Refusal) as refused:
        ENDPOINT.plan(an_asking(), body, job_id(1))

    assert (refused.value.code, refused.value.field) == ("VALIDATION_ERROR", "scheduled_at")
