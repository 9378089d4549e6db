"""Ten minutes of full load on three nodes: does a busy machine cause needless elections?

Batches of jobs are enqueued and drained through every gateway at once, without a pause. Afterwards the terms of all
shards are compared with those before: each additional term is a needless election. It runs only when named.
"""

import asyncio
import time
from itertools import count

from benchmarks.cluster import Cluster
from benchmarks.figures import Findings, Goal, value
from benchmarks.load import on_uvloop
from benchmarks.queues import queues_over_all
from benchmarks.scenario import Scenario, Setup
from benchmarks.scenarios.drain import in_and_out

SHARDS = 4
LOAD_S, LOAD_S_QUICK = 600.0, 20.0
JOBS_A_TURN = 3_000  # per gateway
SETTLED_S = 8.0  # by then leaders have moved to their preferred nodes


def run(setup: Setup) -> Findings:
    seconds = LOAD_S_QUICK if setup.is_quick else LOAD_S
    advance = setup.watch.stage(f"{seconds:g} s of load on three nodes", seconds)
    with Cluster(setup.folder, SHARDS, *setup.flags) as cluster:
        node = cluster.nodes["node-1"]
        time.sleep(SETTLED_S)
        before = cluster.terms(node)
        started = time.monotonic()
        turns = 0
        for turn in count():
            passed = time.monotonic() - started
            if passed >= seconds:
                break
            on_uvloop(_turn(cluster, turn))
            turns += 1
            advance(time.monotonic() - started - passed)
        seconds = time.monotonic() - started
        after = cluster.terms(node)
    elections = sum(after) - sum(before)
    jobs = turns * JOBS_A_TURN * len(cluster.nodes)
    return Findings(
        [
            value("elections under load", [float(elections)], "", Goal("none", most=1.0)),
            value("jobs through their whole lives", [jobs / seconds], "jobs/s"),
        ],
        {"seconds": seconds, "jobs": float(jobs)},
    )


async def _turn(cluster: Cluster, turn: int) -> None:
    """No job may be claimed twice or refused: then `in_and_out` ends the measurement."""
    async with asyncio.TaskGroup() as group:
        for name, node in cluster.nodes.items():
            queues = queues_over_all(SHARDS, 1, f"calm-{turn}-{name}")
            group.create_task(in_and_out(node, queues, JOBS_A_TURN, lambda jobs: None))


SCENARIO = Scenario("calm", "ten minutes of load on three nodes", run, is_long=True)
