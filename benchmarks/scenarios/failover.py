"""The leader's node is killed: how long until another node accepts writes to its shard?

One shard runs on three nodes, with both cores busy with other work. Each trial kills every process of the leader's node
at once, then sends enqueues through a surviving gateway. The clock stops when the first enqueue sent after the kill is
answered 201. A refused enqueue is retried at once, as a client would. The killed node is restarted and awaited before
the next trial. The scenario also reports how many elections the load alone caused.
"""

import asyncio
import subprocess
import time
from contextlib import ExitStack

from benchmarks.cluster import Cluster
from benchmarks.figures import Findings, Goal, value
from benchmarks.load import LoadFailed, connect, on_uvloop, post
from benchmarks.node import Node
from benchmarks.processes import python
from benchmarks.scenario import Scenario, Setup

TRIALS, TRIALS_QUICK = 20, 3
BUSY = 2  # processes that only burn CPU, one per core
GIVEN_UP_S = 20.0
LEADER_S_MAX = 20.0
REQUEST = post("/api/v1/enqueue", b'{"queue":"failover","payload":{}}')


def run(setup: Setup) -> Findings:
    trials = TRIALS_QUICK if setup.is_quick else TRIALS
    advance = setup.watch.stage("the leader's node is killed", trials)
    gaps: list[float] = []
    with ExitStack() as running:
        cluster = running.enter_context(Cluster(setup.folder, 1, *setup.flags))
        for _ in range(BUSY):
            busy = subprocess.Popen(python("-c", "while True: sum(range(10_000))"))
            running.callback(busy.wait)
            running.callback(busy.kill)
        for _ in range(trials):
            leader = _await_leader(cluster)
            survivor = next(node for name, node in cluster.nodes.items() if name != leader)
            cluster.nodes[leader].kill()
            gaps.append(on_uvloop(_until_taken(survivor)))
            cluster.start(leader)
            cluster.await_healthy()
            advance(1)
    worst = sorted(gaps)[max(0, round(0.99 * len(gaps)) - 1)]
    return Findings(
        [
            value("from the kill to the next write, median", gaps, "s"),
            value("from the kill to the next write, p99", [worst], "s", Goal("≤ 2 s", most=2.0)),
        ],
        {f"trial {number}: s": gap for number, gap in enumerate(gaps, 1)},
    )


def _await_leader(cluster: Cluster) -> str:
    deadline = time.monotonic() + LEADER_S_MAX
    while time.monotonic() < deadline:
        names = {name for node in cluster.nodes.values() for name in cluster.leaders(node)}
        if len(names) == 1 and "" not in names:
            return names.pop()
    raise LoadFailed(f"the nodes did not agree on a leader within {LEADER_S_MAX:g} s")


async def _until_taken(node: Node) -> float:
    started = time.monotonic()
    connection = await connect(node.address)
    try:
        while time.monotonic() < started + GIVEN_UP_S:
            async with asyncio.timeout(GIVEN_UP_S):
                if (await connection.call(REQUEST)).status == 201:
                    return time.monotonic() - started
    finally:
        connection.close()
    raise LoadFailed(f"no write was taken within {GIVEN_UP_S:g} s")


SCENARIO = Scenario("failover", "the leader's node is killed", run)
