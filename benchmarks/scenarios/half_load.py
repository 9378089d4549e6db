"""How long a job waits for its worker at half of the server's maximum rate, and under a light load.

The maximum is measured first, with the same load as the latency: separate producers and workers, eight streams each,
one job per frame, eight queues, at a requested rate that no server reaches. A job is timed from when it was due
to be sent. It runs only when named.
"""

from benchmarks.bench_tool import bench
from benchmarks.figures import Findings, Goal, value
from benchmarks.node import Node
from benchmarks.scenario import Scenario, Setup
from corvo.client.bench.tally import Percentiles

LIGHT_PER_S = 100
OUT_OF_REACH_PER_S = 50_000.0
JOBS_AT_MOST = 5_000  # per second, about what a server reaches
CONNECTIONS = 8
SETTLE_S = 5.0


def run(setup: Setup) -> Findings:
    most: list[float] = []
    light: list[Percentiles] = []
    half: list[Percentiles] = []
    advance = setup.watch.stage("the maximum, half of it, and a light load", setup.rounds * 3)
    seconds = setup.round_s
    with Node(setup.folder / "node", *setup.flags) as node:
        common = ("--connections", str(CONNECTIONS))

        def latency(rate: float) -> Percentiles:
            flags = ("--mode", "latency", "--rate", f"{rate:.1f}", "--seconds", str(seconds))
            found = bench(node.address, seconds, *common, *flags).latency_ms
            node.await_settled(SETTLE_S)
            advance(1)
            assert found is not None, "jobs were sent"
            return found

        for _ in range(setup.rounds):
            jobs = str(int(JOBS_AT_MOST * seconds))
            flags = ("--mode", "latency", "--rate", str(OUT_OF_REACH_PER_S), "--jobs", jobs)
            most.append(bench(node.address, seconds, *common, *flags).rates_per_s["jobs completed"])
            node.await_settled(SETTLE_S)
            advance(1)
            light.append(latency(LIGHT_PER_S))
            half.append(latency(most[-1] / 2))
    return Findings(
        [
            value("maximum rate, one job per frame", most, "jobs/s"),
            value(f"{LIGHT_PER_S} jobs/s: p50", [each.p50 for each in light], "ms"),
            value(f"{LIGHT_PER_S} jobs/s: p99", [each.p99 for each in light], "ms", Goal("< 10 ms", most=10.0)),
            value("half of the maximum rate: p50", [each.p50 for each in half], "ms"),
            value("half of the maximum rate: p99", [each.p99 for each in half], "ms", Goal("< 30 ms", most=30.0)),
        ],
        {"half of the maximum rate: longest, ms": max(each.max for each in half)},
    )


SCENARIO = Scenario("half_load", "latency at half of the maximum rate", run, is_long=True)
