"""Corvo, the prototype and other job servers, one after the other on one machine, with jobs of about a hundred bytes.

Each has three figures. Whole lives: a producer and a worker run at the same time, each in its own process; jobs that
arrived per second. Drain: a worker empties a queue that was filled before it started, from its first job to its last.
Latency: a hundred jobs a second to a waiting worker, from the time a job is due to be sent to its first line.

The others are used as their documentation shows, job by job, with their default durability (`--rivals-durable` asks for
the strongest). Corvo is shown in several shapes, because it is built for batched frames; fsync is on. A server that is
not installed, or fails, is named in a note. The scenario runs only when named.
"""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.bench_tool import bench
from benchmarks.figures import Figure, Findings, Goal, compared, value
from benchmarks.load import LoadFailed, percentiles_ms
from benchmarks.node import Node
from benchmarks.processes import NotReady
from benchmarks.prototype import Prototype
from benchmarks.rivals.register import OUR_WORKER, RIVALS
from benchmarks.rivals.rival import Ring, Rival
from benchmarks.rivals.servers import Missing
from benchmarks.scenario import NO_PROTOTYPE, Advance, Scenario, Setup
from benchmarks.scenarios.stream import OPERATIONS_A_JOB, apart

LATENCY_RATE = 100
LATENCY_JOBS, LATENCY_JOBS_QUICK = 500, 100
DRAIN_JOBS_MIN, DRAIN_JOBS_MAX = 100, 100_000
SETTLE_S = 5.0
JOB_BY_JOB = "Corvo, stream, 1 a frame"
# Name → protocol, jobs per frame or request, connections.
OURS = {
    "Corvo, stream, 50 a frame": ("stream", 50, 8),
    JOB_BY_JOB: ("stream", 1, 8),
    "Corvo, HTTP, 1 a request": ("http", 1, 8),
}
ABOUT_OURS = (
    "Corvo: 8 connections of one client process, each a producer and a worker, with 2 frames of 50 or 8 of 1 under way;"
    " with fsync on, a job that was acknowledged is on disk"
)


class Three(NamedTuple):
    """The three figures of one round."""

    lives_per_s: float
    drained_per_s: float
    latency_p50_ms: float


def run(setup: Setup) -> Findings:
    rounds = 1 if setup.is_quick else min(setup.rounds, 3)
    found: dict[str, list[Three]] = {}
    notes: list[str] = [ABOUT_OURS]
    advance = setup.watch.stage("ours and others", rounds * (len(OURS) + 1 + len(RIVALS)) * 3)
    fresh = (setup.folder / f"ring-{number}" for number in count())
    for name, shape in OURS.items():
        with Node(next(fresh), *setup.flags) as node:
            found[name] = [_ours(node, shape, setup, advance) for _ in range(rounds)]
    prototype = _prototype(setup, rounds)
    for rival in (OUR_WORKER, *RIVALS):
        try:
            python, version = rival.find(setup.rivals)
        except Missing as missing:
            notes.append(f"{rival.name}: not measured, {missing} is missing")
            continue
        make_ring = partial(_ring, rival, python, setup, fresh)
        try:
            found[rival.name] = [_theirs(make_ring, setup, advance) for _ in range(rounds)]
        except (LoadFailed, NotReady, subprocess.SubprocessError) as error:
            notes.append(f"{rival.name} ({rival.package} {version}): not measured, it failed: {error}")
            continue
        notes.append(f"{rival.name} ({rival.package} {version}): {rival.says(setup.rivals_durable)}")
    figures = [figure for name, threes in found.items() for figure in _figures(name, threes)]
    if prototype:
        figures.append(value("Prototype, stream, 50 a frame: whole lives", prototype, "jobs/s"))
    else:
        notes.append(NO_PROTOTYPE)
    return Findings([*figures, *_ahead(found)], {}, notes)


def _ring(rival: Rival, python: Path, setup: Setup, fresh: Iterator[Path]) -> Ring:
    return Ring(rival, python, setup.rivals.node_modules, next(fresh), setup.rivals_durable)


def _ours(node: Node, shape: tuple[str, int, int], setup: Setup, advance: Advance) -> Three:
    protocol, batch, connections = shape
    common = ("--protocol", protocol, "--connections", str(connections))
    load = (*common, "--batch", str(batch))
    lives = bench(node.address, setup.round_s, *load, "--seconds", str(setup.round_s)).rates_per_s["jobs completed"]
    advance(1)
    node.await_settled(SETTLE_S)
    jobs = _drain_jobs(lives, setup.round_s)
    drained = bench(node.address, 0, *load, "--mode", "burst", "--jobs", str(jobs)).rates_per_s["jobs drained"]
    advance(1)
    node.await_settled(SETTLE_S)
    paced = ("--mode", "latency", "--rate", str(LATENCY_RATE), "--jobs", str(_latency_jobs(setup)))
    latency = bench(node.address, 0, *common, *paced, "--queues", "1").latency_ms
    advance(1)
    node.await_settled(SETTLE_S)
    return Three(lives, drained, latency.p50 if latency else 0.0)


def _prototype(setup: Setup, rounds: int) -> list[float]:
    if setup.prototype is None:
        return []
    with ExitStack() as running:
        prototype = Prototype(setup.prototype, setup.folder)
        running.callback(prototype.stop)
        return [apart(prototype.address, "50 jobs a frame", setup.round_s) / OPERATIONS_A_JOB for _ in range(rounds)]


def _theirs(rings: Callable[[], Ring], setup: Setup, advance: Advance) -> Three:
    with rings() as ring:
        lives = _lives(ring, setup.round_s)
        advance(1)
    with rings() as ring:
        drained = _filled_and_drained(ring, _drain_jobs(lives, setup.round_s))
        advance(1)
    with rings() as ring:
        latency = latency_p50_ms(ring, _latency_jobs(setup))
        advance(1)
    return Three(lives, drained, latency)


def _lives(ring: Ring, seconds: float) -> float:
    worker = ring.work()
    ring.produce(0, 0, count=1)
    ring.await_arrival(0, 1, worker)  # the worker is up
    sent = ring.produce(1, seconds, seconds=seconds)
    board = ring.board
    began = board.sent_at(1)
    arrived = sum(0 < board.arrived_at(number) <= began + seconds for number in range(1, 1 + sent))
    return arrived / seconds


def _filled_and_drained(ring: Ring, jobs: int) -> float:
    ring.produce(0, 0, count=jobs)
    return drained(ring, jobs)


def drained(ring: Ring, jobs: int) -> float:
    """Starts a worker for jobs that are there. Jobs per second, from the first to the last."""
    worker = ring.work()
    ring.await_arrival(0, jobs, worker)
    moments = [ring.board.arrived_at(number) for number in range(jobs)]
    return (jobs - 1) / max(max(moments) - min(moments), 1e-6)


def latency_p50_ms(ring: Ring, jobs: int) -> float:
    worker = ring.work()
    ring.produce(0, 0, count=1)
    ring.await_arrival(0, 1, worker)
    ring.produce(1, jobs / LATENCY_RATE, count=jobs, rate=LATENCY_RATE)
    ring.await_arrival(1, jobs, worker)
    board = ring.board
    p50, _, _ = percentiles_ms(board.arrived_at(number) - board.sent_at(number) for number in range(1, 1 + jobs))
    return p50


def _drain_jobs(lives_per_s: float, seconds: float) -> int:
    """About as many jobs as it can run within a round."""
    return int(min(max(lives_per_s * seconds, DRAIN_JOBS_MIN), DRAIN_JOBS_MAX))


def _latency_jobs(setup: Setup) -> int:
    return LATENCY_JOBS_QUICK if setup.is_quick else LATENCY_JOBS


def _figures(name: str, threes: list[Three]) -> list[Figure]:
    return [
        value(f"{name}: whole lives", [each.lives_per_s for each in threes], "jobs/s"),
        value(f"{name}: drain", [each.drained_per_s for each in threes], "jobs/s"),
        value(f"{name}: latency p50 at {LATENCY_RATE} jobs/s", [each.latency_p50_ms for each in threes], "ms"),
    ]


def _ahead(found: dict[str, list[Three]]) -> list[Figure]:
    """Compares Corvo's fastest shape, and its job-by-job shape, with the fastest rival; all rivals run job by job."""
    theirs = {name: threes for name, threes in found.items() if name not in (*OURS, OUR_WORKER.name)}
    if not theirs:
        return []
    figures = []
    for label, field in (("whole lives", "lives_per_s"), ("drain", "drained_per_s")):
        ours = max((_rates(found[name], field) for name in OURS), key=median)
        name = max(theirs, key=lambda each: median(_rates(theirs[each], field)))
        best = _rates(theirs[name], field)
        goal = Goal("ahead of all others", least=1.0)
        figures.append(compared(f"{label}, our fastest", ours, "jobs/s", best, name, goal))
        if OUR_WORKER.name in found:
            mine = _rates(found[OUR_WORKER.name], field)
            figures.append(compared(f"{label}, Python worker", mine, "jobs/s", best, name))
        figures.append(compared(f"{label}, job by job", _rates(found[JOB_BY_JOB], field), "jobs/s", best, name))
    return figures


def _rates(threes: list[Three], field: str) -> list[float]:
    return [getattr(each, field) for each in threes]


SCENARIO = Scenario("rivals", "ours, the prototype and other job servers", run, is_long=True)
