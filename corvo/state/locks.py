"""Keys that at most one job of a queue may hold: unique keys for a while, idempotency keys as long as the job is kept.

An expired lock does not count, even if its alarm has not removed it yet. A job that releases a lock first checks that
it still holds it: when the period ends before the job, another job may hold the key.
"""

import msgspec

from corvo.model.errors import Refusal
from corvo.model.job import Job
from corvo.model.job_extras import JobExtras, UniqueUntil
from corvo.model.lifecycle import SETTLED
from corvo.model.limits import UNIQUE_PERIOD_MS_DEFAULT
from corvo.state import keys
from corvo.state.tables import Tables

UNLOCK_ALARM = "u"  # followed by queue, NUL and key


class Lock(msgspec.Struct, array_like=True, frozen=True, gc=False):
    job_id: str
    until: int


encode = msgspec.msgpack.Encoder().encode
decode_lock = msgspec.msgpack.Decoder(Lock).decode


def holder(tables: Tables, queue: str, extras: JobExtras) -> str | None:
    """The job that holds a key of these extras, if any."""
    if extras.idempotency_key:
        raw = tables.overlay.get(keys.idempotent(queue, extras.idempotency_key))
        if raw is not None:
            return raw.decode()
    if extras.unique_key:
        lock = _find(tables, queue, extras.unique_key)
        if lock is not None:
            return lock.job_id
    return None


def lock(tables: Tables, job: Job) -> None:
    """Take the keys of a new job. The caller has checked that they are free."""
    extras = job.extras
    assert extras is not None
    if extras.idempotency_key:
        tables.put(keys.idempotent(job.queue, extras.idempotency_key), job.id.encode())
    if extras.unique_key:
        _lock_unique(tables, job, extras)


def lock_if_free(tables: Tables, job: Job) -> None:
    """Take the keys of a job that came from another queue, if no job here holds them."""
    extras = job.extras
    if extras is None:
        return
    if extras.idempotency_key and tables.overlay.get(keys.idempotent(job.queue, extras.idempotency_key)) is None:
        tables.put(keys.idempotent(job.queue, extras.idempotency_key), job.id.encode())
    is_over = job.state in SETTLED or (extras.unique_until is UniqueUntil.START and job.attempt > 0)
    if extras.unique_key and not is_over and _find(tables, job.queue, extras.unique_key) is None:
        _lock_unique(tables, job, extras)


def lock_again(tables: Tables, job: Job) -> None:
    """Take the key of a job that ended and runs again; refused while another job holds it."""
    extras = job.extras
    if extras is None or not extras.unique_key:
        return
    found = _find(tables, job.queue, extras.unique_key)
    if found is not None and found.job_id != job.id:
        raise Refusal("UNIQUE_CONFLICT", f"job {found.job_id} now holds the unique key {extras.unique_key!r}")
    if found is None:
        _lock_unique(tables, job, extras)


def unlock(tables: Tables, job: Job, is_start: bool = False) -> None:
    """Release the unique key of a job that ended or was claimed, if it was kept until then."""
    extras = job.extras
    if extras is None or not extras.unique_key or extras.unique_until is UniqueUntil.PERIOD:
        return
    if is_start and extras.unique_until is not UniqueUntil.START:
        return
    found = _find(tables, job.queue, extras.unique_key)
    if found is not None and found.job_id == job.id:
        tables.put_record(keys.unique(job.queue, extras.unique_key), None)
        tables.alarms.remove(found.until, f"{UNLOCK_ALARM}{job.queue}\0{extras.unique_key}")


def forget(tables: Tables, job: Job) -> None:
    """Release the keys of a job that is removed. A unique key that is kept for its period stays."""
    extras = job.extras
    if extras is None:
        return
    if extras.idempotency_key:
        key = keys.idempotent(job.queue, extras.idempotency_key)
        if tables.overlay.get(key) == job.id.encode():
            tables.put(key, None)
    unlock(tables, job)


def ring(tables: Tables, subject: str) -> None:
    """The alarm of a lock: remove the lock if it has expired."""
    queue, _, key = subject.partition("\0")
    raw = tables.overlay.get(keys.unique(queue, key))
    if raw is not None and decode_lock(raw).until <= tables.now:
        tables.put_record(keys.unique(queue, key), None)


def _lock_unique(tables: Tables, job: Job, extras: JobExtras) -> None:
    until = tables.now + (extras.unique_period_ms or UNIQUE_PERIOD_MS_DEFAULT) * 1_000_000
    tables.put_record(keys.unique(job.queue, extras.unique_key), encode(Lock(job.id, until)))
    tables.alarms.add(until, f"{UNLOCK_ALARM}{job.queue}\0{extras.unique_key}")


def _find(tables: Tables, queue: str, key: str) -> Lock | None:
    raw = tables.overlay.get(keys.unique(queue, key))
    if raw is None:
        return None
    found = decode_lock(raw)
    return found if found.until > tables.now else None
