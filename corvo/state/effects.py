"""The door: the only code that gives a job its state.

Filing, counting and waking hang on arrival in a state, not on the operation that caused it: several roads lead to
*dead*, and none can forget the count.
"""

from collections.abc import Callable

from corvo.job import Job
from corvo.lifecycle import BIRTH_STATES, State, Verb, destination
from corvo.state import keys
from corvo.state.tables import Tables


def bear(tables: Tables, job: Job) -> None:
    """A job comes into the world: filed, counted, announced."""
    assert job.state in BIRTH_STATES, job.state
    queue = tables.queue(job.queue)
    queue.counts[job.state] += 1
    queue.enqueued += 1
    tables.add_job(job)
    _FILE[job.state](tables, job)


def change(tables: Tables, job: Job, verb: Verb) -> None:
    """Move a job as the table says, or refuse and leave no trace. The caller has set the fields that filing reads."""
    goal = destination(job.state, verb)
    counts = tables.queue(job.queue).counts
    counts[job.state] -= 1
    counts[goal] += 1
    _UNFILE[job.state](tables, job)
    job.state = goal
    _FILE[goal](tables, job)
    tables.touch(job)


def _file_pending(tables: Tables, job: Job) -> None:
    job.position = tables.next_position()
    tables.put(keys.pending(job.queue, job.priority, job.position, job.id), b"")
    tables.pending.add(job)
    tables.wake(job.queue)


def _unfile_pending(tables: Tables, job: Job) -> None:
    tables.put(keys.pending(job.queue, job.priority, job.position, job.id), None)


def _file_active(tables: Tables, job: Job) -> None:
    tables.put(keys.active(job.queue, job.id), keys.pack_lease(job.lease_expires_at, job.claim_id))
    tables.leases.add(job.id, job.lease_expires_at, job.claim_id)


def _unfile_active(tables: Tables, job: Job) -> None:
    tables.put(keys.active(job.queue, job.id), None)
    tables.leases.remove(job.id)


def renew(tables: Tables, job: Job, lease_expires_at: int) -> None:
    """A heartbeat: the same claim, a later end."""
    job.lease_expires_at = lease_expires_at
    _file_active(tables, job)
    tables.touch(job)


_DUE_INDEX = {State.SCHEDULED: keys.scheduled, State.RETRYING: keys.retrying}


def _file_due(tables: Tables, job: Job) -> None:
    tables.put(_DUE_INDEX[job.state](job.queue, job.due_at, job.id), b"")
    tables.put(keys.due(job.due_at, job.id), b"")
    tables.due.add(job.due_at)


def _unfile_due(tables: Tables, job: Job) -> None:
    tables.put(_DUE_INDEX[job.state](job.queue, job.due_at, job.id), None)
    tables.put(keys.due(job.due_at, job.id), None)


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
