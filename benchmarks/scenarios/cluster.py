"""Three nodes against one, on the same machine: batches of jobs are enqueued and drained through one gateway.

In the cluster every entry is written and synced three times, by more processes on the same cores.

Throughput needs many connections. With few connections, each of which waits for its answer, the ratio reflects the
latencies; it is shown as a separate figure.
"""

from contextlib import ExitStack
from typing import NamedTuple

from benchmarks.cluster import Cluster
from benchmarks.figures import Figure, Findings, Goal, compared, value
from benchmarks.load import on_uvloop
from benchmarks.node import Node
from benchmarks.queues import queues_over_all
from benchmarks.scenario import Scenario, Setup
from benchmarks.scenarios.drain import OPERATIONS_A_JOB, Round, in_and_out

JOBS, JOBS_QUICK = 40_000, 5_000
SHARDS = 4
SETTLE_S = 10.0
OF_ONE = Goal("≥ 0.35 of one node", least=0.35)


class Crowd(NamedTuple):
    producers: int
    workers_a_shard: int
    goal: Goal | None

    @property
    def title(self) -> str:
        return f"{self.producers} producers, then {self.workers_a_shard * SHARDS} workers"


CROWDS = (Crowd(16, 8, OF_ONE), Crowd(4, 2, None))


def run(setup: Setup) -> Findings:
    jobs = JOBS_QUICK if setup.is_quick else JOBS
    ones: dict[Crowd, list[Round]] = {crowd: [] for crowd in CROWDS}
    threes: dict[Crowd, list[Round]] = {crowd: [] for crowd in CROWDS}
    advance = setup.watch.stage(
        f"{jobs} jobs in and out, on one node and on three", setup.rounds * jobs * 4 * len(CROWDS)
    )
    with ExitStack() as running:
        alone = running.enter_context(Node(setup.folder / "alone", "--shards", str(SHARDS), *setup.flags))
        cluster = running.enter_context(Cluster(setup.folder, SHARDS, *setup.flags))
        gateway = cluster.nodes["node-1"]
        for number in range(setup.rounds):
            for crowd in CROWDS:
                for node, rounds in ((alone, ones), (gateway, threes)):
                    queues = queues_over_all(SHARDS, crowd.workers_a_shard, f"cluster{number}.{crowd.producers}")
                    rounds[crowd].append(on_uvloop(in_and_out(node, queues, jobs, advance, crowd.producers)))
                    for each in (alone, *cluster.nodes.values()):
                        each.await_settled(SETTLE_S)
    figures: list[Figure] = []
    for crowd in CROWDS:
        one, three = _rates(jobs, ones[crowd]), _rates(jobs, threes[crowd])
        figures.append(compared(crowd.title, three, "ops/s", one, "one node", crowd.goal))
        figures.append(value(f"{crowd.title}: one node", one, "ops/s"))
    drained = {
        f"{crowd.title}: drained by three nodes, jobs/s": jobs / min(each.drain_s for each in threes[crowd])
        for crowd in CROWDS
    }
    return Findings(figures, drained)


def _rates(jobs: int, rounds: list[Round]) -> list[float]:
    return [jobs * OPERATIONS_A_JOB / (each.enqueue_s + each.drain_s) for each in rounds]


SCENARIO = Scenario("cluster", "three nodes on one machine", run)
