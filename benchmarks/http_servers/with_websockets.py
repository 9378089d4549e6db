"""A WebSocket by `websockets` without I/O: the library reads and writes every frame.

It implements the part of `gateway.http.websocket.FrameFastPath` that the gateway's stream needs.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import unquote

from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from corvo.model.limits import BODY_BYTES_MAX
from gateway.http.messages import FRAME_FAST_PATH

_GONE = {"type": "websocket.disconnect", "code": 1006}


class WebSocket:
    """The connection after its upgrade, and the fast path that the stream finds in its scope."""

    def __init__(self, app: Any, transport: Any, url: bytes, headers: list[tuple[bytes, bytes]]) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport = transport
        self._protocol = ServerProtocol(max_size=BODY_BYTES_MAX)
        self._request: Any = None
        self._take: Callable[[bytes], None] | None = None
        self._rest: Callable[[], Awaitable[None]] | None = None
        self._parts: list[bytes] = []
        self._is_text = False
        self._is_flushing = False
        self._is_lost = False
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._events: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
        self._events.put_nowait({"type": "websocket.connect"})
        # The library insists on reading the handshake itself.
        self._protocol.receive_data(
            b"GET %b HTTP/1.1\r\n%b\r\n" % (url, b"".join([b"%b: %b\r\n" % header for header in headers]))
        )
        events = self._protocol.events_received()
        if not events or not isinstance(events[0], Request):
            transport.write(b"HTTP/1.1 400 \r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            transport.close()
            return
        self._request = events[0]
        raw_path, _, query = url.partition(b"?")
        wanted = b",".join(value for name, value in headers if name == b"sec-websocket-protocol").decode("latin-1")
        scope = {
            "type": "websocket",
            "asgi": {"version": "3.0", "spec_version": "2.1"},
            "http_version": "1.1",
            "scheme": "ws",
            "path": unquote(raw_path.decode("latin-1")),
            "raw_path": raw_path,
            "query_string": query,
            "headers": headers,
            "subprotocols": [name.strip() for name in wanted.split(",") if name.strip()],
            "state": {FRAME_FAST_PATH: self},
            "extensions": {},
        }
        self._serving = self._loop.create_task(self._serve(app, scope))

    async def _serve(self, app: Any, scope: MutableMapping[str, Any]) -> None:
        await app(scope, self._events.get, self._send)
        if not self._is_lost:
            self.flush()
            self._transport.close()

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        protocol = self._protocol
        if message["type"] == "websocket.accept":
            response = protocol.accept(self._request)
            if message.get("subprotocol"):
                response.headers["Sec-WebSocket-Protocol"] = message["subprotocol"]
            protocol.send_response(response)
        elif message["type"] == "websocket.close":
            if protocol.state is State.CONNECTING:
                protocol.send_response(protocol.reject(403, ""))
            elif protocol.state is State.OPEN:
                protocol.send_close(message.get("code", 1000), message.get("reason", ""))
        else:
            protocol.send_binary(message["bytes"])
        self.flush()

    def feed(self, data: bytes) -> None:
        if not data or self._request is None:
            return
        self._protocol.receive_data(data)
        for event in self._protocol.events_received():
            if isinstance(event, Frame) and event.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
                self._frame(event)
        self.flush()  # pongs and close frames
        if self._protocol.close_expected():
            self._events.put_nowait(_GONE)
            self._transport.close()
        elif self._rest is not None and not self._may_read_on(self._rest()):
            self._transport.pause_reading()
            self._loop.create_task(self._read_on_later(self._rest))

    def _frame(self, frame: Frame) -> None:
        if frame.opcode is not Opcode.CONT:
            self._parts, self._is_text = [], frame.opcode is Opcode.TEXT
        self._parts.append(bytes(frame.data))
        if not frame.fin:
            return
        message = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        if self._is_text and not message.isascii():
            try:
                message.decode()
            except UnicodeDecodeError:
                self._protocol.fail(1007)
                return
        if self._take is not None:
            self._take(message)

    def _may_read_on(self, rest: Any) -> bool:
        """The coroutine nearly always ends without waiting, and then needs no task."""
        if not self._has_room.is_set():
            rest.close()
            return False
        try:
            rest.send(None)
        except StopIteration:
            return True
        rest.close()
        return False

    async def _read_on_later(self, rest: Callable[[], Awaitable[None]]) -> None:
        await rest()
        await self.drained()
        if not self._is_lost:
            self._transport.resume_reading()

    def lost(self) -> None:
        self._is_lost = True
        self._has_room.set()
        self._events.put_nowait(_GONE)

    # Called by the stream

    def open(self, take: Callable[[bytes], None], rest: Callable[[], Awaitable[None]]) -> None:
        self._take, self._rest = take, rest

    def end(self) -> None:
        self._take = self._rest = None

    def send(self, message: bytes) -> None:
        if self._protocol.state is not State.OPEN:
            return
        self._protocol.send_binary(message)
        if not self._is_flushing:
            self._is_flushing = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        self._is_flushing = False
        data = b"".join(self._protocol.data_to_send())
        if data and not self._is_lost:
            self._transport.write(data)

    def may_write(self, is_so: bool) -> None:
        """Flow control, called by the transport."""
        if is_so:
            self._has_room.set()
        else:
            self._has_room.clear()

    async def drained(self) -> None:
        await self._has_room.wait()
