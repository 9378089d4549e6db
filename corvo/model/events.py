"""What is told of a job's life to whoever listens: one event for each change of state, under a stable name.

The names that the original's clients know stay as they were (`failed` is told of every failed attempt, also of the
last); the others are additions. Stored by number: never renumber.
"""

from enum import IntEnum

import msgspec

from corvo.model.lifecycle import Verb


class Happening(IntEnum):
    ENQUEUED = 0
    STARTED = 1
    COMPLETED = 2
    CONTINUED = 3
    HELD = 4
    FAILED = 5
    PROGRESS = 6
    APPROVED = 7
    REJECTED = 8
    CANCELLED = 9
    RETRIED = 10
    DEAD = 11
    PROMOTED = 12
    RECLAIMED = 13
    EXPIRED = 14
    MOVED = 15
    DELETED = 16
    PRIORITY_CHANGED = 17
    SNOOZED = 18
    CANCELLING = 19
    QUEUE_PAUSED = 20
    QUEUE_RESUMED = 21
    QUEUE_DRAINING = 22
    QUEUE_CLEARED = 23
    QUEUE_DELETED = 24
    QUEUE_CHANGED = 25
    BATCH_COMPLETED = 26
    SCHEDULE_FIRED = 27
    REQUEUED = 28
    RUNNING = 29


HAPPENING_NAMES: tuple[str, ...] = tuple(happening.name.lower() for happening in Happening)

# A change of state is told under the verb that caused it.
TOLD_OF: dict[Verb, tuple[Happening, ...]] = {
    Verb.PROMOTE: (Happening.PROMOTED,),
    Verb.CLAIM: (Happening.STARTED,),
    Verb.COMPLETE: (Happening.COMPLETED,),
    Verb.CONTINUE: (Happening.CONTINUED,),
    Verb.RETRY_LATER: (Happening.FAILED,),
    Verb.GIVE_UP: (Happening.FAILED, Happening.DEAD),
    Verb.RECLAIM: (Happening.RECLAIMED,),
    Verb.HOLD: (Happening.HELD,),
    Verb.APPROVE: (Happening.APPROVED,),
    Verb.REJECT: (Happening.REJECTED,),
    Verb.CANCEL: (Happening.CANCELLED,),
    Verb.EXPIRE: (Happening.EXPIRED,),
    Verb.RUN_AGAIN: (Happening.RETRIED,),
    Verb.REQUEUE: (Happening.REQUEUED,),
    Verb.SNOOZE: (Happening.SNOOZED,),
    Verb.FORSAKE: (Happening.DEAD,),
}


class Event(msgspec.Struct, array_like=True, frozen=True, gc=False):
    happening: Happening
    job_id: str  # empty: of a queue, a batch or a schedule
    queue: str
    data: bytes = b""  # JSON


class Page(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """All events of one entry of the log, as they are stored."""

    at: int
    events: list[Event]
