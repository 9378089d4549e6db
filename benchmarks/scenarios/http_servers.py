"""The gateway on several HTTP servers, in turn: `POST /enqueue` over 32 connections, and whole lives over the stream
with 1 and with 50 jobs per frame.

One real node has the shards. Each candidate is one more gateway of it, in its own process, so its CPU covers only HTTP
and the gateway's share of a request. Requests per second depend on the whole machine, where shards, mirror and load
generator take most of the time: the CPU separates the candidates better.
"""

import asyncio
import json
import subprocess
import sys
from contextlib import ExitStack
from statistics import median
from time import perf_counter
from typing import NamedTuple

import msgspec
import uvloop

from benchmarks.figures import Figure, Findings, compared, value
from benchmarks.http_servers.candidates import CANDIDATES, FAST_PATH, Candidate
from benchmarks.http_servers.malformed import Score, score
from benchmarks.http_servers.serving import Serving, served
from benchmarks.load import Address, Load, LoadFailed, post, run_apart
from benchmarks.node import Node
from benchmarks.processes import ROOT, python
from benchmarks.queues import queues_over_all
from benchmarks.scenario import PAYLOAD, Scenario, Setup
from benchmarks.scenarios.stream import drive

CONNECTIONS = 32
QUEUES_A_SHARD = 2
PATH = "/api/v1/enqueue"
ENQUEUE = "POST /enqueue"
STREAMS = {"stream, 1 job a frame": (8, 1, 8), "stream, 50 jobs a frame": (8, 50, 2)}  # connections, jobs, frames ahead
SETTLE_S_MAX = 3.0
APART_S = 30.0


class Round(NamedTuple):
    per_s: float
    cpu_us: float  # of the gateway, for one request or operation


Rounds = dict[str, dict[str, list[Round]]]  # shape → candidate → rounds


def run(setup: Setup) -> Findings:
    missing = {candidate.name: candidate.missing() for candidate in CANDIDATES}
    chosen = [candidate for candidate in CANDIDATES if not missing[candidate.name]]
    for_requests = [candidate for candidate in chosen if not candidate.is_for_streams_only]
    rounds: Rounds = {ENQUEUE: {each.name: [] for each in for_requests}}
    rounds |= {shape: {each.name: [] for each in chosen} for shape in STREAMS}
    with ExitStack() as running:
        node = running.enter_context(Node(setup.folder / "node", *setup.flags))
        gateways = {each.name: running.enter_context(served(node, each, number)) for number, each in enumerate(chosen)}
        queues = queues_over_all(node.settings.shards, QUEUES_A_SHARD, "enqueue")
        requests = [post(PATH, msgspec.json.encode({"queue": queue, "payload": PAYLOAD})) for queue in queues]
        for shape, measured in rounds.items():
            names = list(measured)
            advance = setup.watch.stage(shape, setup.rounds * len(names))
            for number in range(setup.rounds):
                # The order rotates, so that no candidate always follows the same other one.
                first = number % len(names)
                for name in names[first:] + names[:first]:
                    node.await_settled(SETTLE_S_MAX)
                    if shape == ENQUEUE:
                        found = _enqueue(name, gateways[name], requests, setup.round_s)
                    else:
                        found = _stream(gateways[name], shape, f"{name}.{number}", setup.round_s)
                    measured[name].append(found)
                    advance(1)
    advance = setup.watch.stage("malformed requests", len(for_requests))
    scores = {}
    for candidate in for_requests:
        scores[candidate.name] = score(candidate.name)
        advance(1)
    return findings(rounds, scores, _notes(missing, chosen))


def _enqueue(name: str, gateway: Serving, requests: list[bytes], seconds: float) -> Round:
    before = gateway.cpu_s()
    tally = run_apart(Load(*gateway.address, requests, CONNECTIONS, seconds))
    if tally.errors:
        raise LoadFailed(f"{name}: {tally.errors} errors in {tally.requests} requests, such as {tally.error_samples}")
    return Round(tally.per_s, (gateway.cpu_s() - before) * 1e6 / tally.answered)


def _stream(gateway: Serving, shape: str, queue: str, seconds: float) -> Round:
    before = gateway.cpu_s()
    operations, took_s = _apart(gateway.address, *STREAMS[shape], queue, seconds)
    return Round(operations / took_s, (gateway.cpu_s() - before) * 1e6 / operations)


def _apart(address: Address, connections: int, jobs: int, ahead: int, queue: str, seconds: float) -> tuple[int, float]:
    """Runs in its own process: the driver must not share an interpreter with the progress bar."""
    what = json.dumps([*address, connections, jobs, ahead, queue, seconds])
    command = python("-m", "benchmarks.scenarios.http_servers", what)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds + APART_S, check=False)
    if done.returncode:
        raise LoadFailed(done.stderr.strip().splitlines()[-1])
    operations, took_s = json.loads(done.stdout)
    return operations, took_s


async def _drive_all(
    host: str, port: int, connections: int, jobs: int, ahead: int, queue: str, seconds: float
) -> tuple[int, float]:
    url = f"ws://{host}:{port}/api/v1/stream"
    started = perf_counter()
    drives = (drive(url, f"{queue}.{n}", jobs, ahead, started + seconds) for n in range(connections))
    return sum(await asyncio.gather(*drives)), perf_counter() - started


def findings(rounds: Rounds, scores: dict[str, Score], notes: list[str]) -> Findings:
    """Compares each candidate with our fast path in the same round."""
    figures: list[Figure] = []
    details: dict[str, float] = {}
    for shape, measured in rounds.items():
        unit = "req/s" if shape == ENQUEUE else "ops/s"
        for name, found in measured.items():
            rates, cpus = [each.per_s for each in found], [each.cpu_us for each in found]
            if name == FAST_PATH:
                figures += [value(f"{shape}: {name}", rates, unit), value(f"{shape}: {name}, CPU", cpus, "µs")]
            else:
                ours = measured[FAST_PATH]
                figures.append(compared(f"{shape}: {name}", rates, unit, [each.per_s for each in ours], FAST_PATH))
                figures.append(compared(f"{shape}: {name}, CPU", cpus, "µs", [each.cpu_us for each in ours], FAST_PATH))
            details[f"{shape}: {name}: {unit}"] = median(rates)
            details[f"{shape}: {name}: gateway CPU µs"] = median(cpus)
    for name, found_score in scores.items():
        details[f"malformed: {name}: cases"] = found_score.cases
        details[f"malformed: {name}: as written"] = found_score.as_written
        details[f"malformed: {name}: acceptable"] = found_score.acceptable
        notes = [
            *notes,
            f"{name}: of {found_score.cases} malformed requests {found_score.as_written} are answered as written,"
            f" {found_score.acceptable} acceptably (python -m benchmarks.http_servers.malformed {name})",
        ]
    return Findings(figures, details, notes)


def _notes(missing: dict[str, list[str]], chosen: list[Candidate]) -> list[str]:
    notes = [f"{each.name}: {each.what}" for each in chosen]
    notes += [f"{name} is left out: pip install {' '.join(packages)}" for name, packages in missing.items() if packages]
    return notes


SCENARIO = Scenario("http_servers", "the gateway behind several servers of HTTP", run, is_long=True)

if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(_drive_all(*json.loads(sys.argv[1])))))
