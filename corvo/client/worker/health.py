"""`/healthz` and `/metrics` of a worker: a small HTTP server in the worker's own thread.

It answers also while a handler blocks the program's loop, and then says so: 503.
"""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import msgspec

from .tally import BUCKETS_S
from .watch import BLOCKED_S
from .worker_loop import WorkerLoop

REQUEST_S_MAX = 5.0
REQUEST_BYTES_MAX = 8 * 1024
SILENT_S = 30.0  # the server has not answered for so long
_TEXT = "text/plain; version=0.0.4; charset=utf-8"


class HealthServer:
    def __init__(self, worker: WorkerLoop, host: str, port: int) -> None:
        self._worker = worker
        self._host = host
        self._port = port

    async def serve(self) -> None:
        server = await asyncio.start_server(self._answer, self._host, self._port, limit=REQUEST_BYTES_MAX)
        self._worker.health_port = server.sockets[0].getsockname()[1]
        async with server:
            await server.serve_forever()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_S_MAX):
                head = await reader.readuntil(b"\r\n\r\n")
                status, kind, body = self._page(head.split(b" ", 2)[1:2])
                writer.write(
                    f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n"
                    "connection: close\r\n\r\n".encode()
                )
                writer.write(body)
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    def _page(self, path: list[bytes]) -> tuple[str, str, bytes]:
        if path == [b"/healthz"]:
            told = health_of(self._worker)
            return (
                "200 OK" if told["healthy"] else "503 Service Unavailable",
                "application/json",
                msgspec.json.encode(told),
            )
        if path == [b"/metrics"]:
            return "200 OK", _TEXT, "\n".join([*metrics_of(self._worker), ""]).encode()
        return "404 Not Found", "text/plain", b"there are /healthz and /metrics\n"


def health_of(worker: WorkerLoop) -> dict[str, Any]:
    tally = worker.tally
    why = []
    silent_s = time.monotonic() - worker.heard_at
    if worker.connected_to is None:
        why.append("not connected")
    elif silent_s > SILENT_S:
        why.append(f"the server has not answered for {silent_s:.0f} s")
    if tally.blocked_s >= BLOCKED_S:
        why.append(f"the event loop has been blocked for {tally.blocked_s:.0f} s")
    slots = sum(lane.slots for lane in worker.ledger.lanes)
    if tally.stuck >= slots:
        why.append(f"all {slots} slots have handlers that do not stop")
    if worker.is_draining:
        why.append("stopping")
    return {
        "healthy": not why,
        "reasons": why,
        "server": worker.connected_to,
        "running": running(worker),
        "slots": slots,
    }


def running(worker: WorkerLoop) -> int:
    return sum(bool(held.started_at) and not held.has_ended for held in list(worker.ledger.held.values()))


def metrics_of(worker: WorkerLoop) -> Iterator[str]:
    tally = worker.tally
    yield from _family("corvo_worker_connected", "gauge", "1 while the stream is open")
    yield f"corvo_worker_connected {int(worker.connected_to is not None)}"
    yield from _family("corvo_worker_connections_total", "counter", "streams that were opened")
    yield f"corvo_worker_connections_total {tally.connections}"
    yield from _family("corvo_worker_running", "gauge", "jobs whose handlers run")
    yield f"corvo_worker_running {running(worker)}"
    yield from _family("corvo_worker_held", "gauge", "jobs that are claimed and not settled")
    yield f"corvo_worker_held {len(worker.ledger.held)}"
    yield from _family("corvo_worker_slots", "gauge", "jobs that can run at a time")
    yield f"corvo_worker_slots {sum(lane.slots for lane in worker.ledger.lanes)}"
    yield from _family("corvo_worker_stuck", "gauge", "handlers that go on after they were asked to stop")
    yield f"corvo_worker_stuck {tally.stuck}"
    yield from _family("corvo_worker_loop_blocked_seconds", "gauge", "how long the event loop has not run")
    yield f"corvo_worker_loop_blocked_seconds {tally.blocked_s:.3f}"
    yield from _family(
        "corvo_worker_reports_total", "counter", "reports that the server settled, by what became of the job"
    )
    for outcome, count in sorted(tally.outcomes.items()):
        yield f'corvo_worker_reports_total{{outcome="{outcome}"}} {count}'
    yield from _family("corvo_worker_job_seconds", "histogram", "time of handlers")
    for queue, buckets in sorted(tally.buckets.items()):
        total = 0
        for limit, count in zip((*BUCKETS_S, "+Inf"), buckets, strict=True):
            total += count
            yield f'corvo_worker_job_seconds_bucket{{queue="{queue}",le="{limit}"}} {total}'
        yield f'corvo_worker_job_seconds_sum{{queue="{queue}"}} {tally.run_s[queue]:.6f}'
        yield f'corvo_worker_job_seconds_count{{queue="{queue}"}} {total}'


def _family(name: str, kind: str, help_: str) -> Iterator[str]:
    yield f"# HELP {name} {help_}"
    yield f"# TYPE {name} {kind}"
