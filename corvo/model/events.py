"""Events that clients can follow: one for each change of a job's state, under a stable name.

The names that the original's clients know are unchanged (`failed` is sent for every failed attempt, the last included);
the others are additions. Stored by number: never renumber.
"""

from enum import IntEnum

import msgspec

from corvo.model.lifecycle import Verb


class EventKind(IntEnum):
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
    RESCHEDULED = 30


EVENT_NAMES: tuple[str, ...] = tuple(kind.name.lower() for kind in EventKind)

# Verb that changes a state → events that are sent.
TOLD_OF: dict[Verb, tuple[EventKind, ...]] = {
    Verb.PROMOTE: (EventKind.PROMOTED,),
    Verb.CLAIM: (EventKind.STARTED,),
    Verb.COMPLETE: (EventKind.COMPLETED,),
    Verb.CONTINUE: (EventKind.CONTINUED,),
    Verb.RETRY_LATER: (EventKind.FAILED,),
    Verb.GIVE_UP: (EventKind.FAILED, EventKind.DEAD),
    Verb.RECLAIM: (EventKind.RECLAIMED,),
    Verb.HOLD: (EventKind.HELD,),
    Verb.APPROVE: (EventKind.APPROVED,),
    Verb.REJECT: (EventKind.REJECTED,),
    Verb.CANCEL: (EventKind.CANCELLED,),
    Verb.EXPIRE: (EventKind.EXPIRED,),
    Verb.RUN_AGAIN: (EventKind.RETRIED,),
    Verb.REQUEUE: (EventKind.REQUEUED,),
    Verb.SNOOZE: (EventKind.SNOOZED,),
    Verb.FORSAKE: (EventKind.DEAD,),
    Verb.RESCHEDULE: (EventKind.RESCHEDULED,),
}


class Event(msgspec.Struct, array_like=True, frozen=True, gc=False):
    kind: EventKind
    job_id: str  # empty for an event of a queue, a batch or a schedule
    queue: str
    data: bytes = b""  # JSON


class EventPage(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """All events of one log entry, as they are stored."""

    at: int
    events: list[Event]
