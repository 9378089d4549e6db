"""The table of a job's life, and the sentences that are drawn from it."""

import pytest

from corvo.model.errors import Refusal
from corvo.model.lifecycle import BIRTH_STATES, RULES, SETTLED, STATE_NAMES, State, Verb, destination

# verb: sources → destination, as the design says it: a second hand, so that a slip in the table is noticed.
DESIGN = """
promote      scheduled retrying                          → pending
claim        pending                                     → active
complete     active                                      → completed
continue     active                                      → pending
retry_later  active                                      → retrying
give_up      active                                      → dead
reclaim      active                                      → pending
hold         pending active scheduled retrying           → held
approve      held                                        → pending
reject       held                                        → dead
cancel       pending active scheduled retrying held      → cancelled
expire       pending active scheduled retrying held      → dead
run_again    dead cancelled completed scheduled          → pending
requeue      dead                                        → pending
snooze       active                                      → scheduled
forsake      scheduled                                   → dead
reschedule   pending retrying scheduled                  → scheduled
"""
PAIRS = [(state, verb) for state in State for verb in Verb]


def test_the_table_is_the_one_of_the_design() -> None:
    lines = [line.split("→") for line in DESIGN.strip().splitlines()]
    expected = {left.split()[0]: (set(left.split()[1:]), right.strip()) for left, right in lines}

    actual = {
        verb.value: ({STATE_NAMES[source] for source in rule.sources}, STATE_NAMES[rule.destination])
        for verb, rule in RULES.items()
    }

    assert actual == expected


def test_states_keep_their_stored_numbers() -> None:
    assert {state.name.lower(): state.value for state in State} == {
        "pending": 0,
        "active": 1,
        "completed": 2,
        "retrying": 3,
        "dead": 4,
        "cancelled": 5,
        "scheduled": 6,
        "held": 7,
    }


def test_every_verb_has_a_line_and_says_who_says_it() -> None:
    assert set(RULES) == set(Verb)
    assert all(rule.said_by for rule in RULES.values())


def test_every_state_is_reached_from_birth() -> None:
    reached = set(BIRTH_STATES)

    for _ in State:
        reached |= {rule.destination for rule in RULES.values() if rule.sources & reached}

    assert reached == set(State)


def test_every_state_can_be_left() -> None:
    assert set().union(*(rule.sources for rule in RULES.values())) == set(State)


def test_only_a_claim_makes_a_job_active() -> None:
    assert [verb for verb, rule in RULES.items() if rule.destination == State.ACTIVE] == [Verb.CLAIM]


def test_settled_jobs_leave_only_by_being_run_again() -> None:
    assert {verb for verb, rule in RULES.items() if rule.sources & SETTLED} == {Verb.RUN_AGAIN, Verb.REQUEUE}


@pytest.mark.parametrize(("state", "verb"), PAIRS)
def test_destination_follows_the_table_or_refuses_with_both_names(state: State, verb: Verb) -> None:
    rule = RULES[verb]
    if state in rule.sources:
        assert destination(state, verb) == rule.destination
        return

    with pytest.raises(Refusal) as refused:
        destination(state, verb)

    assert (refused.value.code, refused.value.status) == ("WRONG_STATE", 409)
    assert f"a job that is {STATE_NAMES[state]}" in refused.value.message
    assert all(STATE_NAMES[source] in refused.value.message for source in rule.sources)


def test_a_refusal_reads_as_a_sentence() -> None:
    with pytest.raises(Refusal) as refused:
        destination(State.COMPLETED, Verb.RETRY_LATER)

    assert refused.value.message == "cannot retry later a job that is completed; this is for active jobs"
