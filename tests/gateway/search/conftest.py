"""A read database made by the row writer, and a way to ask it: on SQLite and on PostgreSQL."""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from corvo.model.job import Job, JobError, Minute, Queue, Worker, encode
from corvo.model.reach import Reach
from corvo.rules.batches import Batch
from corvo.state import keys
from gateway.mirror.rows import presence_rows, to_rows
from gateway.mirror.shard_writes import Cursor, ShardWrite
from gateway.mirror.store import UntrustedDatabase
from gateway.search.database import Prepared, ReadDb
from gateway.search.sqlite import DIALECT
from tests.support.read_dbs import FilePlace, Place

Record = Job | JobError | Minute | Queue | Worker | Batch


class Written:
    """One published database with its writer."""

    def __init__(self, place: Place, shards: int = 1) -> None:
        self.place = place
        self.shards = shards
        self.path: Any = place.address
        self.store = place.store(shards)
        try:
            self.writer = self.store.open_trusted()
        except UntrustedDatabase:
            self.writer = self._publish()

    def _publish(self) -> Any:
        building = self.store.begin(time.time_ns())
        self.store.publish(building, time.time_ns())
        return building

    def swap(self) -> None:
        former = self.writer
        self.writer = self._publish()
        self.store.retire(former)

    def close(self) -> None:
        self.writer.close()
        self.store.release()

    def put(self, *records: Record, shard: int = 0, presence: Iterable[Worker] = ()) -> None:
        rows = to_rows(shard, [(key_of(record), encode(record)) for record in records])
        waiting = presence_rows(shard, list(presence))
        self.writer.write([ShardWrite(shard=shard, rows=rows, presence=waiting or None)])

    def delete(self, *job_ids: str, shard: int = 0) -> None:
        self.writer.write(
            [ShardWrite(shard=shard, rows=to_rows(shard, [(keys.job(job_id), None) for job_id in job_ids]))]
        )

    def forget(self, job_id: str, claims: Iterable[int], shard: int = 0) -> None:
        """The job and its errors, as a shard deletes them."""
        names = [keys.job(job_id), *[keys.job_error(job_id, claim) for claim in claims]]
        self.writer.write([ShardWrite(shard=shard, rows=to_rows(shard, [(name, None) for name in names]))])

    def delete_batches(self, *ids: str, shard: int = 0) -> None:
        self.writer.write([ShardWrite(shard=shard, rows=to_rows(shard, [(keys.batch(one), None) for one in ids]))])

    def records(self, *records: tuple[bytes, bytes | None], shard: int = 0) -> None:
        """By their keys; None deletes."""
        self.writer.write([ShardWrite(shard=shard, rows=to_rows(shard, records))])

    def put_cursor(self, shard: int = 0, index: int = 1, age_ms: float = 0, is_following: bool = True) -> None:
        at = time.time_ns() - int(age_ms * 1_000_000)
        cursor = Cursor(shard, index, at, at, is_following, 10)
        self.writer.write([ShardWrite(shard=shard, rows=to_rows(shard, []), cursor=cursor)])


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
def written(kept_place: Place) -> Iterator[Written]:
    made = Written(kept_place)
    made.put_cursor()
    yield made
    made.close()


@pytest.fixture
def explain(tmp_path: Path) -> Iterator[Callable[[Any], tuple[str, list[str]]]]:
    """The text that SQLite is given, and the steps of its plan: without statistics it must be told the index."""
    made = Written(FilePlace(tmp_path))

    def explained(statement: Prepared | sa.Select[Any]) -> tuple[str, list[str]]:
        prepared = statement if isinstance(statement, Prepared) else Prepared(statement)
        text, parameters = prepared.on(DIALECT)
        return text, [row[3] for row in made.writer._connection.execute(f"EXPLAIN QUERY PLAN {text}", parameters)]

    yield explained
    made.close()


@pytest.fixture
def read_db(written: Written) -> Iterator[ReadDb]:
    opened = ReadDb(written.path)
    yield opened
    opened.close()


@pytest.fixture
def ask(read_db: ReadDb) -> Callable[..., Any]:
    """`ask(search.answer, body)`: the answer, without a loop of the test's own."""
    return lambda question, *rest: asyncio.run(question(read_db.within(Reach()), *rest))
