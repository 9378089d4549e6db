"""The only code that gives a job its state.

Index keys, counts, wake-ups and events follow from the new state, not from the operation that caused it: several
operations lead to *dead*, and none can forget the count. The end of a job may concern others (its batch, its chain, the
jobs that wait for it): it is noted here, and the engine runs the cascades (`corvo/rules/cascades.py`) afterwards.
"""

from collections.abc import Callable

from corvo.model.events import TOLD_OF, Event, EventKind
from corvo.model.job import Job
from corvo.model.job_extras import JobExtras, Outcome
from corvo.model.lifecycle import BIRTH_STATES, SETTLED, State, Verb, destination
from corvo.state import keys, locks
from corvo.state.tables import Tables

EXPIRE_ALARM = "e"  # followed by the job's id
_DEAD = State.DEAD  # a member lookup on an enum is a call, and this is a hot path
_ENQUEUED = EventKind.ENQUEUED
OUTCOME_OF = {State.COMPLETED: Outcome.COMPLETED, State.DEAD: Outcome.DEAD, State.CANCELLED: Outcome.CANCELLED}


def insert(tables: Tables, job: Job) -> None:
    """Add a new job: index it, count it, send its event."""
    assert job.state in BIRTH_STATES, job.state
    queue = tables.queue(job.queue)
    queue.enqueued += 1
    queue.counts[job.state] += 1
    queue.payload_bytes += len(job.payload)
    if job.id < queue.first_id:
        queue.first_id = job.id
    tables.add_job(job)
    _FILE[job.state](tables, job)
    if job.extras is not None:
        _set_alarm(tables, job, job.extras)
    tables.event_log.events.append(Event(_ENQUEUED, job.id, job.queue))


def reindex(tables: Tables, job: Job) -> None:
    """Count and index a job that came from another queue or shard, in any state."""
    queue = tables.queue(job.queue)
    queue.counts[job.state] += 1
    queue.payload_bytes += len(job.payload)
    if job.id < queue.first_id:
        queue.first_id = job.id
    tables.add_job(job)
    _FILE[job.state](tables, job)
    if job.extras is not None:
        _set_alarm(tables, job, job.extras)


def _set_alarm(tables: Tables, job: Job, extras: JobExtras) -> None:
    if extras.expire_at and job.state not in SETTLED:
        tables.alarms.add(extras.expire_at, EXPIRE_ALARM + job.id)


def change(tables: Tables, job: Job, verb: Verb) -> None:
    """Move a job as the table says, or refuse and change nothing. The caller has set the fields that the index
    needs."""
    before = job.state
    goal = destination(before, verb)
    queue = tables.queue(job.queue)
    queue.counts[before] -= 1
    queue.counts[goal] += 1
    _UNFILE[before](tables, job)
    if queue.controls is not None and before is State.ACTIVE:
        tables.wake(job.queue)  # a slot of its concurrency limit is free
    job.state = goal
    _FILE[goal](tables, job)
    tables.touch(job)
    if job.extras is not None and before is State.ACTIVE:
        _set_alarm(tables, job, job.extras)  # it may have gone off while a worker had the job
    for kind in TOLD_OF[verb]:
        tables.event_log.events.append(Event(kind, job.id, job.queue))
    if goal in SETTLED:
        if goal is _DEAD:
            queue.died += 1
        if queue.controls is None:
            tables.retired.append(job.id)
        else:
            tables.retire(job)
        if job.extras is not None:
            tables.ended.append((job, OUTCOME_OF[goal]))


def unindex(tables: Tables, job: Job) -> None:
    """Take a job out of counts and indexes: it moves to another queue or is removed."""
    queue = tables.queue(job.queue)
    queue.counts[job.state] -= 1
    queue.payload_bytes = max(queue.payload_bytes - len(job.payload), 0)  # those of a former version were not counted
    _UNFILE[job.state](tables, job)
    if job.state is State.ACTIVE and queue.controls is not None:
        tables.wake(job.queue)  # a slot of its concurrency limit is free
    if job.extras is not None and job.extras.expire_at:
        tables.alarms.remove(job.extras.expire_at, EXPIRE_ALARM + job.id)


def remove(tables: Tables, job: Job, data: bytes = b"") -> None:
    """Delete a job in any state. The cascades tell the jobs that wait for it, unless it had ended before."""
    unindex(tables, job)
    locks.forget(tables, job)
    tables.drop_job(job)
    tables.event_log.tell(EventKind.DELETED, job.id, job.queue, data)
    if job.extras is not None:
        tables.ended.append((job, Outcome.DELETED))


def _file_pending(tables: Tables, job: Job) -> None:
    job.position = tables.next_position()
    tables.overlay.put_new(keys.pending(job.queue, job.priority, job.position, job.id), b"")
    tables.pending.add(job)
    tables.wake(job.queue)


def _unfile_pending(tables: Tables, job: Job) -> None:
    tables.overlay.remove(keys.pending(job.queue, job.priority, job.position, job.id))


def _file_active(tables: Tables, job: Job) -> None:
    tables.overlay.put_new(keys.active(job.queue, job.id), keys.pack_lease(job.lease_expires_at, job.claim_id))
    tables.leases.add(job.id, job.lease_expires_at, job.claim_id)


def _unfile_active(tables: Tables, job: Job) -> None:
    tables.overlay.remove(keys.active(job.queue, job.id))
    tables.leases.remove(job.id)


def renew(tables: Tables, job: Job, lease_expires_at: int) -> None:
    """A heartbeat: the same claim with a later lease end."""
    job.lease_expires_at = lease_expires_at
    tables.put(keys.active(job.queue, job.id), keys.pack_lease(job.lease_expires_at, job.claim_id))
    tables.leases.add(job.id, job.lease_expires_at, job.claim_id)
    tables.touch(job)


def postpone(tables: Tables, job: Job, due_at: int) -> None:
    """A scheduled or retrying job stays in its state and falls due at another time."""
    assert job.state in _DUE_INDEX, job.state
    _unfile_due(tables, job)
    job.due_at = due_at
    _file_due(tables, job)
    tables.touch(job)


_DUE_INDEX = {State.SCHEDULED: keys.scheduled, State.RETRYING: keys.retrying}


def _file_due(tables: Tables, job: Job) -> None:
    tables.put(_DUE_INDEX[job.state](job.queue, job.due_at, job.id), b"")
    tables.due.add(job.due_at, job.id)


def _unfile_due(tables: Tables, job: Job) -> None:
    tables.put(_DUE_INDEX[job.state](job.queue, job.due_at, job.id), None)
    tables.due.remove(job.due_at, job.id)


def _file_nowhere(tables: Tables, job: Job) -> None:
    """Settled and held jobs are in no index: they are found by id or by search."""


_FILE: tuple[Callable[[Tables, Job], None], ...] = tuple(
    {
        State.PENDING: _file_pending,
        State.ACTIVE: _file_active,
        State.SCHEDULED: _file_due,
        State.RETRYING: _file_due,
    }.get(state, _file_nowhere)
    for state in State
)
_UNFILE: tuple[Callable[[Tables, Job], None], ...] = tuple(
    {
        State.PENDING: _unfile_pending,
        State.ACTIVE: _unfile_active,
        State.SCHEDULED: _unfile_due,
        State.RETRYING: _unfile_due,
    }.get(state, _file_nowhere)
    for state in State
)
