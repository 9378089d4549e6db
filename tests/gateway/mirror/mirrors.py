"""Running mirrors for tests, and the comparison of what they wrote with what the shards hold."""

import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from corvo.job import Priority, encode
from corvo.state import keys
from corvo.state.schedules import CatchUp, Schedule, Terms
from gateway.mirror import columns, rows, trust
from gateway.mirror.database import Cursor, MirrorDb, Turn
from gateway.mirror.follow import Follower, Pace
from gateway.mirror.minutes import MINUTE_COLUMNS
from gateway.mirror.rows import to_rows
from tests.support.builders import NOW, a_job, job_id

from .fake_shard import FakeShard

BOOT = "boot-1"
SHARDS = 2  # of the databases that `publish` makes
COLUMNS = {
    "jobs": columns.JOB_COLUMNS,
    "job_errors": columns.JOB_ERROR_COLUMNS,
    "queues": columns.QUEUE_COLUMNS,
    "queue_minutes": MINUTE_COLUMNS,
    "workers": columns.WORKER_COLUMNS,
    "batches": columns.BATCH_COLUMNS,
    "schedules": columns.SCHEDULE_COLUMNS,
}


class Mirror:
    """A follower in a thread of its own. `stop` ends it as SIGTERM does."""

    def __init__(self, directory: Path, shards: Sequence[FakeShard], boot_id: str = BOOT, **pace: int) -> None:
        self._follower = Follower(
            directory,
            [shard.address for shard in shards],
            boot_id,
            Pace(**({"wait_ms": 300, "answer_ms": 200} | pace)),
        )
        self._is_stopping = False
        self._reader, self._writer = socket.socketpair()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.failure: BaseException | None = None

    def _run(self) -> None:
        try:
            self._follower.run(lambda: self._is_stopping, self._reader.fileno())
        except BaseException as failure:
            self.failure = failure

    def __enter__(self) -> "Mirror":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._is_stopping = True
        self._writer.send(b"!")
        self._thread.join(5)
        assert not self._thread.is_alive()
        if self.failure is not None:
            raise self.failure


def eventually(is_so: Callable[[], Any], what: str = "", within_s: float = 8.0) -> Any:
    """Wait for a condition, never for a duration."""
    deadline = time.monotonic() + within_s
    while True:
        found = is_so()
        if found:
            return found
        assert time.monotonic() < deadline, f"never came true: {what or is_so}"
        time.sleep(0.005)


def expected(shards: Sequence[FakeShard]) -> dict[str, list[Any]]:
    """The rows that the shards' records call for, by a way that knows nothing of batches and scans."""
    made = [to_rows(number, shard.records().items()) for number, shard in enumerate(shards)]
    for one in made:
        one.jobs.put = whole_rows(one)
    return {name: sorted(row for rows in made for row in getattr(rows, name).put) for name in COLUMNS}


def whole_rows(made: rows.Rows) -> list[columns.Row]:
    """Jobs with and without bonds, as SQLite stores them."""
    return [row + (None,) * len(columns.BOND_COLUMNS) for row in made.jobs.put] + made.bonded_jobs.put


def actual(path: Path) -> dict[str, list[Any]]:
    """What a reader finds; nothing where there is no database yet."""
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    except sqlite3.OperationalError:
        return {}
    try:
        connection.execute("BEGIN")
        return {
            name: sorted(connection.execute(f"SELECT {', '.join(columns)} FROM {name}"))
            for name, columns in COLUMNS.items()
        }
    except sqlite3.Error:
        return {}
    finally:
        connection.close()


def read(path: Path, sql: str) -> list[Any]:
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def generation_of(path: Path) -> str | None:
    """Another one after each rebuild; None while there is no database."""
    try:
        return str(read(path, "SELECT generation FROM mirror_meta")[0][0])
    except sqlite3.Error:
        return None


def is_equal(path: Path, shards: Sequence[FakeShard]) -> bool:
    return actual(path) == expected(shards)


def a_turn(*numbers: int, upto: int = 1, shard: int = 0) -> Turn:
    """These jobs, and the cursor after them."""
    records = [(keys.job(job_id(number)), encode(a_job(number))) for number in numbers]
    return Turn(shard=shard, rows=to_rows(shard, records), cursor=Cursor(shard, upto, NOW, NOW, True, 0))


def publish(path: Path, boot_id: str = BOOT) -> MirrorDb:
    """A database with the jobs 1 and 2."""
    building = trust.begin_rebuild(path, boot_id, SHARDS, NOW)
    building.write([a_turn(1, 2)])
    return trust.publish(building, path)


def a_schedule(**fields: Any) -> Schedule:
    terms = Terms("mail", "* * * * *", "Europe/Rome", b"{}", Priority.HIGH, 3, b'{"t":"x"}', "k", 0, CatchUp.LAST, 10)
    defaults: dict[str, Any] = {
        "id": "sch",
        "name": "nightly",
        "terms": terms,
        "created_at": NOW,
        "updated_at": NOW + 1,
        "settled_to": NOW,
        "next_at": NOW + 60,
    }
    return Schedule(**(defaults | fields))
