"""The door: the only code that gives a job its state.

Filing, counting, waking and telling hang on arrival in a state, not on the operation that caused it: several roads lead
to *dead*, and none can forget the count. What a job's end means for others (its batch, its chain, those that wait for
it) is noted here and drawn by the engine (`corvo/rules/cascades.py`) when the operation is over.
"""

from collections.abc import Callable

from corvo.model.events import TOLD_OF, Event, EventKind
from corvo.model.job import Job
from corvo.model.job_extras import JobExtras, Outcome
from corvo.model.lifecycle import BIRTH_STATES, SETTLED, State, Verb, destination
from corvo.state import keys, locks
from corvo.state.tables import Tables

EXPIRE_ALARM = "e"  # followed by the job's id
_DEAD = State.DEAD  # to look up an enum's member is a call, and every job comes this way
_ENQUEUED = EventKind.ENQUEUED
OUTCOME_OF = {State.COMPLETED: Outcome.COMPLETED, State.DEAD: Outcome.DEAD, State.CANCELLED: Outcome.CANCELLED}


def insert(tables: Tables, job: Job) -> None:
    """A job comes into the world: filed, counted, announced."""
    assert job.state in BIRTH_STATES, job.state
    queue = tables.queue(job.queue)
    queue.enqueued += 1
    queue.counts[job.state] += 1
    if job.id < queue.first_id:
        queue.first_id = job.id
    tables.add_job(job)
    _FILE[job.state](tables, job)
    if job.extras is not None:
        _set_alarm(tables, job, job.extras)
    tables.event_log.events.append(Event(_ENQUEUED, job.id, job.queue))


def reindex(tables: Tables, job: Job) -> None:
    """Count and file a job that is new here, in whatever state it comes."""
    queue = tables.queue(job.queue)
    queue.counts[job.state] += 1
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
    """Move a job as the table says, or refuse and leave no trace. The caller has set the fields that filing reads."""
    before = job.state
    goal = destination(before, verb)
    queue = tables.queue(job.queue)
    queue.counts[before] -= 1
    queue.counts[goal] += 1
    _UNFILE[before](tables, job)
    if queue.controls is not None and before is State.ACTIVE:
        tables.wake(job.queue)  # a place has become free
    job.state = goal
    _FILE[goal](tables, job)
    tables.touch(job)
    if job.extras is not None and before is State.ACTIVE:
        _set_alarm(tables, job, job.extras)  # it may have rung while a worker had the job
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
    """Take a job out of counts and files: it goes to another queue, or away."""
    queue = tables.queue(job.queue)
    queue.counts[job.state] -= 1
    _UNFILE[job.state](tables, job)
    if job.state is State.ACTIVE and queue.controls is not None:
        tables.wake(job.queue)  # a place has become free
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
    """A heartbeat: the same claim, a later end."""
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
    """Settled and held jobs are found by their id, or by search."""


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
