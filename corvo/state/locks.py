"""Keys that at most one job of a queue may hold: unique keys for a while, idempotency keys as long as the job is kept.

A lock that is over is as good as none, whether or not its alarm has removed it yet. Whoever releases a lock looks first
whether it is still its own: when a period ends before its job, another job may hold the key by then.
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
    """The job that stands where one with these bonds would."""
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
    """Take the keys that a new job asks for; the caller has seen that they are free."""
    extras = job.extras
    assert extras is not None
    if extras.idempotency_key:
        tables.put(keys.idempotent(job.queue, extras.idempotency_key), job.id.encode())
    if extras.unique_key:
        _lock_unique(tables, job, extras)


def lock_if_free(tables: Tables, job: Job) -> None:
    """A job has come from another queue: it takes its keys along, as far as nobody here holds them."""
    extras = job.extras
    if extras is None:
        return
    if extras.idempotency_key and tables.overlay.get(keys.idempotent(job.queue, extras.idempotency_key)) is None:
        tables.put(keys.idempotent(job.queue, extras.idempotency_key), job.id.encode())
    is_over = job.state in SETTLED or (extras.unique_until is UniqueUntil.START and job.attempt > 0)
    if extras.unique_key and not is_over and _find(tables, job.queue, extras.unique_key) is None:
        _lock_unique(tables, job, extras)


def lock_again(tables: Tables, job: Job) -> None:
    """A job that had ended is to run again: refused while another one holds its key."""
    extras = job.extras
    if extras is None or not extras.unique_key:
        return
    found = _find(tables, job.queue, extras.unique_key)
    if found is not None and found.job_id != job.id:
        raise Refusal("UNIQUE_CONFLICT", f"job {found.job_id} holds the unique key {extras.unique_key!r} by now")
    if found is None:
        _lock_unique(tables, job, extras)


def unlock(tables: Tables, job: Job, is_start: bool = False) -> None:
    """The job has ended, or has been claimed: its unique key is free if that is what it was kept for."""
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
    """The job is removed, and its keys are free; but a unique key that was asked to keep its period keeps it."""
    extras = job.extras
    if extras is None:
        return
    if extras.idempotency_key:
        key = keys.idempotent(job.queue, extras.idempotency_key)
        if tables.overlay.get(key) == job.id.encode():
            tables.put(key, None)
    unlock(tables, job)


def ring(tables: Tables, subject: str) -> None:
    """The alarm of a lock: remove it if it is over."""
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
