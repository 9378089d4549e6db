"""Three nodes against one, on the same machine: jobs in by batches and out again, through one gateway.

Every entry is then written and synced three times by six times as many processes, on cores that have become no more.
"""

from contextlib import ExitStack

from benchmarks.cluster import Cluster
from benchmarks.figures import Findings, Goal, compared, value
from benchmarks.load import on_uvloop
from benchmarks.node import Node
from benchmarks.queues import queues_over_all
from benchmarks.scenario import Scenario, Setup
from benchmarks.scenarios.drain import JOBS, JOBS_QUICK, OPERATIONS_A_JOB, QUEUES_A_SHARD, Round, in_and_out

SHARDS = 4
SETTLE_S = 10.0


def run(setup: Setup) -> Findings:
    jobs = JOBS_QUICK if setup.is_quick else JOBS
    ones: list[Round] = []
    threes: list[Round] = []
    advance = setup.watch.stage(f"{jobs} jobs in and out, on one node and on three", setup.rounds * jobs * 4)
    with ExitStack() as running:
        alone = running.enter_context(Node(setup.folder / "alone", "--shards", str(SHARDS), *setup.flags))
        cluster = running.enter_context(Cluster(setup.folder, SHARDS, *setup.flags))
        gateway = cluster.nodes["node-1"]
        for number in range(setup.rounds):
            for node, rounds in ((alone, ones), (gateway, threes)):
                queues = queues_over_all(SHARDS, QUEUES_A_SHARD, f"cluster{number}")
                rounds.append(on_uvloop(in_and_out(node, queues, jobs, advance)))
                for each in (alone, *cluster.nodes.values()):
                    each.await_settled(SETTLE_S)
    one, three = _rates(jobs, ones), _rates(jobs, threes)
    of_one = Goal("≥ 0.35 of one node", least=0.35)
    return Findings(
        [
            compared("operations over a job's whole life", three, "ops/s", one, "one node", of_one),
            value("one node", one, "ops/s"),
        ],
        {"three nodes: drained jobs/s": jobs / min(each.drain_s for each in threes)},
    )


def _rates(jobs: int, rounds: list[Round]) -> list[float]:
    return [jobs * OPERATIONS_A_JOB / (each.enqueue_s + each.drain_s) for each in rounds]


SCENARIO = Scenario("cluster", "three nodes on one machine", run)
