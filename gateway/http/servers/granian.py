"""Granian: parser and sockets in Rust, in a thread beside our loop. Installed by the extra `fast`.

It runs inside the gateway's process and loop (`granian.server.embed`), because the connections to the shards are there.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

from granian.constants import HTTPModes, Interfaces, SSLProtocols
from granian.http import HTTP1Settings, HTTP2Settings
from granian.net import SocketHolder
from granian.server.embed import Server

from corvo.model.limits import BODY_BYTES_MAX
from corvo.runtime.process import BACKLOG
from gateway.http.messages import HTTP2_HEAD_BYTES_MAX, HTTP2_STREAMS_MAX, Receive, Scope, Send
from gateway.http.tls_reload import Certificate

GONE = {"type": "websocket.disconnect", "code": 1006}

App = Callable[[Scope, Receive, Send], Awaitable[None]]

CONNECTIONS_MAX = 32_768  # more wait to be accepted; long polls and streams count as long as they are open
HEAD_BYTES_MAX = 32 * 1024
MUST_RESTART_TO_RENEW = True  # it reads the files itself, at the start
IDLE_MS = 30_000  # between requests, and for the head of one; a long poll is not idle


class _Embedded(Server):  # type: ignore[misc]  # granian's types are not looked at
    """Serves a socket that it is given."""

    def __init__(self, app: Any, listener: socket.socket, certificate: Certificate | None) -> None:
        secure = {} if certificate is None else _secure(certificate)
        super().__init__(
            app,
            interface=Interfaces.ASGINL,
            http=HTTPModes.http1 if certificate is None else HTTPModes.auto,
            websockets=True,
            backlog=BACKLOG,
            backpressure=CONNECTIONS_MAX,
            http1_settings=HTTP1Settings(header_read_timeout=IDLE_MS, max_buffer_size=HEAD_BYTES_MAX),
            log_enabled=False,
            **secure,
        )
        self._listener = listener

    def _init_shared_socket(self) -> None:
        self._ssp, self._shd = None, SocketHolder(self._listener.detach(), False, BACKLOG)


def _secure(certificate: Certificate) -> dict[str, Any]:
    return {
        "ssl_cert": Path(certificate.cert_file),
        "ssl_key": Path(certificate.key_file),
        "ssl_protocol_min": SSLProtocols.tls12,
        "http2_settings": HTTP2Settings(
            max_concurrent_streams=HTTP2_STREAMS_MAX,
            max_headers_size=HTTP2_HEAD_BYTES_MAX,
            initial_stream_window_size=64 * 1024,
            max_send_buffer_size=64 * 1024,
            keep_alive_interval=IDLE_MS,  # between pings, which find clients that are gone
        ),
    }


class _Stream:
    """A WebSocket with what Granian lacks: it refuses messages that are too long, sends one at a time, and can be
    closed while a task waits for the next message."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._sending = asyncio.Lock()  # two sends at once to a client that does not read can block its loop
        self._waiting: asyncio.Task[Any] | None = None  # the task that waits for the next message
        self._last_word: MutableMapping[str, Any] = {}  # the message that closes it; empty while it is open

    def _is_closed(self) -> bool:
        return bool(self._last_word)

    async def receive(self) -> MutableMapping[str, Any]:
        if self._is_closed():
            return GONE
        self._waiting = task = asyncio.current_task()
        try:
            message = await self._receive()
        except asyncio.CancelledError:
            if not self._is_closed() or task is None or task.uncancel():
                raise
            await self._send(self._last_word)
            return GONE
        finally:
            self._waiting = None
        if len(message.get("bytes") or message.get("text") or b"") > BODY_BYTES_MAX:
            await self.send({"type": "websocket.close", "code": 1009, "reason": "the frame is too long"})
            return GONE
        return message

    async def send(self, message: MutableMapping[str, Any]) -> None:
        async with self._sending:
            if self._is_closed():
                return
            if message["type"] == "websocket.close":
                self._last_word = message
                if self._waiting is not None:
                    self._waiting.cancel()  # a send now would wait for the next message too: the waiting task sends it
                    return
            await self._send(message)


class _Front:
    """Between Granian and the application: corrects what Granian counts or reports differently from other servers."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._streams = 0
        self._changed = asyncio.Event()

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] == "websocket":
            return self._serve_stream(scope, receive, send)
        if scope["http_version"] == "1":
            scope["http_version"] = "1.0"
        return self._app(scope, receive, send)

    async def _serve_stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        stream = _Stream(receive, send)
        self._streams += 1
        try:
            await self._app(scope, stream.receive, stream.send)
        finally:
            self._streams -= 1
            self._changed.set()

    async def await_streams(self) -> None:
        while self._streams:
            self._changed.clear()
            await self._changed.wait()


async def serve(
    app: App,
    listener: socket.socket,
    graceful_s: float,
    stop: asyncio.Event,
    certificate: Certificate | None = None,
) -> None:
    logging.getLogger("_granian").setLevel(logging.ERROR)
    front = _Front(app)
    server = _Embedded(front, listener, certificate)
    serving = asyncio.ensure_future(server.serve())
    await stop.wait()
    try:
        async with asyncio.timeout(graceful_s):
            await front.await_streams()  # Granian would cut streams off; for requests it waits
            server.stop()
            await serving
    except TimeoutError:
        server.stop()
