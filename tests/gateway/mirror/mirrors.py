"""Running mirrors for tests, and the comparison of what they wrote with what the shards hold."""

import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from corvo.model.job import Priority, encode
from corvo.model.job_extras import JobExtras
from corvo.ops.queues.set_throttle import SetThrottle
from corvo.state import keys
from corvo.state.schedules import CatchUp, JobTemplate, Schedule
from gateway.mirror import columns, rows
from gateway.mirror.course import FollowPace
from gateway.mirror.follow import MirrorFollower
from gateway.mirror.rows import to_rows
from gateway.mirror.shard_writes import Cursor, ShardWrite
from gateway.readdb.audit import AUDIT_COLUMNS
from gateway.readdb.minutes import MINUTE_COLUMNS
from tests.support.builders import NOW, SECOND, a_job, ack, enqueue, fail, fetch, job_id, promote
from tests.support.read_dbs import BOOT, Place
from tests.support.waiting import eventually as eventually

from .fake_shard import FakeShard

SHARDS = 2  # of the databases that `publish` makes
COLUMNS = {
    "jobs": columns.JOB_COLUMNS,
    "job_errors": columns.JOB_ERROR_COLUMNS,
    "queues": columns.QUEUE_COLUMNS,
    "queue_minutes": MINUTE_COLUMNS,
    "workers": columns.WORKER_COLUMNS,
    "batches": columns.BATCH_COLUMNS,
    "schedules": columns.SCHEDULE_COLUMNS,
    "unique_locks": columns.UNIQUE_LOCK_COLUMNS,
    "queue_claims": columns.QUEUE_CLAIM_COLUMNS,
    "audit_records": AUDIT_COLUMNS,
}


class Mirror:
    """A follower in a thread of its own. `stop` ends it as SIGTERM does."""

    def __init__(
        self, directory: Path, place: Place, shards: Sequence[FakeShard], origin: str = BOOT, **pace: int
    ) -> None:
        self.store = place.store(len(shards), origin)
        self._follower = MirrorFollower(
            directory,
            [shard.address for shard in shards],
            self.store,
            FollowPace(**({"wait_ms": 300, "answer_ms": 200} | pace)),
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


def expected(shards: Sequence[FakeShard]) -> dict[str, list[Any]]:
    """The rows that the shards' records call for, by a way that knows nothing of batches and scans."""
    made = [to_rows(number, shard.records().items()) for number, shard in enumerate(shards)]
    for one in made:
        one.jobs.put = whole_rows(one)
    return {name: sorted(row for rows in made for row in getattr(rows, name).put) for name in COLUMNS}


def whole_rows(made: rows.Rows) -> list[columns.Row]:
    """Jobs with and without bonds, as they are stored."""
    return [row + (None,) * len(columns.BOND_COLUMNS) for row in made.jobs.put] + made.bonded_jobs.put


def actual(place: Place) -> dict[str, list[Any]]:
    """What a reader finds; nothing where there is no database yet."""
    try:
        return {
            name: sorted(place.read(f"SELECT {', '.join(columns)} FROM {name}")) for name, columns in COLUMNS.items()
        }
    except place.faults:
        return {}


def generation_of(place: Place) -> str | None:
    """Another one after each rebuild; None while there is no database."""
    try:
        return str(place.read("SELECT generation FROM mirror_meta")[0][0])
    except place.faults:
        return None


def is_equal(place: Place, shards: Sequence[FakeShard]) -> bool:
    return actual(place) == expected(shards)


def caught_up(place: Place, shards: Sequence[FakeShard]) -> None:
    eventually(lambda: is_equal(place, shards), "the read database equals the shards")


def seen(place: Place, statement: str) -> list[Any]:
    """Nothing where there is no database yet."""
    try:
        return place.read(statement)
    except place.faults:
        return []


def work(shard: FakeShard, first: int, count: int = 20) -> None:
    """A stretch of life: jobs are made, claimed, done, failed and tried again. A queue lives on one shard only."""
    jobs = range(first, first + count)
    queues = [f"{shard.name}-{number}" for number in range(3)]
    shard.apply(SetThrottle(queues[0], 1_000, 60_000))
    shard.apply(*[enqueue(number, queue=queues[number % 3], extras=a_key(number)) for number in jobs])
    claimed = shard.apply(fetch(*queues[:2], worker="w1", claim=first, count=count // 2))[0]
    done, failed = claimed[: len(claimed) // 2], claimed[len(claimed) // 2 :]
    shard.apply(ack(*[job.job_id for job in done], ask=first, token=1, result=b'{"ok":true}'))
    shard.apply(fail(*[job.job_id for job in failed], ask=first, token=1, error="boom"))
    shard.apply(promote(), at=shard.now + 60 * SECOND)


def a_key(number: int) -> JobExtras | None:
    """Every fourth job has one, and each has its own."""
    return JobExtras(unique_key=f"k{number}") if number % 4 == 0 else None


def a_turn(*numbers: int, upto: int = 1, shard: int = 0) -> ShardWrite:
    """These jobs, and the cursor after them."""
    records = [(keys.job(job_id(number)), encode(a_job(number))) for number in numbers]
    return ShardWrite(shard=shard, rows=to_rows(shard, records), cursor=Cursor(shard, upto, NOW, NOW, True, 0))


def publish(place: Place, origin: str = BOOT) -> Any:
    """A database with the jobs 1 and 2."""
    store = place.store(SHARDS, origin)
    building = store.begin(NOW)
    building.write([a_turn(1, 2)])
    store.publish(building, NOW)
    return building


def a_schedule(**fields: Any) -> Schedule:
    terms = JobTemplate(
        "mail", "* * * * *", "Europe/Rome", b"{}", Priority.HIGH, 3, b'{"t":"x"}', "k", 0, CatchUp.LAST, 10
    )
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
