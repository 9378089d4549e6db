"""The door: for all 104 pairs of state and verb a job moves as the table says, or nothing at all happens."""

import pytest

from corvo.errors import Refusal
from corvo.job import Job, Priority
from corvo.lifecycle import BIRTH_STATES, RULES, STATE_NAMES, State, Verb
from corvo.state.effects import bear, change, renew
from tests.support.builders import NOW, SECOND, a_job
from tests.support.machine import Machine, index_keys_of, nothing_changes

# How a job comes into each state by the table alone.
ROADS: dict[State, tuple[State, list[Verb]]] = {
    State.PENDING: (State.PENDING, []),
    State.SCHEDULED: (State.SCHEDULED, []),
    State.HELD: (State.HELD, []),
    State.ACTIVE: (State.PENDING, [Verb.CLAIM]),
    State.COMPLETED: (State.PENDING, [Verb.CLAIM, Verb.COMPLETE]),
    State.RETRYING: (State.PENDING, [Verb.CLAIM, Verb.RETRY_LATER]),
    State.DEAD: (State.PENDING, [Verb.CLAIM, Verb.GIVE_UP]),
    State.CANCELLED: (State.PENDING, [Verb.CANCEL]),
}
PAIRS = [(state, verb) for state in State for verb in Verb]


def a_machine_with(state: State, priority: Priority = Priority.NORMAL) -> tuple[Machine, Job]:
    machine = Machine()
    birth, verbs = ROADS[state]
    job = a_job(
        state=birth,
        priority=priority,
        due_at=NOW + SECOND,
        lease_expires_at=NOW + 5 * SECOND,
        claim_id=3,
        lease_token=1,
    )
    machine.tables.begin(1, 1, NOW)
    bear(machine.tables, job)
    for verb in verbs:
        if verb == Verb.CLAIM:
            _move_past(machine, job)
        change(machine.tables, job, verb)
    machine.tables.seal()
    machine.check()
    return machine, job


def _move_past(machine: Machine, job: Job) -> None:
    machine.tables.queue(job.queue).cursors[job.priority] = job.position


@pytest.mark.parametrize(("state", "verb"), PAIRS, ids=[f"{state.name}-{verb.name}" for state, verb in PAIRS])
def test_every_pair_moves_the_job_or_leaves_no_trace(state: State, verb: Verb) -> None:
    machine, job = a_machine_with(state)
    machine.tables.begin(2, 1, NOW)
    rule = RULES[verb]

    if state not in rule.sources:
        with nothing_changes(machine):
            with pytest.raises(Refusal, match=f"a job that is {STATE_NAMES[state]}"):
                change(machine.tables, job, verb)
            assert machine.tables.seal().writes == {}
        return

    if verb == Verb.CLAIM:
        _move_past(machine, job)
    change(machine.tables, job, verb)
    machine.tables.seal()

    assert machine.job(1).state == rule.destination
    assert machine.queue().counts == [int(each == rule.destination) for each in State]
    assert set(index_keys_of(job)) <= set(machine.records())
    machine.check()


def test_twenty_seven_pairs_are_permitted() -> None:
    """The 26 of the first table, and cancelling a held job, which was decided later."""
    assert sum(state in RULES[verb].sources for state, verb in PAIRS) == 27


@pytest.mark.parametrize("priority", Priority)
@pytest.mark.parametrize("state", State)
def test_a_job_is_filed_where_its_state_demands_and_nowhere_else(state: State, priority: Priority) -> None:
    machine, job = a_machine_with(state, priority)

    assert machine._index_keys() == index_keys_of(job)


@pytest.mark.parametrize("state", sorted(set(State) - BIRTH_STATES))
def test_nobody_is_born_into_the_middle_of_life(state: State) -> None:
    machine = Machine()
    machine.tables.begin(1, 1, NOW)

    with nothing_changes(machine), pytest.raises(AssertionError):
        bear(machine.tables, a_job(state=state))


def test_a_birth_is_counted_for_ever_and_in_its_state() -> None:
    machine, _ = a_machine_with(State.SCHEDULED)

    assert machine.queue().enqueued == 1
    assert machine.queue().counts[State.SCHEDULED] == 1


def test_a_job_that_is_filed_again_goes_to_the_back() -> None:
    machine, job = a_machine_with(State.ACTIVE)
    machine.tables.begin(2, 1, NOW)
    first_position = job.position

    change(machine.tables, job, Verb.RECLAIM)

    assert job.position > first_position


@pytest.mark.parametrize("verb", [verb for verb, rule in RULES.items() if rule.destination == State.PENDING])
def test_every_arrival_in_pending_wakes_the_queue(verb: Verb) -> None:
    machine, job = a_machine_with(min(RULES[verb].sources))
    machine.tables.begin(2, 1, NOW)

    change(machine.tables, job, verb)

    assert machine.tables.seal().woken == {"mail"}


@pytest.mark.parametrize("verb", [verb for verb, rule in RULES.items() if State.ACTIVE in rule.sources])
def test_every_departure_from_active_ends_the_lease(verb: Verb) -> None:
    machine, job = a_machine_with(State.ACTIVE)
    assert len(machine.tables.leases) == 1
    machine.tables.begin(2, 1, NOW)

    change(machine.tables, job, verb)

    assert len(machine.tables.leases) == 0


def test_renewing_moves_the_end_of_the_lease_in_memory_and_on_disk() -> None:
    machine, job = a_machine_with(State.ACTIVE)
    machine.tables.begin(2, 1, NOW)

    renew(machine.tables, job, NOW + 60 * SECOND)
    machine.tables.seal()
    machine.flush()

    assert machine.tables.leases.over(NOW + 59 * SECOND, 5) == []
    machine.restart()
    assert machine.tables.leases.over(NOW + 59 * SECOND, 5) == []
    assert machine.tables.leases.over(NOW + 60 * SECOND, 5) == [job.id]
