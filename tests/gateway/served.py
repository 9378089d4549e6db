"""A gateway over fake shards behind a real server of HTTP, and what it takes to speak to it over raw sockets."""

import asyncio
import json
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple

import uvloop

from corvo.endpoint import Operation, Query
from corvo.runtime.process import open_listener
from gateway.http.tls_reload import Certificate
from gateway.metrics import Metrics
from gateway.shards.client import ShardCall
from tests.gateway.asgi import Draining, a_gateway
from tests.gateway.fake_shards import FakeShards
from tests.support.authority import Authority

PATIENCE_S = 5.0

Serve = Callable[[Any, socket.socket, float, asyncio.Event, Certificate | None], Awaitable[None]]


class SlowShards(FakeShards):
    """Answers queue `slow` only when it is released."""

    def __init__(self) -> None:
        super().__init__(1)
        self.released = asyncio.Event()
        self.held = threading.Event()

    def ask(self, shard: int, ask: Operation | Query, wait_ms: int = 0, timeout_s: float | None = None) -> ShardCall:
        call = super().ask(shard, ask, wait_ms, timeout_s)
        if "slow" in repr(ask):
            call.future = asyncio.ensure_future(self._hold(call.future))
        if wait_ms:
            self.held.set()
        return call

    async def _hold(self, answer: "asyncio.Future[Any]") -> Any:
        self.held.set()
        await self.released.wait()
        return await answer


class Served:
    """The gateway over fake shards, behind one of the servers, in a thread of its own."""

    def __init__(self, serve: Serve, graceful_s: float = 20.0, certificate: Certificate | None = None) -> None:
        self._serve_with = serve
        self._certificate = certificate
        self._graceful_s = graceful_s
        self._listener = open_listener("127.0.0.1", 0)
        self.port = self._listener.getsockname()[1]
        self.reported: list[Any] = []
        self._is_ready = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        assert self._is_ready.wait(PATIENCE_S)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.loop.set_exception_handler(lambda loop, context: self.reported.append(context))
        self.shards = SlowShards()
        self.draining = Draining()
        self.stop = asyncio.Event()
        self.app = app = a_gateway(self.shards, self.draining, Metrics())
        self.loop.call_soon(self._is_ready.set)
        await self._serve_with(app, self._listener, self._graceful_s, self.stop, self._certificate)

    def drain(self) -> None:
        """As `gateway.__main__` does on SIGTERM."""
        self.loop.call_soon_threadsafe(self.app._streams.drain)
        self.loop.call_soon_threadsafe(self.draining.set)
        self.loop.call_soon_threadsafe(self.loop.call_later, 0.1, self.stop.set)

    def release(self) -> None:
        self.loop.call_soon_threadsafe(self.shards.released.set)

    def end(self, patience_s: float = 2 * PATIENCE_S) -> None:
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self.stop.set)
        self._thread.join(patience_s)
        assert not self._thread.is_alive(), "the server does not stop"


@contextmanager
def a_server(
    serve: Serve, graceful_s: float = 20.0, authority: Authority | None = None, is_quiet: bool = False
) -> Iterator[Served]:
    """A server until the block ends; with an authority it speaks TLS. A quiet one must not have reported an exception
    by then."""
    server = Served(serve, graceful_s, None if authority is None else Certificate(*authority.sign()))
    try:
        yield server
    finally:
        server.end()
    assert not is_quiet or server.reported == []


class Heard(NamedTuple):
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)


class Talk:
    """One connection. With a context it speaks TLS."""

    def __init__(self, served: Served, context: ssl.SSLContext | None = None) -> None:
        self._socket = socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is not None:
            self._socket = context.wrap_socket(self._socket, server_hostname="localhost")
        self._heard = b""

    def __enter__(self) -> "Talk":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def say(self, text: bytes) -> None:
        self._socket.sendall(text)

    def finish(self) -> None:
        """Nothing more will be sent; answers are still read."""
        self._socket.shutdown(socket.SHUT_WR)

    def more(self) -> bytes:
        """What comes next; empty when the other side has closed."""
        try:
            return self._socket.recv(65536)
        except ConnectionError:
            return b""

    def hear(self) -> Heard:
        while b"\r\n\r\n" not in self._heard:
            self._take()
        head, _, self._heard = self._heard.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        status = int(first.split()[1])
        length = int(headers.get("content-length", 0))
        while len(self._heard) < length:
            self._take()
        content, self._heard = self._heard[:length], self._heard[length:]
        return Heard(status, headers, content)

    def _take(self) -> None:
        more = self.more()
        assert more, f"closed after {self._heard!r}"
        self._heard += more

    def ask(self, text: bytes) -> Heard:
        self.say(text)
        return self.hear()

    def is_closed(self) -> bool:
        """Whether the other side closes, within patience, and says nothing before."""
        try:
            return self._heard + self.more() == b""
        except TimeoutError:
            return False

    def is_usable(self) -> bool:
        return self.ask(enqueue()).status == 201


def request(method: str, path: str, *lines: str, body: bytes = b"", host: str = "Host: corvo") -> bytes:
    head = "\r\n".join([f"{method} {path} HTTP/1.1", *([host] if host else []), *lines])
    return head.encode("latin-1") + b"\r\n\r\n" + body


def enqueue(body: bytes = b'{"queue": "mail"}', *lines: str, length: Any = None) -> bytes:
    length = len(body) if length is None else length
    return request(
        "POST", "/api/v1/enqueue", "Content-Type: application/json", f"Content-Length: {length}", *lines, body=body
    )


def chunked(body: bytes, *lines: str) -> bytes:
    return request(
        "POST", "/api/v1/enqueue", "Content-Type: application/json", "Transfer-Encoding: chunked", *lines, body=body
    )


INFO = request("GET", "/api/v1/info")


def a_fetch(wait_s: int = 30) -> bytes:
    body = b'{"queues": ["nothing"], "worker_id": "w", "timeout": %d}' % wait_s
    return request("POST", "/api/v1/fetch", "Content-Type: application/json", f"Content-Length: {len(body)}", body=body)


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def wait_until(is_so: Any) -> None:
    end = monotonic() + PATIENCE_S
    while not is_so():
        assert monotonic() < end, "waited in vain"
        sleep(0.005)
