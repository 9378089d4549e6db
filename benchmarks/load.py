"""A lean HTTP/1.1 client: it shares two cores with the server that it measures, so it must use as little as possible.

Requests are bytes built in advance. Only the status and the length of an answer are read. Any status but 2xx is an
error, and errors are counted and shown. A connection has one open request at a time.

`run` is a closed loop: each connection sends its next request when it has the answer to the last. `run_apart` does the
same in its own process, so that it shares neither a loop nor an interpreter lock with the caller.
"""

import asyncio
import subprocess
import sys
from array import array
from collections.abc import Awaitable, Coroutine, Iterable
from itertools import cycle
from time import perf_counter, process_time
from typing import Any, NamedTuple, TypeVar

import msgspec
import uvloop

from benchmarks.processes import ROOT, python

T = TypeVar("T")
ERRORS_SHOWN = 3
APART_MARGIN_S = 30.0  # how much longer than the measured time the other process may take

Address = tuple[str, int]


class LoadFailed(Exception):
    """An answer that a benchmark must not count."""


class Load(msgspec.Struct, frozen=True):
    host: str
    port: int
    requests: list[bytes]  # sent in turn, repeatedly
    connections: int
    seconds: float
    warmup_s: float = 0.5  # not counted


class Tally(msgspec.Struct):
    seconds: float
    requests: int  # answered 2xx within the measured time
    answered: int  # including the warm-up
    errors: int  # answers that are not 2xx, and connections that broke
    error_samples: list[str]
    p50_ms: float
    p90_ms: float
    p99_ms: float
    client_cpu_s: float

    @property
    def per_s(self) -> float:
        return self.requests / self.seconds


class Reply(NamedTuple):
    status: int
    body: bytes


class _Wire(asyncio.Protocol):
    """Parses bytes into (status, body), one answer at a time."""

    def __init__(self) -> None:
        self._buffer = b""
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        self.broken(f"the connection broke: {error or 'closed by the server'}")

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer + data if self._buffer else data
        head = buffer.find(b"\r\n\r\n")
        if head < 0:
            self._buffer = buffer
            return
        end = head + 4 + _content_length(buffer, head)
        if len(buffer) < end:
            self._buffer = buffer
            return
        self._buffer = buffer[end:]
        self.replied(int(buffer[9:12]), buffer[head + 4 : end])

    def replied(self, status: int, body: bytes) -> None:
        raise NotImplementedError

    def broken(self, why: str) -> None:
        raise NotImplementedError


class Connection(_Wire):
    """For callers that need the answers: `await connection.call(request)`."""

    def __init__(self) -> None:
        super().__init__()
        self._future: asyncio.Future[Reply] | None = None
        self._loop = asyncio.get_running_loop()

    def call(self, request: bytes) -> "asyncio.Future[Reply]":
        assert self._future is None, "one request at a time"
        self._future = self._loop.create_future()
        self._transport.write(request)
        return self._future

    async def require(self, request: bytes) -> bytes:
        """The body of a 2xx answer; any other answer ends the measurement."""
        reply = await self.call(request)
        if not 200 <= reply.status < 300:
            raise LoadFailed(f"answered {reply.status}: {reply.body[:200].decode(errors='replace')}")
        return reply.body

    def close(self) -> None:
        self._transport.close()

    def replied(self, status: int, body: bytes) -> None:
        future, self._future = self._future, None
        if future is not None and not future.done():
            future.set_result(Reply(status, body))

    def broken(self, why: str) -> None:
        future, self._future = self._future, None
        if future is not None and not future.done():
            future.set_exception(LoadFailed(why))


class _Score:
    def __init__(self) -> None:
        self.is_counting = False
        self.is_over = False
        self.latencies_s = array("d")
        self.answered = 0
        self.errors = 0
        self.error_samples: list[str] = []

    def fail(self, why: str) -> None:
        self.errors += 1
        if len(self.error_samples) < ERRORS_SHOWN:
            self.error_samples.append(why)


class _Hammer(_Wire):
    """Sends the next request when the last is answered, until the time is over."""

    def __init__(self, requests: Any, score: _Score) -> None:
        super().__init__()
        self._requests = requests
        self._score = score
        self._sent = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._send()

    def replied(self, status: int, body: bytes) -> None:
        score = self._score
        if score.is_over:
            self._transport.close()
            return
        if not 200 <= status < 300:
            score.fail(f"{status} {body[:200].decode(errors='replace')}")
        else:
            score.answered += 1
            if score.is_counting:
                score.latencies_s.append(perf_counter() - self._sent)
        self._send()

    def broken(self, why: str) -> None:
        if not self._score.is_over:
            self._score.fail(why)

    def _send(self) -> None:
        self._sent = perf_counter()
        self._transport.write(next(self._requests))


async def run(load: Load) -> Tally:
    score = _Score()
    requests = cycle(load.requests)
    loop = asyncio.get_running_loop()
    hammers = [
        (await loop.create_connection(lambda: _Hammer(requests, score), load.host, load.port))[0]
        for _ in range(load.connections)
    ]
    await asyncio.sleep(load.warmup_s)
    cpu_s, started = process_time(), perf_counter()
    score.is_counting = True
    await asyncio.sleep(load.seconds)
    score.is_counting, score.is_over = False, True
    seconds, cpu_s = perf_counter() - started, process_time() - cpu_s
    await asyncio.sleep(0.05)  # for answers in flight
    for transport in hammers:
        transport.close()
    p50, p90, p99 = percentiles_ms(score.latencies_s)
    samples = score.error_samples
    return Tally(seconds, len(score.latencies_s), score.answered, score.errors, samples, p50, p90, p99, cpu_s)


def run_apart(load: Load) -> Tally:
    done = subprocess.run(
        python("-m", "benchmarks.load"),
        input=msgspec.json.encode(load),
        stdout=subprocess.PIPE,
        cwd=ROOT,
        timeout=load.seconds + load.warmup_s + APART_MARGIN_S,
        check=True,
    )
    return msgspec.json.decode(done.stdout, type=Tally)


def percentiles_ms(latencies_s: Iterable[float]) -> tuple[float, float, float]:
    """p50, p90, p99; 0 if nothing was measured, because JSON has no NaN."""
    ordered = sorted(latencies_s) or [0.0]
    last = len(ordered) - 1
    p50, p90, p99 = (ordered[min(int(len(ordered) * share), last)] * 1000 for share in (0.5, 0.9, 0.99))
    return p50, p90, p99


def post(path: str, body: bytes) -> bytes:
    return (
        b"POST %s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        % (path.encode(), len(body))
    ) + body


def with_header(request: bytes, name: str, value: str) -> bytes:
    line, _, rest = request.partition(b"\r\n")
    return b"%b\r\n%b: %b\r\n%b" % (line, name.encode(), value.encode(), rest)


def get(path: str) -> bytes:
    return b"GET %b HTTP/1.1\r\nhost: benchmark\r\n\r\n" % path.encode()


async def connect(address: Address) -> Connection:
    _, connection = await asyncio.get_running_loop().create_connection(Connection, *address)
    return connection


async def connect_many(address: Address, count: int) -> list[Connection]:
    return [await connect(address) for _ in range(count)]


async def together(tasks: list[Awaitable[T]]) -> list[T]:
    """All results, or the first failure after the other tasks were cancelled."""
    running = [asyncio.ensure_future(task) for task in tasks]
    try:
        return list(await asyncio.gather(*running))
    finally:
        for task in running:
            task.cancel()


def on_uvloop(main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


def _content_length(buffer: bytes, head: int) -> int:
    at = buffer.find(b"content-length:", 0, head)
    if at < 0:
        at = buffer[:head].lower().find(b"content-length:")
        if at < 0:
            if buffer[9:12] == b"204":
                return 0
            raise LoadFailed(f"an answer without content-length: {buffer[:head]!r}")
    end = buffer.find(b"\r\n", at, head)
    return int(buffer[at + 15 : head if end < 0 else end])


def main() -> None:
    load = msgspec.json.decode(sys.stdin.buffer.read(), type=Load)
    sys.stdout.buffer.write(msgspec.json.encode(on_uvloop(run(load))))


if __name__ == "__main__":
    main()
