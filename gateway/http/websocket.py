"""The fast path of the stream: plain WebSocket frames, read and written without the server.

The server does the handshake, and handles pings, closing, fragments, compressed and oversized messages, and every
breach of the protocol. Only complete, plain messages of the client (RFC 6455: final, text or binary, masked, no
extension) and our own answers pass here. `websockets` cuts the frames, so that the server gets complete ones only.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterator

from websockets.exceptions import PayloadTooBig, ProtocolError
from websockets.extensions import Extension
from websockets.frames import Frame, Opcode

from corvo.model.limits import BODY_BYTES_MAX

_DATA = (Opcode.TEXT, Opcode.BINARY)
CLOSE_S = 1.0  # after a closing frame, for the client's own
PING_S = 20.0  # routers close connections that are idle
_A_PING = Frame(Opcode.PING, b"").serialize(mask=False)
UNSENT_BYTES_MAX = 64 * 1024  # beyond this, nothing is read from a client until it has read


class _CompressedFrame(Frame):
    """A frame whose data is still compressed."""


class _Compression(Extension):
    """Lets compressed frames through the parser as they are: the server decompresses them."""

    def decode(self, frame: Frame, *, max_size: int | None = None) -> Frame:
        return _CompressedFrame(frame.opcode, frame.data, frame.fin) if frame.rsv1 else frame


_EXTENSIONS = (_Compression(),)


class Framer:
    """Bytes → frames: `(message, b"")` for the stream, `(None, raw)` for the server."""

    def __init__(self) -> None:
        # From the start of the current frame. A long frame comes in many pieces: a bytearray grows without copying
        # all of them.
        self._buffer = bytearray()
        self._read = 0  # bytes that the parser has taken
        self._parser = self._next_frame()
        self._is_fragmented = False  # a message of several frames has begun; the server assembles it
        self._has_given_up = False  # too large, or not a frame: the server closes the stream

    def feed(self, data: bytes) -> Iterator[tuple[bytes | None, bytes]]:
        self._buffer += data
        while self._buffer and not self._has_given_up:
            try:
                next(self._parser)
                return  # it needs more bytes
            except StopIteration as parsed:
                message = self._message_of(parsed.value)
            except (PayloadTooBig, ProtocolError):
                self._has_given_up = True
                break
            raw = b"" if message is not None else bytes(self._buffer[: self._read])
            del self._buffer[: self._read]
            self._parser = self._next_frame()
            yield message, raw
        if self._buffer:
            raw = bytes(self._buffer)
            self._buffer.clear()
            yield None, raw

    def _next_frame(self) -> Generator[None, None, Frame]:
        self._read = 0
        return Frame.parse(self._read_exact, mask=True, max_size=BODY_BYTES_MAX, extensions=_EXTENSIONS)

    def _read_exact(self, size: int) -> Generator[None, None, bytearray]:
        start, end = self._read, self._read + size
        while len(self._buffer) < end:
            yield
        self._read = end
        return self._buffer[start:end]

    def _message_of(self, frame: Frame) -> bytes | None:
        """None if the frame is not a plain message."""
        is_plain = frame.fin and frame.opcode in _DATA and type(frame) is Frame and not self._is_fragmented
        if not is_plain:
            if frame.opcode in _DATA or frame.opcode is Opcode.CONT:
                self._is_fragmented = not frame.fin
            return None
        message = bytes(frame.data)
        if self._read - len(message) != _head_bytes(len(message)):
            return None  # RFC 6455, 5.2: the length has as few bytes as it needs. The server closes the stream
        if frame.opcode is Opcode.TEXT:
            try:
                message.decode()
            except UnicodeDecodeError:
                return None  # the server closes the stream
        return message


def _head_bytes(size: int) -> int:
    """Of a masked frame with so much data."""
    return 6 if size < 126 else 8 if size < 65_536 else 14


def framed(message: bytes) -> bytes:
    return Frame(Opcode.BINARY, message).serialize(mask=False)


class FrameFastPath:
    """Connects a stream and its connection. `take` is set while a stream is open."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.take: Callable[[bytes], None] | None = None
        self.framer = Framer()
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._unsent: list[bytes] = []
        self._pinging: asyncio.TimerHandle | None = None
        self._rest: Callable[[], Awaitable[None]] | None = None

    def open(self, take: Callable[[bytes], None], rest: Callable[[], Awaitable[None]]) -> None:
        """`rest` returns when the stream can read more."""
        self.take = take
        self._rest = rest
        self._pinging = self._loop.call_later(PING_S, self._ping)

    def end(self) -> None:
        self.take = None
        if self._pinging is not None:
            self._pinging.cancel()

    def abort_later(self) -> None:
        """For a stream that the server closes: the client may take this long to answer."""
        self._loop.call_later(CLOSE_S, self._writer.transport.abort)

    def _ping(self) -> None:
        """With our own timer: the server's pings keep a closed connection until the next ping is due."""
        self._pinging = self._loop.call_later(PING_S, self._ping)
        if not self._writer.is_closing():
            self._writer.write(_A_PING)

    def send(self, message: bytes) -> None:
        """Sent at the end of this tick with all other answers: a write costs more than an answer."""
        if not self._unsent:
            self._loop.call_soon(self.flush)
        self._unsent.append(framed(message))

    def flush(self) -> None:
        unsent, self._unsent = self._unsent, []
        if unsent and not self._writer.is_closing():
            self._writer.write(b"".join(unsent))

    async def may_read_on(self) -> None:
        """Wait until the stream has room, and the client has read most of what was sent."""
        if self._rest is not None:
            await self._rest()
        await self.drained()

    async def drained(self) -> None:
        if self._writer.transport.get_write_buffer_size() > UNSENT_BYTES_MAX:
            await self._writer.drain()
