"""Does deleting a job cost the mirror more when very many jobs are stored?

There is a read database for each size, written and indexed by the mirror's own writer. In each round, new jobs are
written to each database and as many deleted: the oldest, as retention does, and random ones. The CPU includes the
writes and the indexing that follows; a round ends when the indexes are up to date.
"""

import random
import time

import msgspec

from benchmarks.figures import Figure, Findings, Goal, compared
from benchmarks.read_rows import NOW, a_job, job_records
from benchmarks.scenario import Scenario, Setup
from corvo.model.job import encode
from corvo.model.lifecycle import State
from corvo.state import keys
from gateway.mirror.database import MirrorDb
from gateway.mirror.rows import Record, to_rows
from gateway.mirror.shard_writes import ShardWrite
from gateway.mirror.sqlite_store import SqliteStore
from gateway.readdb.file import READ_DB

REFERENCE, SIZE, SIZE_QUICK, SIZE_HUGE = 10_000, 1_000_000, 30_000, 5_000_000
FILL_BATCH = 5_000
BATCH = 750  # jobs per transaction: 15,000 a second over one interval of the mirror
JOBS_A_ROUND, JOBS_A_ROUND_QUICK = 7_500, 1_500
INDEX_SLICE_MS = 20


class _Size(msgspec.Struct):
    jobs: int
    writer: MirrorDb
    stored: list[str]  # ids, oldest first
    number: int  # of the next job
    dice: random.Random
    written_us: list[float] = []  # CPU per job
    oldest_us: list[float] = []
    random_us: list[float] = []


def run(setup: Setup) -> Findings:
    largest = SIZE_QUICK if setup.is_quick else SIZE_HUGE if setup.is_huge else SIZE
    jobs = JOBS_A_ROUND_QUICK if setup.is_quick else JOBS_A_ROUND
    sizes = [_filled(setup, size) for size in (REFERENCE, largest)]
    advance = setup.watch.stage("write and delete", (setup.rounds + 1) * len(sizes))
    for number in range(setup.rounds + 1):
        for size in sizes[:: 1 if number % 2 else -1]:
            _round(size, jobs)
            advance(1)
    for size in sizes:
        size.writer.close()
        del size.written_us[0], size.oldest_us[0], size.random_us[0]  # the first round fills caches
    reference = sizes[0]
    flat = Goal("≤ 1.2 × that with 10,000", most=1.2)
    beside = f"that with {REFERENCE:,}"
    figures: list[Figure] = []
    for size in sizes:
        for name, ours, theirs in (
            ("deleted job, the oldest first", size.oldest_us, reference.oldest_us),
            ("deleted job, at random", size.random_us, reference.random_us),
            ("new job", size.written_us, reference.written_us),
        ):
            goal = flat if size is not reference and ours is size.oldest_us else None
            figures.append(compared(f"mirror: CPU a {name}, {size.jobs:,} stored", ours, "µs", theirs, beside, goal))
    return Findings(figures)


def _filled(setup: Setup, jobs: int) -> _Size:
    folder = setup.folder / str(jobs)
    folder.mkdir()
    writer = SqliteStore(folder / READ_DB, "benchmark", 1).begin(NOW)
    dice = random.Random(1)
    advance = setup.watch.stage(f"write and index {jobs:,} jobs", jobs)
    stored: list[str] = []
    for first in range(0, jobs, FILL_BATCH):
        numbers = range(first, min(first + FILL_BATCH, jobs))
        records = [record for number in numbers for record in job_records(dice, number)]
        _write(writer, records)
        _index(writer)
        stored += [key.removeprefix(keys.JOBS).decode() for key, _ in records if key.startswith(keys.JOBS)]
        advance(len(numbers))
    return _Size(jobs, writer, stored, jobs, dice)


def _round(size: _Size, jobs: int) -> None:
    """Deletes as many jobs as it writes, so that the size stays the same."""
    made = [a_job(number, State.COMPLETED, size.dice) for number in range(size.number, size.number + jobs)]
    size.number += jobs
    size.written_us.append(_cpu_us(size, [(keys.job(job.id), encode(job)) for job in made]))
    size.stored += [job.id for job in made]
    half = jobs // 2
    size.oldest_us.append(_delete(size, size.stored[:half]))
    del size.stored[:half]
    chosen = size.dice.sample(size.stored, jobs - half)
    size.random_us.append(_delete(size, chosen))
    gone = set(chosen)
    size.stored = [job_id for job_id in size.stored if job_id not in gone]


def _delete(size: _Size, ids: list[str]) -> float:
    return _cpu_us(size, [(keys.job(job_id), None) for job_id in ids])


def _cpu_us(size: _Size, records: list[Record]) -> float:
    began = time.process_time()
    for first in range(0, len(records), BATCH):
        _write(size.writer, records[first : first + BATCH])
    _index(size.writer)
    return (time.process_time() - began) / len(records) * 1e6


def _write(writer: MirrorDb, records: list[Record]) -> None:
    writer.write([ShardWrite(shard=0, rows=to_rows(0, records))])


def _index(writer: MirrorDb) -> None:
    while writer.index(INDEX_SLICE_MS):
        pass


SCENARIO = Scenario("deletes", "deleting jobs beside very many", run, is_long=True)
