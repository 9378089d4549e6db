"""Counts of a queue by the minute, kept for a day.

The queue's record holds the minute of its newest change and the totals at the start of that minute. A minute with
changes is written once: at the first change in a later minute, in an entry that stores the queue anyway. Until then its
counts are the totals minus those at its start. An idle queue writes nothing; a minute without a record had no changes.

The minutes of an hour are removed together, at the end of the hour in which they are a day old.
"""

from corvo.model.job import Minute, Queue

MINUTE_NS = 60 * 10**9
MINUTES_KEPT = 24 * 60
MINUTES_ALARM = "m"  # followed by a queue: an hour of its minutes is old enough to be removed


def turn(queue: Queue, minute: int) -> Minute | None:
    """A later minute has begun: the counts of the one before, if it had changes."""
    began = queue.began
    queue.began = (minute, queue.enqueued, queue.completed, queue.failed, queue.died)
    before, *then = began
    if not before or began[1:] == queue.began[1:]:  # first minute, record of an older version, or no changes
        return None
    enqueued, completed, failed, died = (now - past for now, past in zip(queue.began[1:], then, strict=True))
    return Minute(queue.name, before, enqueued, completed, failed, died)


def forget_at(minute: int) -> int:
    """When a minute is removed: the full hour after it is a day old."""
    hours = -(-(minute + 1 + MINUTES_KEPT) // 60)
    return hours * 60 * MINUTE_NS


def oldest_kept(now: int) -> int:
    return now // MINUTE_NS - MINUTES_KEPT
