"""Search over very many jobs (`--backlog 1000000`), and what the read database costs the mirror.

The mirror's own writer fills the file (`to_rows`, `MirrorDb.write`, `MirrorDb.index`), without shards: only the file is
measured, and filling it over HTTP would take a hundred times as long. `gateway.search.search` runs the queries, in
threads as in the gateway, without HTTP.

The mirror's cost is the CPU time of one thread: from a shard's records to the committed rows, for a whole life
(pending, active and completed written separately, which is the worst case), and for indexing one job's texts.
"""

import asyncio
import random
import time
from collections.abc import Callable
from statistics import median

from benchmarks.figures import Figure, Findings, Goal, value
from benchmarks.read_rows import NOW, QUEUES, TENANTS, a_job, job_records
from benchmarks.scenario import Scenario, Setup
from corvo.model.job import encode
from corvo.model.lifecycle import STATE_NAMES, State
from corvo.queries.search import FulltextQuery, SearchBody
from corvo.state import keys
from gateway.mirror import sqlite_store
from gateway.mirror.database import MirrorDb
from gateway.mirror.rows import to_rows
from gateway.mirror.shard_writes import Cursor, ShardWrite
from gateway.readdb.file import READ_DB
from gateway.search import fulltext, search
from gateway.search.database import ReadDb

BATCH = 5_000
LIFE_BATCH = 750  # 15,000 lives a second over one interval of the mirror
LIVES, LIVES_QUICK = 60_000, 15_000
PAGES, PAGES_QUICK = 300, 50
_MB = 1_000_000


def run(setup: Setup) -> Findings:
    dice = random.Random(1)
    path = setup.folder / READ_DB
    store = sqlite_store.SqliteStore(path, "benchmark", 1)
    building = store.begin(NOW)
    fill = setup.watch.stage(f"write {setup.backlog:,} jobs", setup.backlog)
    for first in range(0, setup.backlog, BATCH):
        _write(building, [job_records(dice, number) for number in range(first, min(first + BATCH, setup.backlog))])
        fill(BATCH)
    written_bytes = building.path.stat().st_size
    index = setup.watch.stage("index their texts", 1)
    began, slices_ms = time.process_time(), []
    is_behind = True
    while is_behind:
        slice_began = time.perf_counter()
        is_behind = building.index(20)
        slices_ms.append((time.perf_counter() - slice_began) * 1000)
    index_us = (time.process_time() - began) / setup.backlog * 1e6
    index(1)
    building.write([ShardWrite(shard=0, rows=to_rows(0, []), cursor=Cursor(0, 1, NOW, NOW, True, setup.backlog))])
    store.publish(building, NOW)
    writer = building
    read_db = ReadDb(path)
    try:
        figures = asyncio.run(_queries(setup, read_db, dice))
    finally:
        read_db.close()
    life_us = _life_us(setup, writer)
    details = {
        "jobs": setup.backlog,
        "file before indexing, MB": written_bytes / _MB,
        "file, MB": path.stat().st_size / _MB,
        "slices of indexing, ms, median": median(slices_ms),
        "slices of indexing, ms, longest": max(slices_ms),
    }
    writer.close()
    return Findings(
        [
            *figures,
            value(
                "mirror: CPU for a job's whole life", [life_us], "µs", Goal("15,000 a second on one core", most=66.6)
            ),
            value("mirror: CPU for indexing a job, later", [index_us], "µs"),
        ],
        details,
    )


def _write(writer: MirrorDb, records: list[list[tuple[bytes, bytes]]]) -> None:
    writer.write([ShardWrite(shard=0, rows=to_rows(0, [record for of_job in records for record in of_job]))])


def _life_us(setup: Setup, writer: MirrorDb) -> float:
    """Writes new jobs next to the stored ones, so that the indexes have their real depth."""
    lives = LIVES_QUICK if setup.is_quick else LIVES
    dice = random.Random(2)
    advance = setup.watch.stage(f"whole lives of {lives:,} jobs", lives)
    spent = 0.0
    for first in range(setup.backlog, setup.backlog + lives, LIFE_BATCH):
        for state in (State.PENDING, State.ACTIVE, State.COMPLETED):
            jobs = [a_job(number, state, dice) for number in range(first, first + LIFE_BATCH)]
            batch = [(keys.job(job.id), encode(job)) for job in jobs]
            began = time.process_time()
            writer.write([ShardWrite(shard=0, rows=to_rows(0, batch))])
            spent += time.process_time() - began
        advance(LIFE_BATCH)
    return spent / lives * 1e6


async def _queries(setup: Setup, read_db: ReadDb, dice: random.Random) -> list[Figure]:
    pages = PAGES_QUICK if setup.is_quick else PAGES
    context = setup.watch.stage("ask", 12)

    def someone() -> int:
        return dice.randrange(setup.backlog)

    def listed() -> SearchBody:
        return SearchBody(queue=f"queue-{dice.randrange(QUEUES)}", state=[dice.choice(STATE_NAMES[:5])])  # type: ignore[list-item]

    async def figure(name: str, goal_ms: float, make: Callable[[], SearchBody], rounds: int = setup.rounds) -> Figure:
        spans = []
        for _ in range(rounds + 1):
            began = time.perf_counter()
            await search.answer(read_db, make())
            spans.append((time.perf_counter() - began) * 1000)
        context(1)
        return value(name, spans[1:], "ms", Goal(f"< {goal_ms:g} ms", most=goal_ms))

    spans = sorted([await _page_ms(read_db, listed()) for _ in range(pages)])
    context(1)
    figures = [
        value("page of a queue and a state, p99", [spans[int(pages * 0.99) - 1]], "ms", Goal("< 10 ms", most=10))
    ]
    figures += [
        await figure("a tag that one job has", 300, lambda: SearchBody(tags={"order": someone()})),
        await figure(
            "a tag that 1 in 1,000 has", 300, lambda: SearchBody(tags={"tenant": f"t{dice.randrange(TENANTS)}"})
        ),
        await figure("two tags that no job has together", 300, lambda: SearchBody(tags={"tenant": "t1", "order": 2})),
        await figure("jq, a text that one job has", 300, lambda: _jq(f'.to == "user{someone()}@example.com"')),
        await figure("jq, a text that 1 in 4 has", 300, lambda: _jq('.template == "welcome"')),
        await figure("jq, numbers that 1 in 100 has", 300, lambda: _jq(".amount > 99000")),
        await figure("substring that one job has", 500, lambda: SearchBody(payload_contains=f"user{someone()}@")),
        await figure("substring that all have", 500, lambda: SearchBody(payload_contains="@example.com")),
        await figure("substring that none has", 500, lambda: SearchBody(payload_contains="nobody@example.com")),
        await figure("substring of errors, 1 in 5,000", 500, lambda: SearchBody(error_contains="at host-97")),
        await figure("sorted by start, a queue", 300, lambda: SearchBody(queue="queue-7", sort="started_at")),
    ]
    words_ms = [await _words_ms(read_db, someone()) for _ in range(setup.rounds)]
    return [*figures, value("words that one job has", words_ms, "ms")]


async def _page_ms(read_db: ReadDb, body: SearchBody) -> float:
    began = time.perf_counter()
    await search.answer(read_db, body)
    return (time.perf_counter() - began) * 1000


async def _words_ms(read_db: ReadDb, number: int) -> float:
    began = time.perf_counter()
    await fulltext.answer(read_db, FulltextQuery(q=f"welcome user{number}"))
    return (time.perf_counter() - began) * 1000


def _jq(text: str) -> SearchBody:
    return SearchBody(payload_jq=text)


SCENARIO = Scenario("search", "search over very many jobs", run, is_long=True)
