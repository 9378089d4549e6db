"""Light load: how long from the start of the enqueue call until a waiting worker has the job.

100 jobs a second are sent at fixed times. Producers and workers run in one process and use one clock. Workers long-poll
and ack each job. One measurement uses one queue (the fetch waits on its shard), another uses queues on different shards
(the gateway waits on all of them).
"""

import asyncio
from contextlib import ExitStack
from time import perf_counter

import msgspec

from benchmarks.figures import Findings, Goal, compared, value
from benchmarks.jobs import Fetched, ack_request, close_all
from benchmarks.load import Address, Connection, LoadFailed, connect_many, on_uvloop, percentiles_ms, post, together
from benchmarks.node import Node
from benchmarks.prototype import Prototype
from benchmarks.queues import queues_over_all
from benchmarks.scenario import NO_PROTOTYPE, PAYLOAD, Advance, Scenario, Setup

JOBS_PER_S = 100
SECONDS, SECONDS_QUICK = 10, 3
PRODUCERS = 4
WORKERS = 4
POLL_S = 2.0
ARRIVE_S_MAX = 10.0  # after the last enqueue


class _Payload(msgspec.Struct):
    number: int


class _Job(Fetched):
    payload: _Payload


_decode_job = msgspec.json.Decoder(_Job).decode


class _Run:
    """One measurement: when each job was sent and when it arrived."""

    def __init__(self, queues: list[str], jobs: int, advance: Advance) -> None:
        self.queues = queues
        self.jobs = jobs
        self.set_out = [0.0] * jobs
        self.arrived: dict[int, float] = {}
        self.enqueue_s: list[float] = []
        self.all_arrived = asyncio.Event()
        self._advance = advance

    async def produce(self, producer: Connection, first: int, started: float) -> None:
        for number in range(first, self.jobs, PRODUCERS):
            await asyncio.sleep(max(started + number / JOBS_PER_S - perf_counter(), 0))
            body = {"queue": self.queues[number % len(self.queues)], "payload": {"number": number, **PAYLOAD}}
            request = post("/api/v1/enqueue", msgspec.json.encode(body))
            self.set_out[number] = perf_counter()
            await producer.require(request)
            self.enqueue_s.append(perf_counter() - self.set_out[number])

    async def work(self, worker: Connection, name: str) -> None:
        body = {"queues": self.queues, "worker_id": name, "timeout": POLL_S}
        request = post("/api/v1/fetch", msgspec.json.encode(body))
        while not self.all_arrived.is_set():
            raw = await worker.require(request)
            arrived = perf_counter()
            if not raw:
                continue  # this poll got no job
            job = _decode_job(raw)
            number = job.payload.number
            if number in self.arrived:
                raise LoadFailed(f"job {job.job_id} was handed out twice")
            self.arrived[number] = arrived
            self._advance(1)
            if len(self.arrived) == self.jobs:
                self.all_arrived.set()
            await worker.require(ack_request(job))

    def latencies_s(self) -> list[float]:
        return [arrived - self.set_out[number] for number, arrived in self.arrived.items()]


def run(setup: Setup) -> Findings:
    jobs = JOBS_PER_S * (SECONDS_QUICK if setup.is_quick else SECONDS)
    with ExitStack() as running:
        node = running.enter_context(Node(setup.folder / "node", *setup.flags))
        over_all = queues_over_all(node.settings.shards, 1, "latency")
        advance = setup.watch.stage(f"{JOBS_PER_S} jobs a second to waiting workers", jobs * 2)
        one = on_uvloop(_measure(node.address, over_all[:1], jobs, advance))
        several = on_uvloop(_measure(node.address, over_all, jobs, advance))
    bare: list[float] = []
    if setup.prototype is not None:
        with ExitStack() as running:
            prototype = Prototype(setup.prototype, setup.folder)
            running.callback(prototype.stop)
            bare = on_uvloop(_calls_alone(prototype.address, over_all[:1], jobs))
    figures, details = [], {}
    for label, measured in (("one queue", one), (f"{len(over_all)} queues on {len(over_all)} shards", several)):
        p50, p90, p99 = percentiles_ms(measured.latencies_s())
        figures.append(value(f"{label}: p50", [p50], "ms", Goal("< 3 ms", most=3.0)))
        figures.append(value(f"{label}: p90", [p90], "ms"))
        figures.append(value(f"{label}: p99", [p99], "ms"))
        details[f"{label}: enqueue call, p50 ms"], _, details[f"{label}: enqueue call, p99 ms"] = percentiles_ms(
            measured.enqueue_s
        )
    if not bare:
        return Findings(figures, details, [NO_PROTOTYPE])
    ours, theirs = percentiles_ms(one.enqueue_s)[0], percentiles_ms(bare)[0]
    figures.append(compared("one queue: enqueue call, p50", [ours], "ms", [theirs], "prototype"))
    details["prototype: enqueue call, p50 ms"] = theirs
    return Findings(figures, details)


async def _calls_alone(address: Address, queues: list[str], jobs: int) -> list[float]:
    """Enqueue calls at the same rate, without workers: the prototype has no fetch over HTTP."""
    measured = _Run(queues, jobs, lambda step: None)
    producers = await connect_many(address, PRODUCERS)
    started = perf_counter()
    await together([measured.produce(producer, first, started) for first, producer in enumerate(producers)])
    await close_all(producers)
    return measured.enqueue_s


async def _measure(address: Address, queues: list[str], jobs: int, advance: Advance) -> _Run:
    measured = _Run(queues, jobs, advance)
    producers, workers = await connect_many(address, PRODUCERS), await connect_many(address, WORKERS)
    # A worker ends when its last poll finds no job; by then the other workers have all jobs.
    working = [
        asyncio.ensure_future(measured.work(worker, f"worker-{number}")) for number, worker in enumerate(workers)
    ]
    await asyncio.sleep(0.2)  # by then all polls wait at the server
    started = perf_counter()
    try:
        await together([measured.produce(producer, first, started) for first, producer in enumerate(producers)])
        waiting = asyncio.ensure_future(measured.all_arrived.wait())
        await asyncio.wait({waiting, *working}, timeout=ARRIVE_S_MAX, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        for worker in working:
            if worker.done():
                worker.result()  # raises its error, if any
        if len(measured.arrived) != jobs:
            raise LoadFailed(f"{len(measured.arrived)} of {jobs} jobs arrived")
        await asyncio.wait_for(asyncio.gather(*working), POLL_S + ARRIVE_S_MAX)
    finally:
        for worker in working:
            worker.cancel()
    await close_all([*producers, *workers])
    return measured


SCENARIO = Scenario("latency", "from the enqueue call to a waiting worker", run)
