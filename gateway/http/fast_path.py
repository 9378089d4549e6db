"""The express lane: ordinary requests, served in the coroutine that read them and answered in one write.

What Hypercorn does for a request (two parsers' worth of events, a task, a queue, three writes, a timer that is made
and cancelled) costs more than everything that we do for it. Nearly all requests of producers and workers look alike:
a POST to the interface, HTTP/1.1, a few plain headers, a length. Such a head is recognised here from its bytes; the
request then takes the same way through the gateway as any other (`Gateway.attend`), without the server's machinery.

The lane judges nothing. A head that is in any way unusual (another method, chunks, an upgrade, a folded header, two
lengths, bytes beyond ASCII) is not recognised, and the server reads it as it always would.
"""

import asyncio
import re
import time
from collections.abc import Callable, MutableMapping
from typing import Any, NamedTuple

from hypercorn.config import Config

from corvo.model.limits import BODY_BYTES_MAX
from gateway.http.messages import HEADER_BYTES_MAX, Disconnected, Request

READ_BYTES = 64 * 1024
_HEAD = re.compile(
    rb"POST (/api/v1/(?!metrics )[A-Za-z0-9/_.-]+) HTTP/1\.1\r\n((?:[A-Za-z0-9-]+: ?[!-~][ -~]*\r\n){1,40})\r\n"
)
# Headers that change how a message is read or what becomes of the connection: the server knows what to do with them.
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
_KEEP_ALIVE = (b"connection", b"keep-alive")  # what HTTP/1.1 does anyway, and many clients say


class Head(NamedTuple):
    path: str
    headers: list[tuple[bytes, bytes]]
    content_type: bytes
    length: int
    end: int  # where the body begins


def recognise(data: bytes) -> Head | None:
    match = _HEAD.match(data)
    if match is None or match.end() > HEADER_BYTES_MAX:
        return None
    length = -1
    hosts = 0
    content_type = b""
    headers = []
    for line in match[2].split(b"\r\n")[:-1]:
        name, _, value = line.partition(b":")
        name, value = header = name.lower(), value.strip()
        headers.append(header)
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
        elif name in _UNUSUAL and header != _KEEP_ALIVE:
            return None
    if hosts != 1 or not 0 <= length <= BODY_BYTES_MAX:
        return None
    return Head(match[1].decode(), headers, content_type, length, match.end())


class FastRequest(Request):
    """A request of the lane. Its head has been checked by being recognised."""

    __slots__ = ("_reader", "ahead", "is_read", "left")

    def __init__(self, head: Head, data: bytes, reader: asyncio.StreamReader) -> None:
        scope = {"method": "POST", "path": head.path, "query_string": b"", "headers": head.headers}
        super().__init__(scope, self._receive_nothing)
        self.content_type = head.content_type
        self._length = head.length
        self._reader = reader
        self.left = data[head.end :]  # the body, and what was sent ahead of its answer
        self.is_read = False
        self.ahead: asyncio.Task[bytes] | None = None  # reads what comes next, while we wait

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

    async def hung_up(self) -> None:
        """Returns when the client is gone. One that sends the next request is not."""
        if not self.left:
            # Whoever watches is cancelled when it has what it waits for, and that takes effect too late for the next
            # to read: so the reading goes on by itself, and is handed to the next.
            self.ahead = self.ahead or asyncio.ensure_future(self._reader.read(READ_BYTES))
            try:
                if not await asyncio.shield(self.ahead):
                    return
            except OSError:
                return
        await asyncio.Event().wait()

    async def _receive_nothing(self) -> MutableMapping[str, Any]:
        raise AssertionError("the lane reads by itself")


class FastWriter:
    """An answer's two ASGI messages, as one write."""

    __slots__ = ("_head", "_server_headers", "_write")

    def __init__(self, write: Callable[[bytes], None], server_headers: bytes) -> None:
        self._write = write
        self._server_headers = server_headers
        self._head = b""

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._head = b"HTTP/1.1 %d \r\n%b%b\r\n" % (
                message["status"],
                b"".join([b"%b: %b\r\n" % header for header in message["headers"]]),
                self._server_headers,
            )
        else:
            assert not message.get("more_body"), "an answer that goes on is not of this lane"
            self._write(self._head + message["body"])


class ServerHeaders:
    """What the server adds to each answer, made once a second: it holds the date."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._made_at = 0
        self._text = b""

    def text(self) -> bytes:
        now = int(time.time())
        if now != self._made_at:
            self._made_at = now
            self._text = b"".join([b"%b: %b\r\n" % header for header in self._config.response_headers("h11")])
        return self._text
