"""A `read.db` made by the row writer, and a way to ask it."""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from corvo.batches import Batch
from corvo.job import Job, JobError, Minute, Queue, Worker, encode
from corvo.state import keys
from gateway.answers.database import ReadDb
from gateway.mirror import trust
from gateway.mirror.database import Cursor, MirrorDb, Turn
from gateway.mirror.rows import presence_rows, to_rows

Record = Job | JobError | Minute | Queue | Worker | Batch


class Written:
    """One published database with its writer."""

    def __init__(self, path: Path, shards: int = 1) -> None:
        self.path = path
        self.shards = shards
        self.writer = self._publish()

    def _publish(self) -> MirrorDb:
        building = trust.begin_rebuild(self.path, "boot-1", self.shards, time.time_ns())
        return trust.publish(building, self.path)

    def swap(self) -> None:
        self.writer.close()
        self.writer = self._publish()

    def put(self, *records: Record, shard: int = 0, presence: Iterable[Worker] = ()) -> None:
        rows = to_rows(shard, [(key_of(record), encode(record)) for record in records])
        waiting = presence_rows(shard, list(presence))
        self.writer.write([Turn(shard=shard, rows=rows, presence=waiting or None)])

    def delete(self, *job_ids: str, shard: int = 0) -> None:
        self.writer.write([Turn(shard=shard, rows=to_rows(shard, [(keys.job(job_id), None) for job_id in job_ids]))])

    def forget(self, job_id: str, claims: Iterable[int], shard: int = 0) -> None:
        """The job and its errors, as a shard deletes them."""
        names = [keys.job(job_id), *[keys.job_error(job_id, claim) for claim in claims]]
        self.writer.write([Turn(shard=shard, rows=to_rows(shard, [(name, None) for name in names]))])

    def delete_batches(self, *ids: str, shard: int = 0) -> None:
        self.writer.write([Turn(shard=shard, rows=to_rows(shard, [(keys.batch(one), None) for one in ids]))])

    def put_cursor(self, shard: int = 0, index: int = 1, age_ms: float = 0, is_following: bool = True) -> None:
        at = time.time_ns() - int(age_ms * 1_000_000)
        cursor = Cursor(shard, index, at, at, is_following, 10)
        self.writer.write([Turn(shard=shard, rows=to_rows(shard, []), cursor=cursor)])


def key_of(record: Record) -> bytes:
    match record:
        case Job():
            return keys.job(record.id)
        case JobError():
            return keys.job_error(record.job_id, record.claim)
        case Minute():
            return keys.minute(record.queue, record.minute)
        case Queue():
            return keys.queue(record.name)
        case Worker():
            return keys.worker(record.id)
        case Batch():
            return keys.batch(record.id)


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Written]:
    made = Written(tmp_path / trust.READ_DB)
    made.put_cursor()
    yield made
    made.writer.close()


@pytest.fixture
def read_db(written: Written) -> Iterator[ReadDb]:
    opened = ReadDb(written.path)
    yield opened
    opened.close()


@pytest.fixture
def ask(read_db: ReadDb) -> Callable[..., Any]:
    """`ask(search.answer, body)`: the answer, without a loop of the test's own."""
    return lambda question, *rest: asyncio.run(question(read_db, *rest))
