"""One client connection of Hypercorn, with a fast path and a stricter way to close."""

import asyncio
from collections.abc import Callable
from ssl import SSLError
from typing import Any

import h11
import hypercorn.asyncio.run
import hypercorn.protocol
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.typing import LifespanState

from gateway.http.fast_path import READ_BYTES, FastRequest, FastResponse, ServerHeaders, recognise
from gateway.http.http2 import Http2
from gateway.http.messages import FRAME_FAST_PATH
from gateway.http.websocket import UNSENT_BYTES_MAX, FrameFastPath

CLOSE_S = 10.0  # the time that the last bytes have to leave
FAREWELL_S = 1.0  # for a client to answer the end of TLS; many never do


class HypercornConnection(TCPServer):
    """Between two requests, data goes to the fast path. A request that the fast path does not recognise goes to the
    server, with everything that belongs to it. Hypercorn alone serves an application without `attend`.

    Hypercorn keeps the socket of an idle client that has disconnected until `keep_alive_timeout`: at a hundred
    connections a second, 7,500 useless descriptors. This class closes it at once, and also when a client reads
    nothing."""

    _has_gone = False
    _is_busy = False  # on the fast path
    _active_at = 0.0  # when the fast path last had something to do

    # Reading

    async def _read_data(self) -> None:
        attend = getattr(getattr(self.app, "app", None), "attend", None)
        is_between = False  # known to be between two requests: only data that the server is given can change that
        while not self.reader.at_eof():
            try:
                data = await self.reader.read(READ_BYTES)
                if data and self._frames.take is not None:
                    await self._take_frames(self._frames.take, data)
                    continue
            except (OSError, SSLError):
                break
            if attend is not None and data and (is_between or self._is_between_requests()):
                rest = await self._serve_fast(attend, data)
                if rest is None:
                    break
                is_between = not rest
                if is_between:
                    continue
                data = rest
            await self.protocol.handle(RawData(data))
        await self.protocol.handle(Closed())
        self._has_gone = True
        await self.idle_task.stop()

    def _is_between_requests(self) -> bool:
        """Whether the server has no part of a request. It returns from `handle` only when it needs data."""
        connection = getattr(self.protocol.protocol, "connection", None)
        return (
            type(connection) is h11.Connection
            and connection.their_state is h11.IDLE
            and connection.our_state is h11.IDLE
            and not len(connection._receive_buffer)
        )

    async def _serve_fast(self, attend: Any, data: bytes) -> bytes | None:
        """What is left for the server; None when the connection is to be closed."""
        while data and (head := recognise(data)) is not None:
            request = FastRequest(head, data, self.reader, self._client)
            response = FastResponse(request, self.writer.write, self._server_headers.text())
            self._is_busy = True
            may_go_on = False
            try:
                await attend(request, response)
                may_go_on = request.is_read and not request.must_close and not self.context.terminated.is_set()
            finally:
                self._is_busy = False
                self._active_at = self.loop.time()
                if request.ahead is not None and not may_go_on:
                    request.ahead.cancel()
            if not may_go_on:
                return None
            if self.writer.transport.get_write_buffer_size() > UNSENT_BYTES_MAX:
                try:
                    await self.writer.drain()
                except ConnectionError:
                    return None
            data = request.left
            if request.ahead is not None:
                data += await self._next_behind(request.ahead)
        return data

    async def _next_behind(self, reading: "asyncio.Task[bytes]") -> bytes:
        """The bytes that arrived while a request waited; empty at the end of the connection."""
        try:
            return await reading
        except (OSError, SSLError):
            return b""

    async def _take_frames(self, take: Callable[[bytes], None], data: bytes) -> None:
        """Of an open stream: plain frames go to the stream, all others to the server."""
        for message, raw in self._frames.framer.feed(data):
            if message is not None:
                take(message)
            else:
                await self.protocol.handle(RawData(raw))
        await self._frames.may_read_on()

    # Idling and closing

    async def _idle_timeout(self) -> None:
        """One timer for the connection instead of one for each request: the fast path only notes the time."""
        while (left_s := self._active_at + self.config.keep_alive_timeout - self.loop.time()) > 0 or self._is_busy:
            try:
                await asyncio.wait_for(self.context.terminated.wait(), max(left_s, 1.0))
            except TimeoutError:
                continue
            if self._is_busy:
                return  # the fast path closes when it has answered
            break
        await asyncio.shield(self._initiate_server_close())

    async def _initiate_server_close(self) -> None:
        await super()._initiate_server_close()
        if self._is_secure:
            self.reader.feed_eof()  # else the reader would wait for the client to end TLS

    async def run(self) -> None:
        self._active_at = self.loop.time()
        self._is_secure = self.writer.get_extra_info("ssl_object") is not None
        peer = self.writer.get_extra_info("peername")  # empty for a socket without an address
        self._client = (str(peer[0]), int(peer[1])) if isinstance(peer, tuple) else None
        self._frames = FrameFastPath(self.writer)
        self._server_headers = ServerHeaders(self.config, self._is_secure)
        self.state = LifespanState({**self.state, FRAME_FAST_PATH: self._frames})  # an application has it in its scope
        await super().run()

    async def _close(self) -> None:
        """Drop what a client does not read in time."""
        timer = self.loop.call_later(CLOSE_S, self.writer.transport.abort)
        try:
            if self._is_secure:
                await self._take_leave()
            else:
                await super()._close()
        finally:
            timer.cancel()

    async def _take_leave(self) -> None:
        """TLS ends when both sides have said so. Many clients never do; do not wait for them."""
        self.writer.transport.set_write_buffer_limits(high=1)
        try:
            await self.writer.drain()  # all of it
            async with asyncio.timeout(FAREWELL_S) as farewell:
                await super()._close()
            if farewell.expired():
                self.loop.call_later(CLOSE_S, self.writer.transport.abort)
                self.reader.feed_eof()
        except OSError:
            pass  # also when data arrives after the end

    async def protocol_send(self, event: Event) -> None:
        if isinstance(event, Updated) and event.idle:
            self._active_at = self.loop.time()
        if not (self._has_gone and isinstance(event, Updated)):  # no client is left to wait for
            await super().protocol_send(event)


def install() -> None:
    """Hypercorn has no setting for its classes."""
    hypercorn.asyncio.run.TCPServer = HypercornConnection  # type: ignore[attr-defined]
    hypercorn.protocol.H2Protocol = Http2  # type: ignore[attr-defined,assignment]
