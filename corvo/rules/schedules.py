"""Cron schedules: which slots fire, and the job that a slot creates.

A schedule lives on the shard of its name. Replicas may have different time zone data during an upgrade, so no replica
computes a slot when it applies an entry. The leader computes slots before it proposes (`due`), and the log holds its
numbers (`FireSchedules`). Applying them (`fire`) checks only the schedule's version and its progress, so a slot fires
at most once, even if a leader proposes it twice or its clock goes back.

The job of a slot is created on the shard of its queue, by an errand. Its id follows from schedule and slot, so there is
only one.

After a change of a schedule, `next_at` is the time of the change: the leader then computes its next slot in an entry of
its own.
"""

import msgspec

from corvo.model.cron import next_slot, slots_between
from corvo.model.events import EventKind
from corvo.model.job import Count, Moment
from corvo.model.job_extras import JobExtras
from corvo.model.limits import SCHEDULE_AHEAD_NS_MAX, UPKEEP_JOBS_PER_ENTRY
from corvo.model.namespaces import shown_name
from corvo.model.sharding import shard_of_queue
from corvo.model.timestamps import LATEST_NS, to_rfc3339
from corvo.rules.errands.make_job import MakeJob
from corvo.rules.job_creation import NewJob, derived_id
from corvo.state import keys
from corvo.state.schedules import CatchUp, Schedule, encode
from corvo.state.tables import Tables

ON_TIME_NS = 60 * 10**9  # a slot that is at most this late was not missed: a restart or an election takes seconds
UNREADABLE_PAUSE_NS = 60 * 10**9
FIRED_BYTES_MAX = 4 * 1024 * 1024  # payloads of the jobs that one entry makes
OWN_TAGS = ("schedule", "slot")


class Firing(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What the leader computed for one schedule."""

    schedule_id: str
    version: Count  # of the schedule that it read
    slots: list[Moment]  # that fire now, oldest first
    settled_to: Moment  # all other slots up to here are skipped
    next_at: Moment


# On the leader, which may use time zones.


def due(tables: Tables, wall_ns: int) -> list[Firing]:
    """The firings to propose now. A long catch-up is proposed in slices, so that one entry stays short."""
    firings: list[Firing] = []
    jobs_left, bytes_left = UPKEEP_JOBS_PER_ENTRY, FIRED_BYTES_MAX
    for schedule in tables.schedules.due(wall_ns)[:UPKEEP_JOBS_PER_ENTRY]:
        size = len(schedule.terms.payload) + len(schedule.terms.tags)
        room = min(jobs_left, bytes_left // max(size, 1))
        if room < 1 and firings:
            break
        firing = _firing(schedule, wall_ns, max(room, 1))
        firings.append(firing)
        jobs_left -= len(firing.slots)
        bytes_left -= len(firing.slots) * size
    return firings


def _firing(schedule: Schedule, wall_ns: int, room: int) -> Firing:
    terms = schedule.terms
    try:
        slots = _slots(schedule, wall_ns)
        settled_to = max(wall_ns, schedule.settled_to)
        if len(slots) > room:
            slots = slots[:room]
            settled_to = slots[-1]
        next_at = next_slot(terms.cron, terms.timezone, settled_to)
    except ValueError:  # a newer gateway accepted it: a newer leader will understand it
        return Firing(schedule.id, schedule.version, [], schedule.settled_to, wall_ns + UNREADABLE_PAUSE_NS)
    if next_at is None:
        next_at = settled_to + SCHEDULE_AHEAD_NS_MAX  # and check again then
    return Firing(schedule.id, schedule.version, slots, settled_to, min(next_at, LATEST_NS))


def _slots(schedule: Schedule, wall_ns: int) -> list[int]:
    """The slots that fire, by the catch-up policy."""
    terms = schedule.terms
    at_most = terms.catch_up_max if terms.catch_up is CatchUp.ALL else 1
    slots = slots_between(terms.cron, terms.timezone, schedule.settled_to, wall_ns, at_most)
    if terms.catch_up is CatchUp.SKIP:
        return [slot for slot in slots if wall_ns - slot <= ON_TIME_NS]
    return slots


# On every replica: numbers only.


def fire(tables: Tables, firing: Firing) -> int:
    """Fire the slots. Returns how many; 0 when the schedule has changed since the leader read it."""
    schedule = tables.schedules.find(firing.schedule_id)
    if schedule is None or schedule.is_paused or schedule.version != firing.version:
        return 0
    slots = [slot for slot in firing.slots if slot > schedule.settled_to]
    for slot in slots:
        new = job_of(schedule, slot, tables.errands.shard_count)
        tables.errands.send(shard_of_queue(new.queue, tables.errands.shard_count), MakeJob(new))
        tables.event_log.tell(EventKind.SCHEDULE_FIRED, new.id, new.queue, _told(schedule, slot))
    if slots:
        schedule.last_slot = slots[-1]
        schedule.last_fired_at = tables.now
        schedule.fired += len(slots)
    schedule.settled_to = max(schedule.settled_to, firing.settled_to)
    schedule.next_at = firing.next_at
    put(tables, schedule)
    return len(slots)


def put(tables: Tables, schedule: Schedule) -> None:
    """Store a schedule that is new or changed."""
    schedule.version += 1
    tables.schedules.keep(schedule)
    tables.put_record(keys.schedule(schedule.id), encode(schedule))


def drop(tables: Tables, schedule: Schedule) -> None:
    tables.schedules.drop(schedule)
    tables.put_record(keys.schedule(schedule.id), None)


def start_from_now(tables: Tables, schedule: Schedule) -> None:
    """Only slots from now on count: the schedule is new, has another expression, or was paused."""
    schedule.settled_to = max(schedule.settled_to, tables.now)
    schedule.next_at = tables.now


def job_of(schedule: Schedule, slot: int, shard_count: int) -> NewJob:
    shard = shard_of_queue(schedule.terms.queue, shard_count)
    return new_job(schedule, derived_id(shard, schedule.id, slot, queue=schedule.terms.queue), slot)


def new_job(schedule: Schedule, job_id: str, slot: int = 0) -> NewJob:
    """The job of a slot; without a slot, of a manual run."""
    terms = schedule.terms
    extras = JobExtras(schedule_id=schedule.id, unique_key=terms.unique_key, unique_period_ms=terms.unique_period_ms)
    return NewJob(
        job_id,
        terms.queue,
        terms.payload,
        priority=terms.priority,
        max_retries=terms.max_retries,
        tags=_with_own_tags(schedule, slot),
        extras=extras,
    )


def _with_own_tags(schedule: Schedule, slot: int) -> bytes:
    """Concatenated as text, so that the user's tags keep their bytes."""
    own = {"schedule": shown_name(schedule.name)}
    if slot:
        own["slot"] = to_rfc3339(slot)
    theirs = schedule.terms.tags.strip()[1:-1].strip()
    separator = b"," if theirs else b""
    return msgspec.json.encode(own)[:-1] + separator + theirs + b"}"


def _told(schedule: Schedule, slot: int) -> bytes:
    return msgspec.json.encode(
        {"schedule_id": schedule.id, "name": shown_name(schedule.name), "slot": to_rfc3339(slot)}
    )
