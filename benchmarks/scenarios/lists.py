"""Lists with a million jobs stored: queues with counts and rates, throughput, one worker's jobs, groups of errors.

No server is started. The mirror's own classes fill the file (records → `to_rows` → `MirrorDb.write`), as if shards had
sent the records. The gateway's own classes query it (`ReadDb` and `gateway/search`), so the time excludes HTTP.
`--backlog` has no effect here; `--quick` uses a fiftieth of everything.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.figures import Figure, Findings, Goal, value
from benchmarks.scenario import Scenario, Setup, Watch
from corvo.model.job import Job, JobError, Minute, Priority, Worker, encode, new_queue
from corvo.model.lifecycle import State
from corvo.model.retry import Backoff
from corvo.queries.error_groups import ErrorGroupsQuery
from corvo.queries.state_lists import StateListQuery, search_body
from corvo.queries.throughput import ThroughputQuery
from corvo.state import keys
from corvo.state.minutes import MINUTE_NS, MINUTES_KEPT
from gateway.mirror import sqlite_store
from gateway.mirror.rows import to_rows
from gateway.mirror.shard_writes import Cursor, ShardWrite
from gateway.readdb.file import READ_DB
from gateway.search import error_groups, queues, search, throughput, worker, workers
from gateway.search.database import ReadDb

QUEUES, JOBS, ERRORS, MINUTES = 1_000, 1_000_000, 200_000, MINUTES_KEPT
BUSY_QUEUES = 100  # queues with activity in every minute of the day
WORKERS = 100
QUICK = 50
ASKED = 21
ROWS_AT_ONCE = 5_000
PAYLOAD = b'{"to":"user@example.com","template":"welcome"}'
# Out of a hundred jobs: most are pending or completed, some active, some dead.
STATES = (State.PENDING,) * 45 + (State.COMPLETED,) * 45 + (State.ACTIVE,) * 2 + (State.DEAD,) * 7 + (State.HELD,)
_ERRORS = ("dial tcp 10.0.0.{}:5432: timeout after {} s", "user {} not found: {}", "KeyError: 'k{}' in row {}")

Record = tuple[bytes, bytes | None]


def run(setup: Setup) -> Findings:
    less = QUICK if setup.is_quick else 1
    queue_count, job_count, error_count = QUEUES // less, JOBS // less, ERRORS // less
    path = setup.folder / READ_DB
    fill_s = _fill(path, setup.watch, queue_count, job_count, error_count)
    read_db = ReadDb(path)
    try:
        figures = [
            _asked(read_db, f"{queue_count:,} queues with counts, rates and oldest job", queues.answer, 50.0),
            _asked(read_db, "dead jobs of all queues, a page of 50", _dead, 10.0),
            _asked(read_db, "throughput of one queue, an hour", lambda db: _throughput(db, 60, "queue-0000"), 10.0),
            _asked(read_db, "throughput of all queues, an hour", lambda db: _throughput(db, 60, None), 50.0),
            _asked(read_db, "throughput of all queues, a day", lambda db: _throughput(db, MINUTES_KEPT, None), 500.0),
            _asked(read_db, f"{WORKERS} workers with the number of their jobs", workers.answer, 50.0),
            _asked(read_db, "one worker with its jobs", lambda db: worker.answer(db, "worker-0"), 10.0),
            _asked(read_db, f"groups of {error_count:,} errors", _groups, 100.0),
            _asked(read_db, "groups of one queue's errors", _groups_of_one, 10.0),
        ]
    finally:
        read_db.close()
    rows = job_count + error_count + queue_count + min(queue_count, BUSY_QUEUES) * MINUTES
    return Findings(figures, {"jobs": job_count, "rows": rows, "rows/s while filling": rows / fill_s})


def _asked(read_db: ReadDb, name: str, ask: Callable[[ReadDb], Awaitable[Any]], most_ms: float) -> Figure:
    """The first answer, which opens the file and fills caches, is not counted."""

    async def measure() -> list[float]:
        taken = []
        for _ in range(ASKED + 1):
            started = perf_counter()
            await ask(read_db)
            taken.append((perf_counter() - started) * 1000)
        return taken[1:]

    return value(name, asyncio.run(measure()), "ms", Goal(f"< {most_ms:g} ms", most=most_ms))


async def _dead(read_db: ReadDb) -> object:
    return await search.answer(read_db, search_body("dead", StateListQuery()))


async def _throughput(read_db: ReadDb, minutes: int, queue: str | None) -> object:
    return await throughput.answer(read_db, ThroughputQuery(minutes=minutes), queue)


async def _groups(read_db: ReadDb) -> object:
    return await error_groups.answer(read_db, ErrorGroupsQuery())


async def _groups_of_one(read_db: ReadDb) -> object:
    return await error_groups.answer(read_db, ErrorGroupsQuery(queue="queue-0000"))


def _fill(path: Path, watch: Watch, queue_count: int, job_count: int, error_count: int) -> float:
    now = time.time_ns()
    store = sqlite_store.SqliteStore(path, "benchmark", 1)
    building = store.begin(now)
    started = perf_counter()
    for label, count, records in (
        ("jobs", job_count, _jobs(job_count, queue_count, now)),
        ("errors", error_count, _failures(error_count, queue_count, now)),
        ("minutes", min(queue_count, BUSY_QUEUES) * MINUTES, _minutes(queue_count, now)),
        ("queues and workers", queue_count + WORKERS, _queues_and_workers(queue_count, job_count, now)),
    ):
        advance = watch.stage(f"write {count:,} {label}", count)
        while some := list(islice(records, ROWS_AT_ONCE)):
            building.write([ShardWrite(shard=0, rows=to_rows(0, some))])
            advance(len(some))
    building.write([ShardWrite(shard=0, rows=to_rows(0, []), cursor=Cursor(0, 1, now, now, True, job_count))])
    fill_s = perf_counter() - started
    store.publish(building, time.time_ns())
    building.close()
    return fill_s


def _jobs(count: int, queue_count: int, now: int) -> Iterator[Record]:
    for number in range(count):
        state = STATES[number // queue_count % len(STATES)]
        job = Job(
            id=_id(number),
            queue=f"queue-{number % queue_count:04d}",
            state=state,
            priority=Priority.NORMAL,
            payload=PAYLOAD,
            max_retries=3,
            backoff=Backoff.EXPONENTIAL,
            base_delay_ms=5_000,
            max_delay_ms=600_000,
            created_at=now - (count - number) * 1_000_000,
            worker_id=f"worker-{number % WORKERS}" if state is not State.PENDING else "",
            started_at=now if state is not State.PENDING else 0,
            lease_expires_at=now + 60 * 10**9 if state is State.ACTIVE else 0,
        )
        yield keys.job(job.id), encode(job)


def _failures(count: int, queue_count: int, now: int) -> Iterator[Record]:
    for number in range(count):
        text = _ERRORS[number % len(_ERRORS)].format(number % 250, number)
        error = JobError(_id(number), 1, 1, text, "", now - number, queue=f"queue-{number % queue_count:04d}")
        yield keys.job_error(error.job_id, 1), encode(error)


def _minutes(queue_count: int, now: int) -> Iterator[Record]:
    newest = now // MINUTE_NS - 1
    for number in range(min(queue_count, BUSY_QUEUES)):
        for minute in range(newest - MINUTES + 1, newest + 1):
            one = Minute(f"queue-{number:04d}", minute, 120, 118, 3, 1)
            yield keys.minute(one.queue, minute), encode(one)


def _queues_and_workers(queue_count: int, job_count: int, now: int) -> Iterator[Record]:
    each = job_count // queue_count
    for number in range(queue_count):
        queue = new_queue(f"queue-{number:04d}", now)
        for place in range(each):
            queue.counts[STATES[place % len(STATES)]] += 1
        queue.enqueued, queue.completed = each, queue.counts[State.COMPLETED]
        queue.began = (now // MINUTE_NS, each - 10, queue.completed - 5, 0, 0)
        yield keys.queue(queue.name), encode(queue)
    for number in range(WORKERS):
        yield keys.worker(f"worker-{number}"), encode(Worker(f"worker-{number}", "host", ["queue-0000"], now, now))


def _id(number: int) -> str:
    return f"s00_job_{number:026d}"


SCENARIO = Scenario("lists", "lists beside a million jobs", run, is_long=True)
