"""An idle server: how fast it starts and stops, and what it costs."""

import time

from benchmarks.figures import Findings, Goal, value
from benchmarks.node import Node
from benchmarks.processes import STOP_S_MAX
from benchmarks.scenario import Scenario, Setup

SECONDS, SECONDS_QUICK = 20, 5
STARTS = 3
SETTLE_S_MAX = 5.0
_MB = 1_000_000


def run(setup: Setup) -> Findings:
    seconds = SECONDS_QUICK if setup.is_quick else SECONDS
    starting = setup.watch.stage("start a server", STARTS)
    starts_s, stops_s = [], []
    for number in range(STARTS - 1):
        with Node(setup.folder / f"start-{number}", *setup.flags) as node:
            starts_s.append(node.start_s)
            starting(1)
            stops_s.append(node.stop())
    with Node(setup.folder / "node", *setup.flags) as node:
        starts_s.append(node.start_s)
        starting(1)
        node.await_settled(SETTLE_S_MAX)
        advance = setup.watch.stage("watch it idle", seconds)
        began, before = time.monotonic(), {reading.pid: reading.cpu_s for reading in node.readings()}
        for _ in range(seconds):
            time.sleep(1)
            advance(1)
        readings, elapsed = node.readings(), time.monotonic() - began
    shares = {reading.name: (reading.cpu_s - before.get(reading.pid, 0.0)) / elapsed * 100 for reading in readings}
    details = {f"{name}: % of a core": share for name, share in shares.items()}
    details |= {f"{reading.name}: RSS, MB": reading.rss_bytes / _MB for reading in readings}
    return Findings(
        [
            value("CPU of all processes", [sum(shares.values())], "% of a core", Goal("< 2 % of a core", most=2.0)),
            value("memory of all processes, RSS", [sum(r.rss_bytes for r in readings) / _MB], "MB"),
            value("the same, shared pages counted once, PSS", [sum(r.pss_bytes for r in readings) / _MB], "MB"),
            value("start until /healthz answers 200", starts_s, "s", Goal("< 3 s", most=3.0)),
            value(f"stop in order (by force after {STOP_S_MAX:g} s)", stops_s, "s"),
        ],
        details,
    )


SCENARIO = Scenario("idle", "a server with nothing to do", run)
