"""The life of a job, as data: eight states, seventeen verbs, one table.

Every verb has exactly one destination, and the table holds no condition: `fail` looks at the attempts left and then
uses `RETRY_LATER` or `GIVE_UP`. `corvo/state/transitions.py` is the only code that moves a job, and it asks
`destination` first. The documents and the tests read the same table.
"""

from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import NamedTuple

from corvo.model.errors import Refusal


class State(IntEnum):
    """Stored as its number: never renumber."""

    PENDING = 0
    ACTIVE = 1
    COMPLETED = 2
    RETRYING = 3
    DEAD = 4
    CANCELLED = 5
    SCHEDULED = 6
    HELD = 7


STATE_NAMES: tuple[str, ...] = tuple(state.name.lower() for state in State)
SETTLED = frozenset({State.COMPLETED, State.DEAD, State.CANCELLED})
WAITING_FOR_A_MOMENT = frozenset({State.SCHEDULED, State.RETRYING})
BIRTH_STATES = frozenset({State.PENDING, State.SCHEDULED, State.HELD})


class Verb(StrEnum):
    PROMOTE = "promote"
    CLAIM = "claim"
    COMPLETE = "complete"
    CONTINUE = "continue"
    RETRY_LATER = "retry_later"
    GIVE_UP = "give_up"
    RECLAIM = "reclaim"
    HOLD = "hold"
    APPROVE = "approve"
    REJECT = "reject"
    CANCEL = "cancel"
    EXPIRE = "expire"
    RUN_AGAIN = "run_again"
    REQUEUE = "requeue"
    SNOOZE = "snooze"
    FORSAKE = "forsake"
    RESCHEDULE = "reschedule"


class Rule(NamedTuple):
    sources: frozenset[State]
    destination: State
    said_by: str


def _rule(destination: State, said_by: str, *sources: State) -> Rule:
    return Rule(frozenset(sources), destination, said_by)


RULES: MappingProxyType[Verb, Rule] = MappingProxyType(
    {
        Verb.PROMOTE: _rule(State.PENDING, "upkeep, when due", State.SCHEDULED, State.RETRYING),
        Verb.CLAIM: _rule(State.ACTIVE, "fetch", State.PENDING),
        Verb.COMPLETE: _rule(State.COMPLETED, "ack", State.ACTIVE),
        Verb.CONTINUE: _rule(State.PENDING, "ack of an iteration", State.ACTIVE),
        Verb.RETRY_LATER: _rule(State.RETRYING, "fail, attempts left", State.ACTIVE),
        Verb.GIVE_UP: _rule(State.DEAD, "fail or lease over, none left", State.ACTIVE),
        Verb.RECLAIM: _rule(State.PENDING, "upkeep, lease over", State.ACTIVE),
        Verb.HOLD: _rule(State.HELD, "hold, budget, ack", State.PENDING, State.ACTIVE, State.SCHEDULED, State.RETRYING),
        Verb.APPROVE: _rule(State.PENDING, "approve", State.HELD),
        Verb.REJECT: _rule(State.DEAD, "reject", State.HELD),
        Verb.CANCEL: _rule(
            State.CANCELLED,
            "cancel",
            State.PENDING,
            State.ACTIVE,
            State.SCHEDULED,
            State.RETRYING,
            State.HELD,
        ),
        Verb.EXPIRE: _rule(
            State.DEAD,
            "upkeep or heartbeat, time to live over",
            State.PENDING,
            State.ACTIVE,
            State.SCHEDULED,
            State.RETRYING,
            State.HELD,
        ),
        Verb.RUN_AGAIN: _rule(State.PENDING, "retry", State.DEAD, State.CANCELLED, State.COMPLETED, State.SCHEDULED),
        Verb.REQUEUE: _rule(State.PENDING, "requeue", State.DEAD),
        Verb.SNOOZE: _rule(State.SCHEDULED, "fail with snooze", State.ACTIVE),
        Verb.RESCHEDULE: _rule(State.SCHEDULED, "reschedule", State.PENDING, State.SCHEDULED, State.RETRYING),
        Verb.FORSAKE: _rule(State.DEAD, "a job it waited for was lost", State.SCHEDULED),
    }
)


# The same table by (state, verb): one lookup for each change of state.
_DESTINATIONS = {(state, verb): rule.destination for verb, rule in RULES.items() for state in rule.sources}


def destination(state: State, verb: Verb) -> State:
    """The state that the verb leads to; refused when the table does not allow it."""
    goal = _DESTINATIONS.get((state, verb))
    if goal is not None:
        return goal
    rule = RULES[verb]
    sources = " or ".join(sorted(STATE_NAMES[source] for source in rule.sources))
    raise Refusal(
        "WRONG_STATE",
        f"cannot {verb.replace('_', ' ')} a job that is {STATE_NAMES[state]}; this is for {sources} jobs",
    )
