"""Ring: run the handlers of alarms that are due.

The first character of an alarm's subject selects the handler. The state may have changed since the alarm was set, so
every handler first checks whether there is something to do.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import msgspec

from corvo.endpoint import Compound, Steps
from corvo.model.lifecycle import SETTLED, State
from corvo.model.limits import UPKEEP_JOBS_PER_ENTRY
from corvo.ops.jobs.fetch import WORKER_ALARM
from corvo.rules import bulk
from corvo.rules.batches import BATCH_ALARM, forget
from corvo.rules.errands.watch import WATCHERS_ALARM, tell_the_rest
from corvo.rules.expiry import GRACE_ALARM, end_grace, expire_unless_active
from corvo.state import keys, locks
from corvo.state.audit_log import AUDIT_ALARM
from corvo.state.claim_limits import GATE_ALARM
from corvo.state.minutes import MINUTES_ALARM, oldest_kept
from corvo.state.tables import PURGE_ALARM, Tables
from corvo.state.transitions import EXPIRE_ALARM, remove

ALARMS_AT_ONCE = 8  # one alarm may be for all jobs of an entry

encode = msgspec.msgpack.Encoder().encode
_decode_ids = msgspec.msgpack.Decoder(list[str]).decode

Handler = Callable[[Tables, str, bytes], int]  # (tables, rest of the subject, value) → jobs looked at


class Ring(Compound, tag=105):
    result: ClassVar[Any] = int

    def steps(self, tables: Tables) -> Steps[int]:
        looked_at = 0
        while looked_at < UPKEEP_JOBS_PER_ENTRY:
            due = tables.alarms.over(tables.now, ALARMS_AT_ONCE)
            for due_at, subject, value in due:
                if looked_at >= UPKEEP_JOBS_PER_ENTRY:
                    tables.alarms.put_off(due_at)
                    break
                tables.alarms.remove(due_at, subject)
                looked_at += yield partial(_handle, subject=subject, value=value)
            if len(due) < ALARMS_AT_ONCE:
                break
        return looked_at


def _handle(tables: Tables, subject: str, value: bytes) -> int:
    return HANDLERS[subject[0]](tables, subject[1:], value)


def _unlock(tables: Tables, subject: str, value: bytes) -> int:
    locks.ring(tables, subject)
    return 1


def _open_gate(tables: Tables, queue: str, value: bytes) -> int:
    tables.wake(queue)
    return 1


def _purge(tables: Tables, index: str, value: bytes) -> int:
    """Remove jobs that ended together. A job whose retention is longer now gets an alarm of its own."""
    job_ids = _decode_ids(value)
    for job_id in job_ids:
        job = tables.find_job(job_id)
        if job is None or job.state not in SETTLED:
            continue
        kept_ms = tables.retention_ms(job)
        if not kept_ms:
            continue
        forget_at = (job.completed_at if job.state is State.COMPLETED else job.failed_at) + kept_ms * 1_000_000
        if forget_at <= tables.now:
            remove(tables, job, b'{"reason":"retention"}')
        else:
            tables.alarms.add(forget_at, f"{PURGE_ALARM}{job_id}", encode([job_id]))
    return len(job_ids)


def _forget_worker(tables: Tables, worker_id: str, value: bytes) -> int:
    """A worker has one alarm; it is set again when the worker was seen since."""
    worker = tables.find_worker(worker_id)
    if worker is not None:
        silent_at = worker.last_seen_at + tables.worker_timeout_ms * 1_000_000
        if silent_at <= tables.now:
            tables.drop_worker(worker_id)
        else:
            tables.alarms.add(silent_at, WORKER_ALARM + worker_id)
    return 1


def _forget_minutes(tables: Tables, queue: str, value: bytes) -> int:
    return 1 + tables.forget_minutes(queue, keys.minute(queue, oldest_kept(tables.now)))


def _trim_audit_log(tables: Tables, subject: str, value: bytes) -> int:
    return tables.audit_log.trim(tables.now)


HANDLERS: dict[str, Handler] = {
    EXPIRE_ALARM: expire_unless_active,
    locks.UNLOCK_ALARM: _unlock,
    GATE_ALARM: _open_gate,
    GRACE_ALARM: end_grace,
    PURGE_ALARM: _purge,
    WORKER_ALARM: _forget_worker,
    BATCH_ALARM: forget,
    WATCHERS_ALARM: tell_the_rest,
    bulk.BULK_ALARM: bulk.forget,
    bulk.MEMO_ALARM: bulk.forget_memo,
    MINUTES_ALARM: _forget_minutes,
    AUDIT_ALARM: _trim_audit_log,
}
