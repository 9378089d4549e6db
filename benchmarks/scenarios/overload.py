"""More load than a server can handle, for long enough to see whether its memory grows.

Many streams send enqueues as fast as the sockets allow, without waiting for answers; some never read their answers. The
server must refuse excess requests (`OVERLOADED`, with a retry time), stop reading from clients that do not read, and
not grow. One polite client measures its latency during the flood.
"""

import asyncio
import base64
import json
import os
import subprocess
import sys
from time import monotonic, perf_counter, sleep
from typing import Any

import msgspec
import websockets

from benchmarks.figures import Findings, Goal, value
from benchmarks.load import Address, LoadFailed, percentiles_ms
from benchmarks.node import Node
from benchmarks.processes import ROOT, Reading, python
from benchmarks.scenario import PAYLOAD, Scenario, Setup

SECONDS, SECONDS_QUICK = 300, 15
STREAMS, DEAF_STREAMS, JOBS_A_FRAME, FRAMES_A_WRITE = 24, 8, 10, 32
SETTLED_SHARE = 0.3  # of the time, in which caches fill up
APART_S = 60.0
GROWTH_MB_MAX = 150.0
_MB = 1_000_000


class Flood(msgspec.Struct):
    seconds: float
    frames_sent: int
    frames_refused: int
    frames_done: int
    polite_p50_ms: float
    polite_p99_ms: float
    polite_refused: int


def run(setup: Setup) -> Findings:
    seconds = SECONDS_QUICK if setup.is_quick else SECONDS
    with Node(setup.folder / "node", *setup.flags) as node:
        command = python("-m", "benchmarks.scenarios.overload", json.dumps([*node.address, seconds]))
        advance = setup.watch.stage(f"flood a server for {seconds} s", seconds)
        driver = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        sizes: list[tuple[float, list[Reading]]] = []
        started = monotonic()
        while driver.poll() is None and monotonic() < started + seconds + APART_S:
            sleep(1)
            sizes.append((monotonic() - started, node.readings()))
            advance(1)
        driver.kill()
        out, err = driver.communicate()
        if driver.returncode:
            raise LoadFailed(err.decode().strip().splitlines()[-1] if err else "the flood broke off")
        flood = msgspec.json.decode(out, type=Flood)
    settled = [sum(r.rss_bytes for r in readings) / _MB for at, readings in sizes if at > seconds * SETTLED_SHARE]
    grown = max(settled) - settled[0]
    offered = flood.frames_sent / max(flood.frames_done, 1)
    details = {f"{reading.name}: RSS at the end, MB": reading.rss_bytes / _MB for reading in sizes[-1][1]}
    details |= {
        "jobs/s that were taken": flood.frames_done * JOBS_A_FRAME / flood.seconds,
        "frames refused": flood.frames_refused,
        "polite client: refused": flood.polite_refused,
    }
    return Findings(
        [
            value("frames offered for each that was done", [offered], ""),
            value("memory of all processes at its largest, RSS", [max(settled)], "MB"),
            value(
                "growth after the first third",
                [grown],
                "MB",
                Goal(f"< {GROWTH_MB_MAX:g} MB", most=GROWTH_MB_MAX),
            ),
            value("polite client beside it, p50", [flood.polite_p50_ms], "ms"),
            value("polite client beside it, p99", [flood.polite_p99_ms], "ms"),
        ],
        details,
    )


class _Counts:
    def __init__(self) -> None:
        self.sent = self.refused = self.answered = 0


async def _flood(address: Address, number: int, end: float, counts: _Counts, is_deaf: bool) -> None:
    reader, writer = await asyncio.open_connection(*address)
    key = base64.b64encode(os.urandom(16))
    writer.write(
        b"GET /api/v1/stream HTTP/1.1\r\nhost: flood\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
        b"sec-websocket-version: 13\r\nsec-websocket-key: %b\r\n\r\n" % key
    )
    await reader.readuntil(b"\r\n\r\n")
    enqueue = [{"queue": f"flood.{number}", "payload": PAYLOAD}] * JOBS_A_FRAME
    body = msgspec.json.encode({"id": 1, "enqueue": enqueue})
    frame = b"\x82\xfe" + len(body).to_bytes(2) + b"\0\0\0\0" + body  # a mask of zeros changes nothing
    burst = frame * FRAMES_A_WRITE

    async def listen() -> None:
        rest = b""
        while chunk := await reader.read(1 << 16):
            data = rest + chunk
            counts.refused += data.count(b'"OVERLOADED"')
            counts.answered += data.count(b'{"id":1,')
            rest = data[-11:] if b"{" in data[-11:] or b'"' in data[-11:] else b""
            counts.refused -= rest.count(b'"OVERLOADED"')
            counts.answered -= rest.count(b'{"id":1,')

    listening = None if is_deaf else asyncio.create_task(listen())
    try:
        async with asyncio.timeout_at(asyncio.get_running_loop().time() + end - monotonic()):
            while True:
                writer.write(burst)
                await writer.drain()
                counts.sent += FRAMES_A_WRITE
                await asyncio.sleep(0)
    except (TimeoutError, ConnectionError):
        pass
    if listening is not None:
        listening.cancel()
    writer.transport.abort()


async def _be_polite(address: Address, end: float, waits_s: list[float]) -> int:
    refused = 0
    async with websockets.connect(f"ws://{address[0]}:{address[1]}/api/v1/stream", compression=None) as socket:
        while monotonic() < end:
            started = perf_counter()
            await socket.send(msgspec.json.encode({"id": 1, "enqueue": [{"queue": "polite", "payload": PAYLOAD}]}))
            answer: Any = msgspec.json.decode(await socket.recv())
            if "enqueued" in answer:
                waits_s.append(perf_counter() - started)
            else:
                refused += 1
            await asyncio.sleep(0.05)
    return refused


async def _measure(host: str, port: int, seconds: float) -> Flood:
    counts, waits_s = _Counts(), list[float]()
    end = monotonic() + seconds
    floods = [_flood((host, port), n, end, counts, n < DEAF_STREAMS) for n in range(STREAMS)]
    polite = asyncio.create_task(_be_polite((host, port), end, waits_s))
    await asyncio.gather(*floods)
    refused = await polite
    p50, _, p99 = percentiles_ms(waits_s)
    done = counts.answered - counts.refused
    return Flood(seconds, counts.sent, counts.refused, done, p50, p99, refused)


SCENARIO = Scenario("overload", "more than a server can do", run, is_long=True)

if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(asyncio.run(_measure(*json.loads(sys.argv[1])))))
