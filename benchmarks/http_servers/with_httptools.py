"""httptools under our own asyncio protocol: the parser is C, and a request goes straight to `Gateway.attend`.

An answer is one write. `websockets` without I/O reads and writes the frames of the stream (`with_websockets.py`).

It is as complete as a comparison needs: limits of the head, chunked bodies, pipelining, long polls, streamed answers,
idle connections, a stop that finishes open requests. It has no TLS and no HTTP/2.
"""

import asyncio
import socket
import time
from collections import deque
from collections.abc import MutableMapping
from email.utils import formatdate
from typing import Any
from urllib.parse import unquote

import httptools

from benchmarks.http_servers.with_websockets import WebSocket
from corvo.model.errors import Refusal
from corvo.runtime.process import BACKLOG
from gateway.http.messages import Disconnected, Request, Response
from gateway.http.tls_reload import Certificate

MUST_RESTART_TO_RENEW = True
HEAD_BYTES_MAX = 32 * 1024  # of an incomplete head; `Request.check` has the limit of a complete one
UNREAD_BYTES_MAX = 64 * 1024  # of a body, until the gateway reads it
IDLE_S = 30.0
_GONE = {"type": "http.disconnect"}
_CLOSE = (b"connection", b"close")


class Server:
    """The state that its connections share."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.connections: set[Connection] = set()
        self.is_stopping = False
        self._changed = asyncio.Event()
        self._made_at = 0
        self._headers = b""

    def headers(self) -> bytes:
        now = int(time.time())
        if now != self._made_at:
            self._made_at = now
            self._headers = b"date: %b\r\n" % formatdate(now, usegmt=True).encode()
        return self._headers

    def closed(self, connection: "Connection") -> None:
        self.connections.discard(connection)
        self._changed.set()

    async def are_closed(self) -> None:
        while self.connections:
            self._changed.clear()
            await self._changed.wait()


class Incoming(Request):
    """A request whose head was parsed. Its body may still be arriving."""

    __slots__ = ("_body", "_connection", "_news", "_size", "fault", "is_told", "is_whole")

    def __init__(self, scope: MutableMapping[str, Any], connection: "Connection") -> None:
        super().__init__(scope, self._next)
        self._connection = connection
        self._body: list[bytes] = []
        self._size = 0
        self._news: asyncio.Future[None] | None = None
        self.is_whole = False
        self.is_told = False  # whether the end of the body was reported
        self.fault: str = ""  # an error in the head that the parser does not detect

    def check(self) -> None:
        if self.fault:
            self.must_close = True
            raise Refusal("BAD_REQUEST", self.fault)
        super().check()

    def feed(self, part: bytes) -> None:
        self._body.append(part)
        self._size += len(part)
        if self._size > UNREAD_BYTES_MAX:
            self._connection.pause()
        self.wake()

    def end(self) -> None:
        self.is_whole = True
        self.wake()

    def wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    async def body(self) -> bytes:
        if self.is_whole and self._size <= UNREAD_BYTES_MAX:
            self.is_told = True
            body, self._body = self._body, []
            return body[0] if len(body) == 1 else b"".join(body)
        return await super().body()

    async def _next(self) -> MutableMapping[str, Any]:
        while not self._body and (not self.is_whole or self.is_told):
            if self._connection.is_lost:
                return _GONE
            if not self.is_whole:
                self._connection.ask_for_body(self)
            self._news = asyncio.get_running_loop().create_future()
            await self._news
        part, self._body, self._size = b"".join(self._body), [], 0
        self.is_told = self.is_whole
        self._connection.resume()
        return {"type": "http.request", "body": part, "more_body": not self.is_whole}


class Connection(asyncio.Protocol):
    def __init__(self, server: Server) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._transport: Any = None
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._head_bytes = 0
        self._is_in_head = True
        self._reading: Incoming | None = None  # the request whose body is arriving
        self._waiting: deque[Incoming] = deque()
        self._serving: asyncio.Task[None] | None = None
        self._web_socket: WebSocket | None = None
        self._is_over = False  # nothing more is read
        self._active_at = self._loop.time()
        self._may_write: asyncio.Future[None] | None = None
        self.is_lost = False

    # Called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._server.connections.add(self)
        self._timer = self._loop.call_later(IDLE_S, self._look)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost = True
        self._timer.cancel()
        self._server.closed(self)
        self.resume_writing()
        for request in [*self._waiting, *([self._reading] if self._reading is not None else [])]:
            request.wake()
        if self._current is not None:
            self._current.wake()
        if self._web_socket is not None:
            self._web_socket.lost()

    def eof_received(self) -> bool:
        return False

    def data_received(self, data: bytes) -> None:
        if self._web_socket is not None:
            self._web_socket.feed(data)
            return
        if self._is_over:
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._upgrade(data[upgrade.args[0] :])
            return
        except httptools.HttpParserError:
            self._refuse(400)
            return
        if self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX:
                self._refuse(431)

    def pause_writing(self) -> None:
        self._may_write = self._loop.create_future()
        if self._web_socket is not None:
            self._web_socket.may_write(False)

    def resume_writing(self) -> None:
        if self._web_socket is not None:
            self._web_socket.may_write(True)
        if self._may_write is not None and not self._may_write.done():
            self._may_write.set_result(None)
        self._may_write = None

    # Called by the parser

    def on_message_begin(self) -> None:
        self._url, self._headers, self._head_bytes, self._is_in_head = b"", [], 0, True

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        if self._is_over:
            return
        raw_path, _, query = self._url.partition(b"?")
        version = self._parser.get_http_version()
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.1"},
            "http_version": version,
            "scheme": "http",
            "method": self._parser.get_method().decode("latin-1"),
            "path": unquote(raw_path.decode("latin-1")) if b"%" in raw_path else raw_path.decode("latin-1"),
            "raw_path": raw_path,
            "query_string": query,
            "root_path": "",
            "headers": self._headers,
            "client": None,
            "server": None,
            "extensions": {},
        }
        request = Incoming(scope, self)
        if version == "1.1" and sum(name == b"host" for name, _ in self._headers) != 1:
            request.fault = "a request has one host"
        if not self._parser.should_keep_alive() or self._parser.should_upgrade():
            request.must_close = True
        self._reading = request
        if self._parser.should_upgrade() and self._wants_web_socket():
            return
        self._waiting.append(request)
        if self._serving is None:
            self._serving = self._loop.create_task(self._serve())

    def on_body(self, part: bytes) -> None:
        if self._reading is not None:
            self._reading.feed(part)

    def on_message_complete(self) -> None:
        if self._reading is not None:
            self._reading.end()
        self._reading = None

    # Requests

    _current: Incoming | None = None

    async def _serve(self) -> None:
        attend = self._server.app.attend
        try:
            while self._waiting and not self.is_lost:
                self._current = request = self._waiting.popleft()
                pen = Pen(self, request)
                try:
                    await attend(request, Response(request, pen.send))
                except Disconnected:
                    self._transport.close()
                    return
                if not request.is_whole or request.must_close or self._server.is_stopping:
                    self._is_over = True
                    self._transport.close()
                    return
                if self._may_write is not None:
                    await self._may_write
        finally:
            self._current = None
            self._serving = None
            self._active_at = self._loop.time()
        if self._is_over:
            self._transport.close()

    def write(self, data: bytes) -> None:
        if not self.is_lost:
            self._transport.write(data)

    async def drained(self) -> None:
        if self._may_write is not None:
            await self._may_write
        if self.is_lost:
            raise Disconnected

    def server_headers(self) -> bytes:
        return self._server.headers()

    def ask_for_body(self, request: Incoming) -> None:
        """A client may wait for 100 Continue before it sends its body."""
        if request.header(b"expect").lower() == "100-continue" and not request._size:
            request.scope["headers"] = [header for header in request.scope["headers"] if header[0] != b"expect"]
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def pause(self) -> None:
        if not self.is_lost:
            self._transport.pause_reading()

    def resume(self) -> None:
        if not self.is_lost and not self._is_over and not self._transport.is_reading():
            self._transport.resume_reading()

    def _refuse(self, status: int) -> None:
        """Refuses input that the parser cannot read, after all pending answers."""
        self._is_over = True
        if self._reading is not None:  # its body is malformed and will never be complete
            if self._serving is not None:
                self._serving.cancel()
            self.write(b"HTTP/1.1 %d \r\ncontent-length: 0\r\nconnection: close\r\n\r\n" % status)
            self._transport.close()
        elif self._serving is None:
            self.write(b"HTTP/1.1 %d \r\ncontent-length: 0\r\nconnection: close\r\n\r\n" % status)
            self._transport.close()

    # WebSockets

    def _wants_web_socket(self) -> bool:
        return any(name == b"upgrade" and value.lower() == b"websocket" for name, value in self._headers)

    def _upgrade(self, rest: bytes) -> None:
        self._is_over = True  # any other upgrade: answer the request, then close the connection
        if self._wants_web_socket() and self._serving is None:
            self._web_socket = WebSocket(self._server.app, self._transport, self._url, self._headers)
            self._web_socket.feed(rest)

    # Idling and stopping

    def _look(self) -> None:
        left_s = self._active_at + IDLE_S - self._loop.time()
        if left_s > 0 or self._serving is not None or self._web_socket is not None:
            self._timer = self._loop.call_later(max(left_s, 1.0), self._look)
        else:
            self._transport.close()

    def stop(self) -> None:
        if self._serving is None and self._web_socket is None:
            self._transport.close()


class Pen:
    """Turns the ASGI messages of an answer into bytes. A plain answer is one write."""

    __slots__ = ("_connection", "_head", "_is_bare", "_is_chunked", "_request")

    def __init__(self, connection: Connection, request: Incoming) -> None:
        self._connection = connection
        self._request = request
        self._head = b""
        self._is_bare = request.method == "HEAD"
        self._is_chunked = False

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            headers = list(message["headers"])
            names = {name for name, _ in headers}
            if b"content-length" not in names and message["status"] != 204:
                if self._request.scope["http_version"] == "1.0":
                    self._request.must_close = True
                else:
                    self._is_chunked = True
                    headers.append((b"transfer-encoding", b"chunked"))
            if not self._request.is_whole:  # answered before the end of its body: no request can follow
                self._request.must_close = True
            if self._request.must_close and b"connection" not in names:
                headers.append(_CLOSE)
            lines = b"".join([b"%b: %b\r\n" % header for header in headers])
            self._head = b"HTTP/1.1 %d \r\n%b%b\r\n" % (message["status"], lines, self._connection.server_headers())
            return
        head, self._head = self._head, b""
        body = b"" if self._is_bare else message["body"]
        is_last = not message.get("more_body")
        if self._is_chunked and not self._is_bare:
            body = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + (b"0\r\n\r\n" if is_last else b"")
        self._connection.write(head + body)
        if not is_last:
            await self._connection.drained()


async def serve(
    app: Any,
    listener: socket.socket,
    graceful_s: float,
    stop: asyncio.Event,
    certificate: Certificate | None = None,
) -> None:
    assert certificate is None, "TLS is not part of the comparison"
    loop = asyncio.get_running_loop()
    state = Server(app)
    server = await loop.create_server(lambda: Connection(state), sock=listener, backlog=BACKLOG)
    await stop.wait()
    server.close()
    state.is_stopping = True
    for connection in list(state.connections):
        connection.stop()
    try:
        async with asyncio.timeout(graceful_s):
            await state.are_closed()
    except TimeoutError:
        pass
    for connection in list(state.connections):
        connection._transport.abort()
