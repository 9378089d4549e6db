"""Does an operation cost more when very many jobs are stored? And how much memory do they take?

There is a node for each size, 1 k to 1 M jobs (5 M with `--huge`), half of them pending, half completed, over all
shards. In each round, forty thousand jobs go through their whole lives on each node in turn. Throughput is compared
with that of the node with ten thousand jobs in the same round; CPU covers all processes of the node, per job. It runs
only when named.
"""

from contextlib import ExitStack

import msgspec

from benchmarks.bench_tool import bench
from benchmarks.figures import Figure, Findings, Goal, compared, value
from benchmarks.jobs import close_all, enqueue_many
from benchmarks.load import connect_many, on_uvloop
from benchmarks.node import Node
from benchmarks.queues import queues_over_all
from benchmarks.scenario import PAYLOAD, Advance, Scenario, Setup
from benchmarks.scenarios.drain import in_and_out

SIZES, SIZE_HUGE = (1_000, 10_000, 100_000, 1_000_000), 5_000_000
SIZES_QUICK = (1_000, 10_000, 20_000)
REFERENCE = 10_000
JOBS_A_ROUND, JOBS_A_ROUND_QUICK = 40_000, 2_000  # about two seconds; less is mostly noise
JOBS_A_STEP = 50_000  # of filling: all ids of a step are kept in memory, to detect a job that is claimed twice
ROUNDS_UNCOUNTED = 2  # until LevelDB merges as much as it writes: a new node has nothing to merge yet
PRODUCERS = 4
QUEUES_A_SHARD = 2
SETTLE_S_MAX = 600.0  # the mirror of five million has much to write
BETWEEN_S_MAX = 10.0
_MB = 1_000_000


class _Size(msgspec.Struct):
    jobs: int
    node: Node
    idle_mb: float
    filled_mb: float = 0.0
    lives_per_s: list[float] = []
    cpu_us: list[float] = []  # per job


def run(setup: Setup) -> Findings:
    sizes = SIZES_QUICK if setup.is_quick else (*SIZES, SIZE_HUGE) if setup.is_huge else SIZES
    jobs = JOBS_A_ROUND_QUICK if setup.is_quick else JOBS_A_ROUND
    found: list[_Size] = []
    with ExitStack() as running:
        for count in sizes:
            node = running.enter_context(Node(setup.folder / str(count), *setup.flags))
            node.await_settled(BETWEEN_S_MAX)
            size = _Size(count, node, _memory_mb(node))
            _fill(node, count, setup.watch.stage(f"store {count:,} jobs", count))
            node.await_settled(SETTLE_S_MAX)
            size.filled_mb = _memory_mb(node)
            found.append(size)
        rounds = ROUNDS_UNCOUNTED + setup.rounds
        advance = setup.watch.stage("whole lives beside what is stored", rounds * len(found))
        for number in range(rounds):
            for size in found[:: 1 if number % 2 else -1]:
                _round(size, jobs)
                advance(1)
    return _findings(found)


def _fill(node: Node, jobs: int, advance: Advance) -> None:
    """Half of the jobs completed, half pending."""
    shards = node.settings.shards

    async def wait(step: int) -> None:
        producers = await connect_many(node.address, PRODUCERS)
        await enqueue_many(producers, queues_over_all(shards, QUEUES_A_SHARD, "waiting"), step, PAYLOAD, advance)
        await close_all(producers)

    for first in range(0, jobs // 2, JOBS_A_STEP):
        step = min(JOBS_A_STEP, jobs // 2 - first)
        done = queues_over_all(shards, QUEUES_A_SHARD, "done")
        on_uvloop(in_and_out(node, done, step, lambda half: advance(half / 2)))  # reports each job twice
        on_uvloop(wait(step))


def _round(size: _Size, jobs: int) -> None:
    before = size.node.cpu_s()
    report = bench(size.node.address, 0, "--jobs", str(jobs))
    size.lives_per_s.append(report.rates_per_s["jobs completed"])
    size.node.await_settled(BETWEEN_S_MAX)  # the mirror's later work belongs to these jobs
    size.cpu_us.append((size.node.cpu_s() - before) / jobs * 1e6)


def _findings(found: list[_Size]) -> Findings:
    for size in found:
        del size.lives_per_s[:ROUNDS_UNCOUNTED], size.cpu_us[:ROUNDS_UNCOUNTED]
    (reference,) = (size for size in found if size.jobs == REFERENCE)
    flat = Goal("throughput ≥ 0.9 of that with 10,000", least=0.9)
    beside = f"that with {REFERENCE:,}"
    figures: list[Figure] = []
    for size in found:
        goal = flat if size.jobs > REFERENCE else None
        name = f"whole lives, {size.jobs:,} stored"
        figures.append(compared(name, size.lives_per_s, "jobs/s", reference.lives_per_s, beside, goal))
    for size in found:
        name = f"CPU of all processes a job, {size.jobs:,} stored"
        figures.append(compared(name, size.cpu_us, "µs", reference.cpu_us, beside))
    idle = [size.idle_mb for size in found]
    figures.append(value("memory of all processes, idle and empty", idle, "MB", Goal("< 400 MB", most=400.0)))
    for size in found:
        goal = Goal("< 900 MB", most=900.0) if size.jobs == SIZES[-1] else None
        figures.append(value(f"memory of all processes, {size.jobs:,} stored", [size.filled_mb], "MB", goal))
    return Findings(figures)


def _memory_mb(node: Node) -> float:
    return sum(reading.rss_bytes for reading in node.readings()) / _MB


SCENARIO = Scenario("slope", "cost beside very many jobs", run, is_long=True)
