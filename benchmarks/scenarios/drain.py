"""Many jobs per request: 20,000 jobs enqueued by enqueue/batch, then drained by fetch/batch and ack/batch of 100.

The queues are on all shards; each connection drains one of them. Every job must be acked exactly once. Each round also
runs the prototype's WebSocket stream at its fastest. An operation is one enqueue, one claim or one ack, for both.
"""

from contextlib import ExitStack
from statistics import median
from time import perf_counter

import msgspec

from benchmarks.figures import Findings, Goal, compared, value
from benchmarks.jobs import ack_all, close_all, decode_batch, enqueue_many, fetch_batch_request
from benchmarks.load import Connection, LoadFailed, connect_many, on_uvloop, together
from benchmarks.node import Node
from benchmarks.prototype import Prototype
from benchmarks.queues import queues_over_all
from benchmarks.scenario import NO_PROTOTYPE, PAYLOAD, Advance, Scenario, Setup

JOBS, JOBS_QUICK = 20_000, 5_000
PRODUCERS = 4
QUEUES_A_SHARD = 2  # with one connection each
OPERATIONS_A_JOB = 3


class Round(msgspec.Struct):
    enqueue_s: float
    drain_s: float
    cpu_s: dict[str, float]  # of each process, while draining


def run(setup: Setup) -> Findings:
    jobs = JOBS_QUICK if setup.is_quick else JOBS
    rounds: list[Round] = []
    theirs: list[float] = []
    with ExitStack() as running:
        node = running.enter_context(Node(setup.folder / "node", *setup.flags))
        prototype = None
        if setup.prototype is not None:
            prototype = Prototype(setup.prototype, setup.folder)
            running.callback(prototype.stop)
        advance = setup.watch.stage(f"{jobs} jobs in, and out again", setup.rounds * jobs * 2)
        for number in range(setup.rounds):
            queues = queues_over_all(node.settings.shards, QUEUES_A_SHARD, f"drain{number}")
            rounds.append(on_uvloop(in_and_out(node, queues, jobs, advance)))
            node.await_settled(5.0)  # the mirror's backlog must not slow down the prototype
            if prototype is not None:
                theirs.append(prototype.stream_ops_per_s(setup.round_s))
    return _findings(jobs, rounds, theirs)


async def in_and_out(
    node: Node, queues: list[str], jobs: int, advance: Advance, producer_count: int = PRODUCERS
) -> Round:
    producers, workers = await connect_many(node.address, producer_count), await connect_many(node.address, len(queues))
    acked: set[str] = set()
    started = perf_counter()
    await enqueue_many(producers, queues, jobs, PAYLOAD, advance)
    enqueued = perf_counter()
    before = {reading.name: reading.cpu_s for reading in node.readings()}
    began = perf_counter()
    await together([_drain(worker, queue, acked, advance) for worker, queue in zip(workers, queues, strict=True)])
    ended = perf_counter()
    cpu_s = {reading.name: reading.cpu_s - before.get(reading.name, 0.0) for reading in node.readings()}
    await close_all([*producers, *workers])
    if len(acked) != jobs:
        raise LoadFailed(f"{len(acked)} of {jobs} jobs were acked")
    return Round(enqueued - started, ended - began, cpu_s)


async def _drain(worker: Connection, queue: str, acked: set[str], advance: Advance) -> None:
    request = fetch_batch_request([queue], f"worker-{queue}")
    while jobs := decode_batch(await worker.require(request)).jobs:
        await ack_all(worker, jobs)
        ids = {job.job_id for job in jobs}
        if len(ids) != len(jobs) or not acked.isdisjoint(ids):
            raise LoadFailed(f"a job of {queue} was handed out twice")
        acked |= ids
        advance(len(jobs))


def _findings(jobs: int, rounds: list[Round], theirs: list[float]) -> Findings:
    drained = [jobs / each.drain_s for each in rounds]
    operations = [jobs * OPERATIONS_A_JOB / (each.enqueue_s + each.drain_s) for each in rounds]
    figures = [
        value("drained: claimed and acked", drained, "jobs/s", Goal("≥ 20,000 jobs/s on 2 cores", least=20_000)),
        value("enqueued in batches", [jobs / each.enqueue_s for each in rounds], "jobs/s"),
    ]
    whole = "operations over a job's whole life"
    if theirs:
        goal = Goal("≥ 0.5 of the prototype", least=0.5)
        figures.append(compared(whole, operations, "ops/s", theirs, "prototype's stream", goal))
    else:
        figures.append(value(whole, operations, "ops/s"))
    details = {
        f"{name}: share of a core while draining": median(each.cpu_s.get(name, 0.0) / each.drain_s for each in rounds)
        for name in rounds[0].cpu_s
    }
    if theirs:
        details["prototype: operations/s"] = median(theirs)
    return Findings(figures, details, [] if theirs else [NO_PROTOTYPE])


SCENARIO = Scenario("drain", "batches in, batches out", run)
