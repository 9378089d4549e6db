"""The fast path of requests: a plain request is served in the coroutine that read it, and answered in one write.

For each request Hypercorn makes two parsers' worth of events, a task, a queue, three writes and a timer. That costs
more than the rest of the gateway. Nearly all requests of producers and workers are alike: a POST to the API, HTTP/1.1,
a few plain headers, a length. httptools reads such a head here, and the request goes straight to `Gateway.attend`, as
every request does in the end.

The fast path refuses nothing. A head that is in any way unusual (another method, chunks, an upgrade, a folded header,
two lengths, bytes beyond ASCII, anything that httptools refuses) is not recognised, and the server reads it.
"""

import asyncio
import re
import time
from collections.abc import Callable, MutableMapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from hypercorn.config import Config

from corvo.model.limits import BODY_BYTES_MAX
from gateway.http.fixed_headers import Header, as_bytes, fixed_headers
from gateway.http.messages import HEADER_BYTES_MAX, KEY_HEADER, PATH_BYTES_MAX, Disconnected, Request, Response

READ_BYTES = 64 * 1024
HEADERS_MAX = 40
REMEMBERED_MAX = 1024  # heads; at most 1 MiB
REMEMBERED_BYTES_MAX = 1024  # of a head that is remembered
# httptools takes more than this: other methods and versions, several spaces, any path.
_REQUEST_LINE = re.compile(rb"POST (/api/v1/(?!metrics )[A-Za-z0-9/_.-]+) HTTP/1\.1\r\n")
# Headers that change how a message is read, or what happens to the connection. The server handles them.
_UNUSUAL = frozenset(
    {
        b"connection",
        b"content-encoding",
        b"expect",
        b"http2-settings",
        b"keep-alive",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
_KEEP_ALIVE = (b"connection", b"keep-alive")  # the default of HTTP/1.1, and sent by many clients


class Head(NamedTuple):
    path: str
    headers: tuple[tuple[bytes, bytes], ...]  # shared by all requests with this head
    content_type: bytes
    repeat_key: bytes
    length: int
    end: int  # where the body begins


class _HeadCallbacks:
    """httptools calls these, in the order of the bytes."""

    __slots__ = ("headers", "is_complete")

    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.is_complete = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value.rstrip(b" \t")))  # httptools strips the left side alone

    def on_headers_complete(self) -> None:
        self.is_complete = True


def recognise(data: bytes) -> Head | None:
    """The head of a plain request at the start of `data`; None for the server."""
    end = data.find(b"\r\n\r\n", 0, HEADER_BYTES_MAX) + 4
    if end < 4:
        return None
    return _remembered(data[:end]) if end <= REMEMBERED_BYTES_MAX else _read(data[:end])


def _read(head: bytes) -> Head | None:
    line = _REQUEST_LINE.match(head)
    if line is None or line.end(1) - line.start(1) > PATH_BYTES_MAX:
        return None
    parsed = _HeadCallbacks()
    try:
        HttpRequestParser(parsed).feed_data(head)
    except (HttpParserError, HttpParserUpgrade):
        return None
    if not parsed.is_complete or not head.isascii() or len(parsed.headers) > HEADERS_MAX:
        return None
    return _plain(line[1], parsed.headers, len(head))


# A client sends the same head again and again; only its length changes. Looking it up costs a tenth of reading it.
_remembered = lru_cache(maxsize=REMEMBERED_MAX)(_read)


def _plain(path: bytes, headers: list[tuple[bytes, bytes]], end: int) -> Head | None:
    """None if a header says that the request is not plain."""
    length = -1
    hosts = 0
    content_type = repeat_key = b""
    for header in headers:
        name, value = header
        if not value:
            return None
        if name == b"content-length":
            if length >= 0 or not value.isdigit() or len(value) > 9:
                return None
            length = int(value)
        elif name == b"content-type":
            if content_type:
                return None
            content_type = value
        elif name == b"host":
            hosts += 1
        elif name == KEY_HEADER:
            if repeat_key:
                return None
            repeat_key = value
        elif name in _UNUSUAL and header != _KEEP_ALIVE:
            return None
    if hosts != 1 or not 0 <= length <= BODY_BYTES_MAX:
        return None
    return Head(path.decode(), tuple(headers), content_type, repeat_key, length, end)


class FastRequest(Request):
    """A request on the fast path. Recognising its head was its check."""

    __slots__ = ("_reader", "ahead", "is_read", "left")

    def __init__(self, head: Head, data: bytes, reader: asyncio.StreamReader, client: tuple[str, int] | None) -> None:
        scope = {
            "method": "POST",
            "path": head.path,
            "query_string": b"",
            "headers": head.headers,
            "client": client,
        }
        super().__init__(scope, self._receive_nothing)
        self.content_type = head.content_type
        self.repeat_key = head.repeat_key
        self._length = head.length
        self._reader = reader
        self.left = data[head.end :]  # the body, and requests that were sent before its answer
        self.is_read = False
        self.ahead: asyncio.Task[bytes] | None = None  # reads from the connection while the request waits

    def check(self) -> None:
        pass

    async def body(self) -> bytes:
        if len(self.left) < self._length:
            return await super().body()
        return self._take()

    async def _read(self) -> bytes:
        parts, size = [self.left], len(self.left)
        while size < self._length:
            part = await self._reader.read(READ_BYTES)
            if not part:
                self.must_close = True
                raise Disconnected
            parts.append(part)
            size += len(part)
        self.left = b"".join(parts)
        return self._take()

    def _take(self) -> bytes:
        body, self.left = self.left[: self._length], self.left[self._length :]
        self.is_read = True
        return body

    def leave_body(self) -> None:
        """One that has arrived is dropped, and the connection stays usable."""
        if len(self.left) >= self._length:
            self._take()
        else:
            super().leave_body()

    async def _disconnected(self) -> None:
        """A client that sends its next request has not."""
        if not self.left:
            # The caller cancels this when its answer is there. The read must survive that, because bytes that it took
            # would be lost: it is a task of its own, and the connection goes on with it.
            self.ahead = self.ahead or asyncio.ensure_future(self._reader.read(READ_BYTES))
            try:
                if not await asyncio.shield(self.ahead):
                    return
            except OSError:
                return
        await asyncio.Event().wait()

    async def _receive_nothing(self) -> MutableMapping[str, Any]:
        raise AssertionError("the fast path reads by itself")


class FastResponse(Response):
    """An answer on the fast path: head and body are one write."""

    __slots__ = ("_server_headers", "_write_bytes")

    def __init__(self, request: Request, write: Callable[[bytes], None], server_headers: bytes) -> None:
        super().__init__(request, self._send_nothing)
        self._write_bytes = write
        self._server_headers = server_headers

    async def send(
        self,
        status: int,
        content: bytes,
        content_type: Header | None,
        extra: Sequence[Header] = (),
    ) -> None:
        self.status = status
        headers = [b"%b: %b\r\n" % header for header in self._headers(status, content, content_type, extra)]
        self._write_bytes(b"HTTP/1.1 %d \r\n%b%b\r\n%b" % (status, b"".join(headers), self._server_headers, content))

    async def _send_nothing(self, message: MutableMapping[str, Any]) -> None:
        raise AssertionError("the fast path has no answers in pieces")


class ServerHeaders:
    """The headers that each answer has. Made once a second, because of the date."""

    def __init__(self, config: Config, is_secure: bool) -> None:
        self._config = config
        self._fixed = as_bytes(fixed_headers(is_secure))
        self._made_at = 0
        self._text = b""

    def text(self) -> bytes:
        now = int(time.time())
        if now != self._made_at:
            self._made_at = now
            self._text = as_bytes(tuple(self._config.response_headers("h11"))) + self._fixed
        return self._text
