"""One job per request: POST /api/v1/enqueue over 32 connections.

Each round also runs the same server program with an empty handler (how much of the server's speed our code leaves) and
the prototype's gateway (how much the features cost).
"""

import asyncio
from contextlib import ExitStack
from itertools import cycle
from statistics import median

import msgspec

from benchmarks.ceiling import Ceiling
from benchmarks.figures import Findings, Goal, compared, value
from benchmarks.load import Address, Load, LoadFailed, Tally, connect, on_uvloop, post, run_apart
from benchmarks.node import Node
from benchmarks.processes import Program
from benchmarks.prototype import Prototype
from benchmarks.queues import queues_over_all
from benchmarks.scenario import NO_PROTOTYPE, PAYLOAD, Scenario, Setup

CONNECTIONS = 32
QUEUES_A_SHARD = 2
PATH = "/api/v1/enqueue"

OURS, EMPTY, THEIRS = "corvo", "empty handler", "prototype"


class _Round(msgspec.Struct):
    tally: Tally
    cpu_us: float  # of all processes of the server, per request
    gateway_cpu_us: float  # of the one process that speaks HTTP


def run(setup: Setup) -> Findings:
    with ExitStack() as running:
        node = running.enter_context(Node(setup.folder / "node", *setup.flags))
        requests = enqueues(node.settings.shards)
        servers: dict[str, tuple[Address, Program]] = {OURS: (node.address, node.program)}
        empty = Ceiling(setup.folder, _answer_bytes(node.address, requests[0]))
        running.callback(empty.stop)
        servers[EMPTY] = (empty.address, empty.program)
        if setup.prototype is not None:
            prototype = Prototype(setup.prototype, setup.folder)
            running.callback(prototype.stop)
            servers[THEIRS] = (prototype.address, prototype.program)
        rounds: dict[str, list[_Round]] = {name: [] for name in servers}
        advance = setup.watch.stage(f"POST {PATH}, {CONNECTIONS} connections", setup.rounds * len(servers))
        # The order rotates, so that no server is always the first after a pause.
        order = cycle(list(servers))
        for _ in range(setup.rounds):
            for _ in servers:
                name = next(order)
                rounds[name].append(_measure(name, *servers[name], requests, setup.round_s))
                advance(1)
            next(order)
    return _findings(rounds)


def enqueues(shard_count: int) -> list[bytes]:
    queues = queues_over_all(shard_count, QUEUES_A_SHARD, "enqueue")
    return [post(PATH, msgspec.json.encode({"queue": queue, "payload": PAYLOAD})) for queue in queues]


def _answer_bytes(address: Address, request: bytes) -> int:
    async def ask() -> int:
        connection = await connect(address)
        length = len(await connection.require(request))
        connection.close()
        await asyncio.sleep(0)
        return length

    return on_uvloop(ask())


def _measure(name: str, address: Address, program: Program, requests: list[bytes], seconds: float) -> _Round:
    before = {reading.pid: reading for reading in program.readings()}
    tally = run_apart(Load(*address, requests, CONNECTIONS, seconds))
    if tally.errors:
        raise LoadFailed(f"{name}: {tally.errors} errors in {tally.requests} requests, such as {tally.error_samples}")
    spent = [reading.cpu_s - before[reading.pid].cpu_s for reading in program.readings() if reading.pid in before]
    # The process that speaks HTTP is the busiest one of each of these servers.
    per_request_us = 1e6 / tally.answered
    return _Round(tally, sum(spent) * per_request_us, max(spent) * per_request_us)


def _findings(rounds: dict[str, list[_Round]]) -> Findings:
    rates = {name: [each.tally.per_s for each in measured] for name, measured in rounds.items()}
    gateway_us = {name: [each.gateway_cpu_us for each in measured] for name, measured in rounds.items()}
    of_empty = Goal("≥ 0.8 of the empty handler", least=0.8)
    figures = [
        compared("requests a second", rates[OURS], "req/s", rates[EMPTY], EMPTY, of_empty),
        compared("CPU of the gateway a request", gateway_us[OURS], "µs", gateway_us[EMPTY], EMPTY),
    ]
    if THEIRS in rounds:
        goal = Goal("≥ 0.5 of the prototype", least=0.5)
        figures.append(compared("requests a second", rates[OURS], "req/s", rates[THEIRS], THEIRS, goal))
    figures.append(value("latency p50 under full load", [each.tally.p50_ms for each in rounds[OURS]], "ms"))
    details = {}
    for name, measured in rounds.items():
        details[f"{name}: requests/s"] = median(rates[name])
        details[f"{name}: p99 ms"] = median(each.tally.p99_ms for each in measured)
        details[f"{name}: CPU µs a request, HTTP process"] = median(gateway_us[name])
        details[f"{name}: CPU µs a request, all processes"] = median(each.cpu_us for each in measured)
        details[f"{name}: load generator's share of a core"] = median(
            each.tally.client_cpu_s / each.tally.seconds for each in measured
        )
    return Findings(figures, details, [] if THEIRS in rounds else [NO_PROTOTYPE])


SCENARIO = Scenario("enqueue_http", "one job a request over HTTP", run)
