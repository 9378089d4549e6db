"""Rare fields of a job: conditions, and links to other jobs. A job without any of them stores one byte for them all.

Like everything stored, these are msgpack arrays: add a field last, with a default; never reorder.
"""

from enum import IntEnum

import msgspec


class UniqueUntil(IntEnum):
    """When a unique key is free again: when the job ends, only after its period, or when a worker claims the job."""

    DONE = 0
    PERIOD = 1
    START = 2


class IfLost(IntEnum):
    """What happens to a job whose dependency died, was cancelled or was deleted."""

    FAIL = 0
    CANCEL = 1
    RUN = 2


class Outcome(IntEnum):
    """How a job ended, as the jobs that wait for it are told."""

    COMPLETED = 0
    DEAD = 1
    CANCELLED = 2
    DELETED = 3


OUTCOME_NAMES: tuple[str, ...] = tuple(outcome.name.lower() for outcome in Outcome)
UNIQUE_UNTIL_NAMES: tuple[str, ...] = tuple(until.name.lower() for until in UniqueUntil)
IF_LOST_NAMES: tuple[str, ...] = tuple(policy.name.lower() for policy in IfLost)


class ChainStep(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A job that is created when the chain reaches it."""

    queue: str
    payload: bytes = b"{}"


EXIT_STEP = -1  # number of the job that `on_exit` names
FAILURE_STEP = -2  # and of the one that `on_failure` names


class Chain(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Each job of a chain carries the whole chain, so any shard can create the next job."""

    id: str
    step: int
    steps: tuple[ChainStep, ...]
    on_failure: ChainStep | None = None
    on_exit: ChainStep | None = None
    exits: bool = False  # the worker of this step ended the chain early


class JobExtras(msgspec.Struct, array_like=True, gc=False):
    unique_key: str = ""
    unique_period_ms: int = 0
    unique_until: UniqueUntil = UniqueUntil.DONE
    idempotency_key: str = ""
    expire_after_ms: int = 0
    expire_at: int = 0
    jitter_permille: int = 0  # by which a retry's delay may be shortened
    batch_id: str = ""
    chain: Chain | None = None
    waits_for: tuple[str, ...] = ()  # jobs that must end before this one may run
    if_lost: IfLost = IfLost.FAIL
    scheduled_at: int = 0  # of a job that waits for others: its earliest start
    is_watched: bool = False  # other jobs wait for this one
    hold_reason: str = ""
    cancel_at: int = 0  # its worker was asked to stop; if it does not answer, the job is cancelled at this time
    claimed_at: int = 0  # set when the worker claims jobs ahead and reports later that it has begun
    schedule_id: str = ""  # the cron schedule that made it
    is_told: bool = False  # its batch and its chain have been told that it ended
    asked_id: int = 0  # the newest action on the job: its repetition changes nothing
    was_at: tuple[int, ...] = ()  # shards that it moved away from: each stores where it went
    asked_before: tuple[int, ...] = ()  # the actions before the newest one, newest first


def bytes_of(extras: JobExtras | None) -> int:
    """Size of the large part of the extras: the payloads of a chain."""
    if extras is None or extras.chain is None:
        return 0
    chain = extras.chain
    return sum(len(step.payload) for step in (*chain.steps, chain.on_failure, chain.on_exit) if step is not None)
