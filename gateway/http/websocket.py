"""The express lane of the stream: ordinary frames of a WebSocket, read and written without the server's machinery.

The server makes the handshake and keeps what is its own: pings, closing, fragments, compressed and oversized messages,
whatever breaks the rules. All that passes here is a whole, plain message of a client (RFC 6455: final, text or binary,
masked, no extension) and our own answers. Frames are cut here, so the server always gets whole ones and never holds
half of one while the next is taken from it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

from corvo.model.limits import BODY_BYTES_MAX

_TEXT, _BINARY, _CONTINUATION = 0x1, 0x2, 0x0
_FINAL, _MASKED = 0x80, 0x80
_PLAIN = frozenset({_FINAL | _TEXT, _FINAL | _BINARY})
PING_S = 20.0  # a road that nobody uses is closed by the routers on the way
_A_PING = b"\x89\x00"
UNSENT_BYTES_MAX = 64 * 1024  # beyond it nothing more is read from a client, until it has read


class Framer:
    """Bytes as they come → frames as they were sent: `(message, None)` for the lane, `(None, bytes)` for the server."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # of a frame that is not all there
        self._missing = 0  # so many bytes at least
        self._is_fragmented = False  # a message of several frames is under way: the server puts it together
        self._has_given_up = False  # too large, or not a frame: the server says so, and closes

    def feed(self, data: bytes) -> Iterator[tuple[bytes | None, bytes]]:
        self._parts.append(data)
        self._missing -= len(data)
        if self._missing > 0:
            return  # put together once, when it is whole: a long frame comes in many pieces
        buffer = b"".join(self._parts) if len(self._parts) > 1 else data
        self._parts, self._missing = [], 0
        at = 0
        while at < len(buffer) and not self._has_given_up:
            extent = _extent(buffer, at)
            if extent is None:
                self._keep(buffer[at:], 1)
                return
            body, end = extent
            if end - body > BODY_BYTES_MAX:
                self._has_given_up = True
                break
            if end > len(buffer):
                self._keep(buffer[at:], end - len(buffer))
                return
            message = self._plain(buffer, at, body, end)
            yield message, buffer[at:end] if message is None else b""
            at = end
        if at < len(buffer):
            yield None, buffer[at:]

    def _keep(self, part: bytes, missing: int) -> None:
        self._parts, self._missing = [part], missing

    def _plain(self, buffer: bytes, at: int, body: int, end: int) -> bytes | None:
        first = buffer[at]
        opcode = first & 0x0F
        if first in _PLAIN and buffer[at + 1] & _MASKED and not self._is_fragmented:
            message = unmasked(buffer[body:end], buffer[body - 4 : body])
            if opcode == _BINARY or message.isascii() or _is_text(message):
                return message
            return None
        if opcode in (_TEXT, _BINARY, _CONTINUATION):
            self._is_fragmented = not first & _FINAL
        return None


def _extent(buffer: bytes, at: int) -> tuple[int, int] | None:
    """Where a frame's body begins and ends; None while its head is not all there."""
    if len(buffer) < at + 2:
        return None
    length = buffer[at + 1] & 0x7F
    body = at + 2
    if length >= 126:
        size = 2 if length == 126 else 8
        if len(buffer) < body + size:
            return None
        length = int.from_bytes(buffer[body : body + size])
        body += size
    if buffer[at + 1] & _MASKED:
        body += 4
    return body, body + length


def unmasked(body: bytes, mask: bytes) -> bytes:
    """As two large numbers: one operation for all bytes."""
    size = len(body)
    if not size or mask == b"\0\0\0\0":
        return body
    pattern = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(body, "little") ^ int.from_bytes(pattern, "little")).to_bytes(size, "little")


def framed(message: bytes) -> bytes:
    """A server's frame: final, binary, not masked."""
    size = len(message)
    if size < 126:
        return b"\x82%c%b" % (size, message)
    if size < 1 << 16:
        return b"\x82\x7e%b%b" % (size.to_bytes(2), message)
    return b"\x82\x7f%b%b" % (size.to_bytes(8), message)


def _is_text(message: bytes) -> bool:
    try:
        message.decode()
    except UnicodeDecodeError:
        return False  # the server closes with the code for it
    return True


class FrameLane:
    """What a stream and the connection under it have of each other. `take` is set while a stream is open."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.take: Callable[[bytes], None] | None = None
        self.framer = Framer()
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._unsent: list[bytes] = []
        self._pinging: asyncio.TimerHandle | None = None
        self._rest: Callable[[], Awaitable[None]] | None = None

    def open(self, take: Callable[[bytes], None], rest: Callable[[], Awaitable[None]]) -> None:
        """`rest` returns when the stream wants to read on."""
        self.take = take
        self._rest = rest
        self._pinging = self._loop.call_later(PING_S, self._ping)

    def end(self) -> None:
        self.take = None
        if self._pinging is not None:
            self._pinging.cancel()

    def _ping(self) -> None:
        """By a timer of ours: the server's own pings hold a connection that is closed until the next one is due."""
        self._pinging = self._loop.call_later(PING_S, self._ping)
        if not self._writer.is_closing():
            self._writer.write(_A_PING)

    def send(self, message: bytes) -> None:
        """With everything else that is sent in this tick: a write costs more than making what is written."""
        if not self._unsent:
            self._loop.call_soon(self.flush)
        self._unsent.append(framed(message))

    def flush(self) -> None:
        unsent, self._unsent = self._unsent, []
        if unsent and not self._writer.is_closing():
            self._writer.write(b"".join(unsent))

    async def may_read_on(self) -> None:
        """Until the client has read most of what it was sent, and the stream has room for more."""
        if self._rest is not None:
            await self._rest()
        await self.drained()

    async def drained(self) -> None:
        if self._writer.transport.get_write_buffer_size() > UNSENT_BYTES_MAX:
            await self._writer.drain()
