"""What happens in a queue, minute by minute, for a day.

The queue's record knows the minute of its newest change and the totals with which that minute began. So a minute in
which something happened is written once: at the first change of a later minute, with an entry that stores the queue
anyway. Until then its amounts are the difference between the totals and those it began with. A quiet queue writes
nothing, and a minute that was never written had none of it.

A minute is forgotten at the end of the hour in which it is a day old, all of that hour together.
"""

from corvo.model.job import Minute, Queue

MINUTE_NS = 60 * 10**9
MINUTES_KEPT = 24 * 60
MINUTES_ALARM = "m"  # followed by a queue: an hour of its minutes is old enough to be forgotten


def turn(queue: Queue, minute: int) -> Minute | None:
    """A later minute has begun. What happened in the one before, if anything did."""
    began = queue.began
    queue.began = (minute, queue.enqueued, queue.completed, queue.failed, queue.died)
    before, *then = began
    if not before or began[1:] == queue.began[1:]:  # its first minute, or that of an older version; or nothing happened
        return None
    enqueued, completed, failed, died = (now - past for now, past in zip(queue.began[1:], then, strict=True))
    return Minute(queue.name, before, enqueued, completed, failed, died)


def forget_at(minute: int) -> int:
    """When a minute is forgotten: the full hour after its day is over."""
    hours = -(-(minute + 1 + MINUTES_KEPT) // 60)
    return hours * 60 * MINUTE_NS


def oldest_kept(now: int) -> int:
    return now // MINUTE_NS - MINUTES_KEPT
