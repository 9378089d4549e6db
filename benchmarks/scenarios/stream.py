"""The stream: whole lives (enqueue, claim, ack) in WebSocket frames, Corvo's and the prototype's in turn.

Each connection has its own queue. A frame enqueues some jobs, acks those of the last answer and fetches as many;
several frames are open at once. Each enqueue, each claimed job and each ack is one operation.
"""

import asyncio
import json
import subprocess
import sys
from contextlib import ExitStack
from time import perf_counter
from typing import Any

import msgspec
import websockets

from benchmarks.figures import Findings, Goal, compared, value
from benchmarks.load import Address, LoadFailed
from benchmarks.node import Node
from benchmarks.processes import ROOT, python
from benchmarks.prototype import Prototype
from benchmarks.scenario import NO_PROTOTYPE, PAYLOAD, Scenario, Setup

SHAPES = {"50 jobs a frame": (8, 50, 2, 0.5), "10 jobs a frame": (8, 10, 2, 0.5), "1 job a frame": (8, 1, 8, 0.6)}
APART_S = 30.0
OPERATIONS_A_JOB = 3

_to_json = msgspec.json.Encoder().encode
_from_json = msgspec.json.Decoder().decode


def run(setup: Setup) -> Findings:
    ours: dict[str, list[float]] = {shape: [] for shape in SHAPES}
    theirs: dict[str, list[float]] = {shape: [] for shape in SHAPES}
    with ExitStack() as running:
        node = running.enter_context(Node(setup.folder / "node", *setup.flags))
        prototype = None
        if setup.prototype is not None:
            prototype = Prototype(setup.prototype, setup.folder)
            running.callback(prototype.stop)
        advance = setup.watch.stage("whole lives over the stream", setup.rounds * len(SHAPES))
        for _ in range(setup.rounds):
            for shape in SHAPES:
                ours[shape].append(apart(node.address, shape, setup.round_s))
                node.await_settled(5.0)
                if prototype is not None:
                    theirs[shape].append(apart(prototype.address, shape, setup.round_s))
                advance(1)
    figures = []
    for shape, (*_, least) in SHAPES.items():
        if prototype is None:
            figures.append(value(shape, ours[shape], "ops/s"))
        else:
            goal = Goal(f"≥ {least} of the prototype", least=least)
            figures.append(compared(shape, ours[shape], "ops/s", theirs[shape], "prototype", goal))
    return Findings(figures, {}, [] if prototype is not None else [NO_PROTOTYPE])


def apart(address: Address, shape: str, seconds: float, key: str = "") -> float:
    """Runs in its own process: the driver must not share an interpreter with the progress bar."""
    command = python("-m", "benchmarks.scenarios.stream", json.dumps([*address, *SHAPES[shape][:3], seconds, key]))
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds + APART_S, check=False)
    if done.returncode:
        raise LoadFailed(done.stderr.strip().splitlines()[-1])
    return float(done.stdout)


async def drive(url: str, queue: str, jobs: int, ahead: int, end: float, key: str) -> int:
    operations = 0
    headers = {"x-api-key": key} if key else {}
    async with websockets.connect(url, compression=None, max_size=None, additional_headers=headers) as socket:
        number = 0

        async def send(acks: list[dict[str, Any]]) -> None:
            nonlocal number
            number += 1
            fetch = {"queues": [queue], "worker_id": "w", "count": jobs}
            enqueue = [{"queue": queue, "payload": PAYLOAD}] * jobs
            await socket.send(_to_json({"id": number, "enqueue": enqueue, "ack": acks, "fetch": fetch}))

        for _ in range(ahead):
            await send([])
        while perf_counter() < end:
            reply = _from_json(await socket.recv())
            if "enqueued" not in reply:
                raise LoadFailed(f"{queue}: {reply}")
            operations += len(reply["enqueued"]) + len(reply["acked"]) + len(reply["jobs"])
            await send([{"job_id": job["job_id"], "lease_token": job["lease_token"]} for job in reply["jobs"]])
    return operations


async def _measure(host: str, port: int, connections: int, jobs: int, ahead: int, seconds: float, key: str) -> float:
    url = f"ws://{host}:{port}/api/v1/stream"
    started = perf_counter()
    counts = await asyncio.gather(
        *(drive(url, f"stream.{n}", jobs, ahead, started + seconds, key) for n in range(connections))
    )
    return sum(counts) / (perf_counter() - started)


SCENARIO = Scenario("stream", "whole lives over one WebSocket each", run)

if __name__ == "__main__":
    print(asyncio.run(_measure(*json.loads(sys.argv[1]))))
