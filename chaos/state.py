"""The state of a node: the records of its shards, read over their sockets, and the rows of read.db."""

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import zmq

from corvo.model.job import (
    Job,
    JobError,
    Minute,
    Queue,
    Worker,
    decode_job,
    decode_job_error,
    decode_minute,
    decode_queue,
    decode_worker,
)
from corvo.model.limits import MESSAGE_BYTES_MAX
from corvo.queries.cluster import GetStatus, ShardStatus
from corvo.queries.feed import Scan, ScanPiece
from corvo.rules.batches import Batch, decode_batch
from corvo.runtime.process import RUN
from corvo.state import keys
from corvo.state.schedules import Schedule, decode_schedule
from corvo.wire import Call, decode_replies, decode_result, encode, encode_calls

FLUSHED_S = 10.0


class Held(msgspec.Struct):
    """Records of all shards, by key."""

    jobs: dict[str, Job] = {}
    errors: dict[tuple[str, int], JobError] = {}
    queues: dict[str, Queue] = {}
    minutes: dict[tuple[str, int], Minute] = {}
    workers: dict[tuple[str, int], Worker] = {}
    batches: dict[str, Batch] = {}
    schedules: dict[str, Schedule] = {}
    places: set[tuple[str, int]] = set()  # jobs and their shards: a job may move, but is never on two


def held_by_shards(data_dir: Path, shards: int) -> Held:
    """Everything that the shards have applied; exact only if nothing is written meanwhile."""
    held = Held()
    for shard in range(shards):
        with _Line(data_dir, shard) as line:
            line.await_flushed()
            start = b""
            while True:
                piece: ScanPiece = line.ask(Scan(start, 2_000))
                for key, value in piece.records:
                    _keep(held, shard, key, value)
                if not piece.next_key:
                    break
                start = piece.next_key
    return held


def statuses(data_dir: Path, shards: int) -> list[ShardStatus]:
    found = []
    for shard in range(shards):
        with _Line(data_dir, shard) as line:
            found.append(line.ask(GetStatus()))
    return found


def rows_of(data_dir: Path, query: str) -> list[sqlite3.Row]:
    with closing(sqlite3.connect(f"file:{data_dir}/read.db?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        return connection.execute(query).fetchall()


def _keep(held: Held, shard: int, key: bytes, value: bytes) -> None:
    if key.startswith(keys.JOBS):
        job = decode_job(value)
        held.jobs[job.id] = job
        held.places.add((job.id, shard))
    elif key.startswith(keys.JOB_ERRORS):
        error = decode_job_error(value)
        held.errors[error.job_id, error.claim] = error
    elif key.startswith(keys.QUEUES):
        queue = decode_queue(value)
        held.queues[queue.name] = queue
    elif key.startswith(keys.MINUTES):
        minute = decode_minute(value)
        held.minutes[minute.queue, minute.minute] = minute
    elif key.startswith(keys.WORKERS):
        worker = decode_worker(value)
        held.workers[worker.id, shard] = worker
    elif key.startswith(keys.BATCHES):
        batch = decode_batch(value)
        held.batches[batch.id] = batch
    elif key.startswith(keys.SCHEDULES):
        schedule = decode_schedule(value)
        held.schedules[schedule.id] = schedule


class _Line:
    """A socket to one shard. Its path is relative to the data directory, as for the node's own processes: an absolute
    path may be too long for a Unix socket."""

    def __init__(self, data_dir: Path, shard: int) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.MAXMSGSIZE, MESSAGE_BYTES_MAX)
        here = Path.cwd()
        os.chdir(data_dir)
        try:
            self._socket.connect(f"ipc://{RUN}/shard-{shard}.ipc")
            # ZeroMQ connects in the background: stay in this directory until then, because the path is relative.
            self._next_id = 0
            self.ask(GetStatus())
        finally:
            os.chdir(here)

    def await_flushed(self) -> None:
        """Waits until the applied state is on disk: a scan reads the disk, some milliseconds behind."""
        applied = self.ask(GetStatus()).applied_index
        deadline = time.monotonic() + FLUSHED_S
        while self.ask(Scan(b"", 1)).as_of < applied:
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {FLUSHED_S:g} s for a shard to write what it has applied")
            time.sleep(0.01)

    def ask(self, ask: Scan | GetStatus, timeout_ms: int = 10_000) -> Any:
        self._next_id += 1
        self._socket.send(encode_calls([Call(self._next_id, timeout_ms, encode(ask))]))
        while self._socket.poll(timeout_ms):
            for reply in decode_replies(self._socket.recv()):
                if reply.id == self._next_id:
                    return decode_result(type(ask), reply)
        raise TimeoutError("the shard did not answer")

    def __enter__(self) -> "_Line":
        return self

    def __exit__(self, *error: object) -> None:
        self._socket.close(0)
        self._context.term()
