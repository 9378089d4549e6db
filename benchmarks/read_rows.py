"""Jobs and errors as a shard's records, for scenarios that write a read database directly."""

import random

from corvo.model.job import Job, JobError, Priority, encode
from corvo.model.lifecycle import State
from corvo.model.retry import Backoff
from corvo.state import keys

QUEUES = 100
TENANTS = 1_000
NOW = 1_767_225_600_000_000_000
TEMPLATES = ("welcome", "invoice", "reminder", "goodbye")
STATES = (State.COMPLETED,) * 6 + (State.PENDING, State.DEAD, State.RETRYING, State.CANCELLED)


def job_records(dice: random.Random, number: int) -> list[tuple[bytes, bytes]]:
    state = dice.choice(STATES)
    job = a_job(number, state, dice)
    records = [(keys.job(job.id), encode(job))]
    if state in (State.DEAD, State.RETRYING):
        error = JobError(job.id, 1, 1, f"SMTP timeout after {dice.randrange(1000)} ms at host-{number % 977}", "", NOW)
        records.append((keys.job_error(job.id, 1), encode(error)))
    return records


def a_job(number: int, state: State, dice: random.Random) -> Job:
    created_at = NOW + number * 1_000_000
    has_started, has_ended = state != State.PENDING, state == State.COMPLETED
    payload = (
        f'{{"to":"user{number}@example.com","template":"{dice.choice(TEMPLATES)}","amount":{dice.randrange(100_000)},'
        f'"body":"{"y" * 50}"}}'
    )
    return Job(
        id=f"s00_job_{created_at:016x}{number:010x}",
        queue=f"queue-{number % QUEUES}",
        state=state,
        priority=Priority.HIGH if number % 50 == 0 else Priority.NORMAL,
        payload=payload.encode(),
        max_retries=3,
        backoff=Backoff.EXPONENTIAL,
        base_delay_ms=5_000,
        max_delay_ms=600_000,
        created_at=created_at,
        attempt=int(has_started),
        started_at=created_at + 5_000_000 if has_started else 0,
        completed_at=created_at + 9_000_000 if has_ended else 0,
        worker_id="worker-1" if has_started else "",
        tags=f'{{"tenant":"t{number % TENANTS}","order":{number}}}'.encode(),
    )
