"""What binds a job to conditions and to other jobs. Most jobs have none of it, and then pay one byte for all of it.

Like everything stored, these are msgpack arrays: add a field last, with a default; never reorder.
"""

from enum import IntEnum

import msgspec


class UniqueUntil(IntEnum):
    """When a unique key is free again: with the job's end, only with its period, or when a worker takes the job."""

    DONE = 0
    PERIOD = 1
    START = 2


class IfLost(IntEnum):
    """What becomes of a job whose dependency died, was cancelled or was deleted."""

    FAIL = 0
    CANCEL = 1
    RUN = 2


class Outcome(IntEnum):
    """How a job ended, for those who wait for it."""

    COMPLETED = 0
    DEAD = 1
    CANCELLED = 2
    DELETED = 3


OUTCOME_NAMES: tuple[str, ...] = tuple(outcome.name.lower() for outcome in Outcome)
UNIQUE_UNTIL_NAMES: tuple[str, ...] = tuple(until.name.lower() for until in UniqueUntil)
IF_LOST_NAMES: tuple[str, ...] = tuple(policy.name.lower() for policy in IfLost)


class ChainStep(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A job to be made when its turn comes."""

    queue: str
    payload: bytes = b"{}"


EXIT_STEP = -1  # number of the job that `on_exit` names
FAILURE_STEP = -2  # and of the one that `on_failure` names


class Chain(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The whole of a chain travels with each of its jobs: the next one can be made wherever this one ends."""

    id: str
    step: int
    steps: tuple[ChainStep, ...]
    on_failure: ChainStep | None = None
    on_exit: ChainStep | None = None
    exits: bool = False  # the worker of this step said that it is the last


class JobExtras(msgspec.Struct, array_like=True, gc=False):
    unique_key: str = ""
    unique_period_ms: int = 0
    unique_until: UniqueUntil = UniqueUntil.DONE
    idempotency_key: str = ""
    expire_after_ms: int = 0
    expire_at: int = 0
    jitter_permille: int = 0  # of a retry's delay, by which it may be shortened
    batch_id: str = ""
    chain: Chain | None = None
    waits_for: tuple[str, ...] = ()  # jobs that must end before this one may run
    if_lost: IfLost = IfLost.FAIL
    scheduled_at: int = 0  # of a job that waits for others: not before this either
    is_watched: bool = False  # other jobs wait for this one
    hold_reason: str = ""
    cancel_at: int = 0  # its worker was asked to stop; without a word from it, the job is cancelled at this moment
    claimed_at: int = 0  # of a worker that claims first and says later that it has begun
    schedule_id: str = ""  # the cron schedule that made it
    is_told: bool = False  # its batch and its chain know of its end
    asked_id: int = 0  # the newest action on the job: its repetition changes nothing
    was_at: tuple[int, ...] = ()  # shards that it has moved away from: each keeps a note of where it went
    asked_before: tuple[int, ...] = ()  # the actions before the newest one, newest first


def bytes_of(extras: JobExtras | None) -> int:
    """What a job carries beside its payload, if it is much: the payloads of its chain."""
    if extras is None or extras.chain is None:
        return 0
    chain = extras.chain
    return sum(len(step.payload) for step in (*chain.steps, chain.on_failure, chain.on_exit) if step is not None)
