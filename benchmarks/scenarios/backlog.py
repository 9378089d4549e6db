"""A long queue must not be slower than a short one.

Two nodes run side by side: one with 1,000 jobs waiting in a queue, one with a hundred thousand (or a million:
`--backlog`). In each round, jobs are fetched from both, one by one and in hundreds; refilling the queues is not timed.
Then the cost of the backlog is measured: the memory of its shard, and the time to restart after all processes were
killed.
"""

from contextlib import ExitStack
from statistics import median
from time import perf_counter

import msgspec

from benchmarks.figures import Figure, Findings, Goal, compared, value
from benchmarks.jobs import (
    FETCH_BATCH,
    ack_all,
    ack_request,
    close_all,
    decode_batch,
    decode_fetched,
    enqueue_many,
    fetch_batch_request,
    fetch_request,
)
from benchmarks.load import LoadFailed, connect, connect_many, on_uvloop
from benchmarks.node import Node
from benchmarks.scenario import PAYLOAD, Advance, Scenario, Setup
from corvo.model.sharding import shard_of_queue

SHALLOW = 1_000
QUEUE = "backlog"
PRODUCERS = 4
SINGLES, SINGLES_QUICK = 150, 60  # per round; with the batches fewer than the jobs of the short queue
BATCHES = 8
SETTLE_S_MAX = 60.0
_MB = 1_000_000


class _Round(msgspec.Struct):
    single_ms: float  # a fetch and an ack
    batch_ms: float  # a fetch of a hundred and their ack


def run(setup: Setup) -> Findings:
    singles = SINGLES_QUICK if setup.is_quick else SINGLES
    with ExitStack() as running:
        shallow = running.enter_context(Node(setup.folder / "shallow", *setup.flags))
        deep = Node(setup.folder / "deep", *setup.flags)
        running.callback(lambda: deep.stop())  # `deep` is rebound by the restart
        shard = f"shard-{shard_of_queue(QUEUE, deep.settings.shards)}"
        rss_before = deep.reading(shard).rss_bytes
        started = perf_counter()
        fill = setup.watch.stage(f"fill a queue with {setup.backlog:,} jobs", setup.backlog)
        _fill(shallow, SHALLOW)
        _fill(deep, setup.backlog, fill)
        fill_s = perf_counter() - started
        settle = setup.watch.stage("wait until both nodes are quiet", 1)
        settle_s = deep.await_settled(SETTLE_S_MAX) + shallow.await_settled(SETTLE_S_MAX)
        settle(1)
        rss_after = deep.reading(shard).rss_bytes
        rounds: dict[str, list[_Round]] = {"shallow": [], "deep": []}
        advance = setup.watch.stage("fetch and ack, in both by turns", setup.rounds * 2)
        for number in range(setup.rounds + 1):
            for name, node in [("shallow", shallow), ("deep", deep)][:: 1 if number % 2 else -1]:
                measured = on_uvloop(_round(node, singles))
                _fill(node, singles + BATCHES * FETCH_BATCH)
                node.await_settled(3.0)
                if number:  # the first round warms caches
                    rounds[name].append(measured)
                    advance(1)
        shallow.stop()
        rss_peak = deep.reading(shard).rss_bytes
        restart = setup.watch.stage("kill every process and start again", 1)
        deep.kill()
        deep = Node(deep.folder, *setup.flags)
        serving_s = deep.start_s + on_uvloop(_first_job_s(deep))
        restart(1)
    return Findings(
        [
            _compared("one by one: a fetch and its ack", "single_ms", rounds, setup.backlog),
            _compared("by the hundred: fetch/batch and ack/batch", "batch_ms", rounds, setup.backlog),
            value(
                f"memory of the shard, growth by {setup.backlog:,} jobs",
                [(max(rss_after, rss_peak) - rss_before) / _MB],
                "MB",
                Goal("< 200 MB", most=200.0),
            ),
            value("start again after a kill, until /healthz", [deep.start_s], "s", Goal("< 5 s", most=5.0)),
        ],
        {
            "backlog": setup.backlog,
            "jobs/s while filling": (setup.backlog + SHALLOW) / fill_s,
            "seconds until quiet after filling": settle_s,
            "start until the first claimed job, s": serving_s,
            "RSS of the shard before, MB": rss_before / _MB,
            "RSS of the shard after, MB": rss_after / _MB,
        },
    )


def _fill(node: Node, jobs: int, advance: Advance = lambda jobs: None) -> None:
    async def fill() -> None:
        producers = await connect_many(node.address, PRODUCERS)
        await enqueue_many(producers, [QUEUE], jobs, PAYLOAD, advance)
        await close_all(producers)

    on_uvloop(fill())


async def _round(node: Node, singles: int) -> _Round:
    worker = await connect(node.address)
    fetch, fetch_batch = fetch_request([QUEUE], "worker"), fetch_batch_request([QUEUE], "worker")
    single_s, batch_s = [], []
    for _ in range(singles):
        started = perf_counter()
        await worker.require(ack_request(decode_fetched(await worker.require(fetch))))
        single_s.append(perf_counter() - started)
    for _ in range(BATCHES):
        started = perf_counter()
        jobs = decode_batch(await worker.require(fetch_batch)).jobs
        await ack_all(worker, jobs)
        batch_s.append(perf_counter() - started)
        if len(jobs) != FETCH_BATCH:
            raise LoadFailed(f"{len(jobs)} jobs in a batch of {FETCH_BATCH}: the queue is not as long as it should be")
    await close_all([worker])
    return _Round(median(single_s) * 1000, median(batch_s) * 1000)


async def _first_job_s(node: Node) -> float:
    worker = await connect(node.address)
    started = perf_counter()
    decode_fetched(await worker.require(fetch_request([QUEUE], "worker", 10.0)))
    await close_all([worker])
    return perf_counter() - started


def _compared(name: str, field: str, rounds: dict[str, list[_Round]], backlog: int) -> Figure:
    shallow, deep = ([getattr(each, field) for each in rounds[which]] for which in ("shallow", "deep"))
    goal = Goal(f"time with {backlog:,} waiting < 1.1 of that with {SHALLOW:,}", most=1.1)
    return compared(name, deep, "ms", shallow, f"that with {SHALLOW:,} waiting", goal)


SCENARIO = Scenario("backlog", "a long queue beside a short one", run)
