"""Today's lanes on Hypercorn, with libraries in the place of hand-written bytes.

httptools recognises a request, `websockets` cuts and writes frames. The rest of the lanes stays: no task, no queue, one
write.
"""

from collections.abc import Generator, Iterator
from typing import Any

import httptools
from websockets.exceptions import PayloadTooBig, ProtocolError
from websockets.frames import Frame, Opcode

import gateway.http.hypercorn_connection
import gateway.http.websocket
from corvo.model.limits import BODY_BYTES_MAX
from gateway.http.fast_path import Head
from gateway.http.messages import HEADER_BYTES_MAX
from gateway.http.servers.hypercorn import serve as _serve

MUST_RESTART_TO_RENEW = False
HEADERS_MAX = 40
API = b"/api/v1/"
_UNUSUAL = frozenset(
    {b"connection", b"content-encoding", b"expect", b"http2-settings", b"keep-alive", b"proxy-connection", b"te"}
    | {b"trailer", b"transfer-encoding", b"upgrade"}
)
_KEEP_ALIVE = (b"connection", b"keep-alive")
_MESSAGES = (Opcode.TEXT, Opcode.BINARY)


class _Heading:
    """What httptools calls back with."""

    __slots__ = ("headers", "is_whole", "url")

    def __init__(self) -> None:
        self.url = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.is_whole = False

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self.is_whole = True


def recognise(data: bytes) -> Head | None:
    """As `gateway.http.fast_path.recognise`: what is unusual is left to Hypercorn."""
    end = data.find(b"\r\n\r\n", 0, HEADER_BYTES_MAX) + 4
    if end < 4 or not data.startswith(b"POST "):
        return None
    heading = _Heading()
    parser = httptools.HttpRequestParser(heading)
    try:
        parser.feed_data(data[:end])
    except (httptools.HttpParserError, httptools.HttpParserUpgrade):
        return None
    url = heading.url
    if not heading.is_whole or not url.startswith(API) or b"%" in url or b"?" in url or url == API + b"metrics":
        return None
    if parser.get_http_version() != "1.1" or len(heading.headers) > HEADERS_MAX:
        return None
    length, hosts, content_type = -1, 0, b""
    for header in heading.headers:
        name, value = header
        if name == b"content-length":
            if not value.isdigit() or len(value) > 9:
                return None
            length = int(value)  # httptools refuses a second one
        elif name == b"content-type":
            if content_type:
                return None
            content_type = value
        elif name == b"host":
            hosts += 1
        elif name in _UNUSUAL and header != _KEEP_ALIVE:
            return None
    if hosts != 1 or not 0 <= length <= BODY_BYTES_MAX or not data[:end].isascii():
        return None
    return Head(url.decode(), heading.headers, content_type, length, end)


class Framer:
    """As `gateway.http.websocket.Framer`."""

    def __init__(self) -> None:
        self._buffer = b""
        self._at = 0
        self._start = 0  # of the frame that is being read
        self._frame: Generator[None, None, Frame] | None = None
        self._is_fragmented = False
        self._has_given_up = False

    def _read_exact(self, size: int) -> Generator[None, None, bytes]:
        while len(self._buffer) < self._at + size:
            yield
        self._at += size
        return self._buffer[self._at - size : self._at]

    def feed(self, data: bytes) -> Iterator[tuple[bytes | None, bytes]]:
        self._buffer = self._buffer[self._start :] + data if self._start < len(self._buffer) else data
        self._at -= self._start
        self._start = 0
        while self._start < len(self._buffer) and not self._has_given_up:
            self._frame = self._frame or Frame.parse(self._read_exact, mask=True, max_size=BODY_BYTES_MAX)
            try:
                next(self._frame)
                return
            except StopIteration as whole:
                frame: Frame = whole.value
            except (PayloadTooBig, ProtocolError):
                self._has_given_up = True
                break
            self._frame = None
            raw_from, self._start = self._start, self._at
            message = self._plain(frame)
            yield message, self._buffer[raw_from : self._at] if message is None else b""
        if self._has_given_up:
            rest, self._buffer, self._start, self._at = self._buffer[self._start :], b"", 0, 0
            yield None, rest

    def _plain(self, frame: Frame) -> bytes | None:
        if frame.fin and frame.opcode in _MESSAGES and not frame.rsv1 and not self._is_fragmented:
            message = bytes(frame.data)
            if frame.opcode is Opcode.BINARY or message.isascii():
                return message
            try:
                message.decode()
            except UnicodeDecodeError:
                return None
            return message
        if frame.opcode in (*_MESSAGES, Opcode.CONT):
            self._is_fragmented = not frame.fin
        return None


def framed(message: bytes) -> bytes:
    return Frame(Opcode.BINARY, message).serialize(mask=False)


async def serve(*arguments: Any) -> None:
    gateway.http.hypercorn_connection.recognise = recognise  # type: ignore[attr-defined]
    gateway.http.websocket.Framer = Framer  # type: ignore[assignment,misc]
    gateway.http.websocket.framed = framed
    await _serve(*arguments)
