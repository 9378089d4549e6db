"""The fast path of the stream: ordinary frames of a WebSocket, read and written without the server's machinery.

The server makes the handshake and keeps what is its own: pings, closing, fragments, compressed and oversized messages,
all that breaks the rules. Only a whole, plain message of a client (RFC 6455: final, text or binary, masked, no
extension) and our own answers pass here. `websockets` cuts the frames, so the server always gets whole ones and never
holds half of one while the next is taken from it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterator

from websockets.exceptions import PayloadTooBig, ProtocolError
from websockets.extensions import Extension
from websockets.frames import Frame, Opcode

from corvo.model.limits import BODY_BYTES_MAX

_DATA = (Opcode.TEXT, Opcode.BINARY)
PING_S = 20.0  # a road that nobody uses is closed by the routers on the way
_A_PING = Frame(Opcode.PING, b"").serialize(mask=False)
UNSENT_BYTES_MAX = 64 * 1024  # beyond it nothing more is read from a client, until it has read


class _CompressedFrame(Frame):
    """Its data is still compressed."""


class _Compression(Extension):
    """Lets compressed frames through the parser as they are: the server decompresses them."""

    def decode(self, frame: Frame, *, max_size: int | None = None) -> Frame:
        return _CompressedFrame(frame.opcode, frame.data, frame.fin) if frame.rsv1 else frame


_EXTENSIONS = (_Compression(),)


class Framer:
    """Bytes as they come → frames as they were sent: `(message, b"")` for the stream, `(None, raw)` for the server."""

    def __init__(self) -> None:
        # From the start of the frame that is being read. A long frame comes in many pieces: a bytearray grows by each
        # without a copy of all.
        self._buffer = bytearray()
        self._read = 0  # bytes of it that the parser has taken
        self._parser = self._next_frame()
        self._is_fragmented = False  # a message of several frames has begun: the server puts it together
        self._has_given_up = False  # too large, or not a frame: the server says so, and closes

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
        if frame.opcode is Opcode.TEXT:
            try:
                message.decode()
            except UnicodeDecodeError:
                return None  # the server closes the stream
        return message


def framed(message: bytes) -> bytes:
    return Frame(Opcode.BINARY, message).serialize(mask=False)


class FrameFastPath:
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
