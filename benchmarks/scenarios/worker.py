"""Our Python worker: one process with no-op jobs, beside a server on the same machine.

Drain: a queue is filled in batches before the worker starts; jobs per second from the first to the last. Latency: a
hundred jobs a second to a waiting worker, each enqueued by a request of its own, from the time it is due to be sent to
the first line of its handler. `rivals` measures the same worker beside others.
"""

from itertools import count

from benchmarks.figures import Findings, Goal, value
from benchmarks.load import LoadFailed
from benchmarks.rivals.register import OUR_WORKER
from benchmarks.rivals.rival import Ring
from benchmarks.rivals.servers import Missing
from benchmarks.scenario import Scenario, Setup
from benchmarks.scenarios.rivals import LATENCY_JOBS, LATENCY_JOBS_QUICK, LATENCY_RATE, drained, latency_p50_ms
from corvo.client.bodies import EnqueueBatchBody, EnqueueBody
from corvo.client.http import Client

JOBS, JOBS_QUICK = 50_000, 10_000
BATCH = 1_000
PADDING = "x" * 80
DRAIN_LEAST = 10_000.0
LATENCY_MOST_MS = 2.0


def run(setup: Setup) -> Findings:
    rounds = 1 if setup.is_quick else setup.rounds
    jobs = JOBS_QUICK if setup.is_quick else JOBS
    paced = LATENCY_JOBS_QUICK if setup.is_quick else LATENCY_JOBS
    try:
        python, _ = OUR_WORKER.find(setup.rivals)
    except Missing as missing:
        raise LoadFailed(f"{missing} is missing") from None
    rates: list[float] = []
    latencies: list[float] = []
    fresh = (setup.folder / f"worker-{number}" for number in count())
    advance = setup.watch.stage("one worker process", 2 * rounds)
    for _ in range(rounds):
        with Ring(OUR_WORKER, python, setup.rivals.node_modules, next(fresh), setup.rivals_durable) as ring:
            fill(ring.url, jobs)
            rates.append(drained(ring, jobs))
        advance(1)
        with Ring(OUR_WORKER, python, setup.rivals.node_modules, next(fresh), setup.rivals_durable) as ring:
            latencies.append(latency_p50_ms(ring, paced))
        advance(1)
    goal = Goal(f"≥ {DRAIN_LEAST:,.0f} jobs/s", least=DRAIN_LEAST)
    return Findings(
        [
            value("drain, no-op jobs", rates, "jobs/s", goal),
            value(f"latency p50 at {LATENCY_RATE} jobs/s", latencies, "ms", Goal("< 2 ms", most=LATENCY_MOST_MS)),
        ],
        {},
        [OUR_WORKER.says(setup.rivals_durable)],
    )


def fill(url: str, jobs: int) -> None:
    with Client(url, deadline_s=60.0) as client:
        for first in range(0, jobs, BATCH):
            numbers = range(first, min(first + BATCH, jobs))
            bodies = [
                EnqueueBody(queue="rivals.arrive", payload={"number": number, "padding": PADDING}) for number in numbers
            ]
            client.enqueue_batch(EnqueueBatchBody(bodies))


SCENARIO = Scenario("worker", "our Python worker: no-op jobs and latency", run, is_long=True)
