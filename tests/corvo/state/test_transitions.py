"""The door: for all 128 pairs of state and verb a job moves as the table says, or nothing at all happens."""

import pytest

from corvo.model.errors import Refusal
from corvo.model.events import TOLD_OF, Event, EventKind
from corvo.model.job import Controls, Job, Priority
from corvo.model.job_extras import OUTCOME_NAMES, JobExtras, Outcome
from corvo.model.lifecycle import BIRTH_STATES, RULES, SETTLED, STATE_NAMES, State, Verb
from corvo.model.limits import RETENTION_MS_DEFAULT
from corvo.state import keys
from corvo.state.locks import lock
from corvo.state.transitions import EXPIRE_ALARM, change, insert, postpone, remove, renew, unindex
from tests.support.builders import MS, NOW, SECOND, a_job
from tests.support.machine import Machine, index_keys_of, nothing_changes, told

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
    insert(machine.tables, job)
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


def test_thirty_four_pairs_are_permitted() -> None:
    """Counted by hand, so that a line of the table cannot grow unnoticed."""
    assert len(PAIRS) == 136
    assert sum(state in RULES[verb].sources for state, verb in PAIRS) == 34


@pytest.mark.parametrize(("state", "verb"), PAIRS, ids=[f"{state.name}-{verb.name}" for state, verb in PAIRS])
def test_every_change_is_told_under_its_verb_and_a_refused_one_is_not(state: State, verb: Verb) -> None:
    machine, job = a_machine_with(state)
    machine.tables.begin(2, 1, NOW)
    before = machine.tables.event_log.last

    try:
        change(machine.tables, job, verb)
    except Refusal:
        expected: list[EventKind] = []
    else:
        expected = [*TOLD_OF[verb]]
    machine.tables.seal()

    told_of = list(machine.tables.event_log.after(before))
    assert [told.event for told in told_of] == [Event(happening, job.id, "mail") for happening in expected]


@pytest.mark.parametrize("verb", [verb for verb, rule in RULES.items() if rule.destination in SETTLED])
def test_every_end_is_kept_for_a_while_and_noted_where_others_may_care(verb: Verb) -> None:
    for extras in (None, JobExtras()):
        machine, job = a_machine_with(min(RULES[verb].sources))
        job.extras = extras
        machine.tables.begin(2, 1, NOW)

        change(machine.tables, job, verb)
        noted = [(ended.id, OUTCOME_NAMES[outcome]) for ended, outcome in machine.tables.ended]
        machine.tables.ended.clear()
        machine.tables.seal()

        assert noted == ([] if extras is None else [(job.id, STATE_NAMES[job.state])])
        assert told(machine.records()).purges == [(NOW + RETENTION_MS_DEFAULT * MS, job.id)]


@pytest.mark.parametrize("verb", [verb for verb, rule in RULES.items() if State.ACTIVE in rule.sources])
def test_a_place_that_becomes_free_wakes_a_queue_with_controls(verb: Verb) -> None:
    machine, job = a_machine_with(State.ACTIVE)
    machine.queue().controls = Controls(max_concurrency=1)
    machine.tables.begin(2, 1, NOW)

    change(machine.tables, job, verb)

    assert machine.tables.seal().woken == {"mail"}


@pytest.mark.parametrize("state", State)
def test_a_job_that_leaves_is_neither_counted_nor_filed(state: State) -> None:
    machine, job = a_machine_with(state)
    machine.tables.begin(2, 1, NOW)

    unindex(machine.tables, job)
    machine.tables.seal()

    assert machine.queue().counts == [0] * len(State)
    assert machine._index_keys() == set()


@pytest.mark.parametrize("state", State)
def test_a_job_that_is_removed_leaves_nothing_but_its_event(state: State) -> None:
    machine, job = a_machine_with(state)
    job.extras = JobExtras(unique_key="k", idempotency_key="i", expire_at=NOW + SECOND)
    machine.tables.begin(2, 1, NOW)
    lock(machine.tables, job)
    before = machine.tables.event_log.last

    remove(machine.tables, job, b"{}")
    assert machine.tables.ended.pop() == (job, Outcome.DELETED)
    machine.tables.seal()

    assert machine.tables.find_job(job.id) is None
    families = (keys.JOBS, keys.JOB_ERRORS, keys.UNIQUE, keys.IDEMPOTENT)
    left = [key for key in machine.records() if key.startswith(families)]
    assert left == []
    assert machine.tables.alarms.over(NOW + SECOND, 100) == []
    assert [told.event for told in machine.tables.event_log.after(before)] == [
        Event(EventKind.DELETED, job.id, "mail", b"{}")
    ]
    machine.check()


def test_a_job_that_may_expire_has_an_alarm_as_long_as_it_lives_here() -> None:
    machine = Machine()
    machine.tables.begin(1, 1, NOW)
    job = a_job(extras=JobExtras(expire_at=NOW + SECOND))
    insert(machine.tables, job)
    machine.tables.seal()
    alarm = keys.due(keys.ALARMS, NOW + SECOND, EXPIRE_ALARM + job.id)
    assert alarm in machine.records()

    unindex(machine.tables, job)
    machine.tables.seal()

    assert alarm not in machine.records()


@pytest.mark.parametrize("state", [State.SCHEDULED, State.RETRYING])
def test_a_postponed_job_is_filed_under_its_new_time_only(state: State) -> None:
    machine, job = a_machine_with(state)
    machine.tables.begin(2, 1, NOW)

    postpone(machine.tables, job, NOW + 9 * SECOND)
    machine.tables.seal()
    machine.flush()

    assert (machine.job(1).state, machine.job(1).due_at) == (state, NOW + 9 * SECOND)
    assert machine.tables.due.over(NOW + 9 * SECOND - 1, 10) == []
    machine.check()


@pytest.mark.parametrize("state", sorted(set(State) - {State.SCHEDULED, State.RETRYING}))
def test_only_a_job_with_a_due_time_is_postponed(state: State) -> None:
    machine, job = a_machine_with(state)

    with pytest.raises(AssertionError):
        postpone(machine.tables, job, NOW + SECOND)


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
        insert(machine.tables, a_job(state=state))


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
