"""HTTP/2 on a connection of Hypercorn: each stream is a request to the gateway.

It replaces Hypercorn's own implementation, which a client can bring to a standstill (decision 24). Everything is
bounded: streams at a time, including streams that the client has reset and that are still being served; resets by the
client; the size of a head; and unread body bytes, by the flow-control window. There are no WebSockets over HTTP/2: a
client opens a connection with HTTP/1.1 for one.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import unquote

import h2.config
import h2.connection
import h2.events
import h2.settings
from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.utils import filter_pseudo_headers, suppress_body

from gateway.http.messages import HTTP2_HEAD_BYTES_MAX, HTTP2_STREAMS_MAX, Scope

RESETS_MAX = 100  # streams reset by the client, beyond those that were answered; then the connection is closed
FRAME_BYTES_MAX = 9 + 16 * 1024  # a frame header, and the smallest limit that HTTP/2 allows
WINDOW_S = 30.0  # how long an answer waits for a client that does not read

_UNPRINTABLE = re.compile(rb"[^!-~]")
_GONE = {"type": "http.disconnect"}


class Http2:
    """One connection. Hypercorn creates it, passes it what arrives (`handle`) and sends its output (`send`)."""

    def __init__(
        self,
        app: Any,
        config: Config,
        context: Any,
        task_group: Any,
        state: Any,
        ssl: bool,
        client: Any,
        server: Any,
        send: Callable[[Event], Awaitable[None]],
    ) -> None:
        self.config = config
        self.connection = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=False, header_encoding=None)  # bytes
        )
        bounds = {
            h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: HTTP2_STREAMS_MAX,
            h2.settings.SettingCodes.MAX_HEADER_LIST_SIZE: HTTP2_HEAD_BYTES_MAX,
        }
        self.connection.local_settings = h2.settings.Settings(client=False, initial_values=bounds)
        self.connection.decoder.max_header_list_size = HTTP2_HEAD_BYTES_MAX
        self._app = app.app
        self._context = context
        self._spawn = task_group.spawn
        self._fixed = {"scheme": "https" if ssl else "http", "client": client, "server": server}
        self._send = send
        self._writing = asyncio.Lock()
        self._exchanges: dict[int, Exchange] = {}
        self._running = 0  # including streams that the client has reset
        self._answered = 0
        self._resets = 0
        self._is_idle = True
        self._is_closed = False

    async def initiate(self, headers: list[tuple[bytes, bytes]] | None = None, settings: bytes | None = None) -> None:
        """With headers and settings: from an HTTP/1.1 request that asked for an upgrade; it is the first stream."""
        if settings is None:
            self.connection.initiate_connection()
        else:
            self.connection.initiate_upgrade_connection(settings)
        await self.flush()
        if headers is not None:
            self._begin(1, headers)
            self._exchanges[1].end()

    async def handle(self, event: Event) -> None:
        if isinstance(event, Closed):
            await self._close(ErrorCodes.NO_ERROR)
            return
        if not isinstance(event, RawData):
            return
        try:
            happened = self.connection.receive_data(event.data)
        except ProtocolError:
            await self.flush()  # h2 has queued the reason for the client
            await self._send(Closed())
            return
        is_over = False
        for one in happened:
            self._take(one)
            is_over = is_over or isinstance(one, h2.events.ConnectionTerminated)
        await self.flush()
        if (fault := self._fault()) is not None:
            await self._close(fault)
        if is_over or fault is not None:
            await self._send(Closed())
        elif self._is_idle and self._running:
            self._is_idle = False
            await self._send(Updated(idle=False))

    def _fault(self) -> ErrorCodes | None:
        """The error of a frame that h2 accepts and we do not."""
        if self._resets > RESETS_MAX + self._answered:
            return ErrorCodes.ENHANCE_YOUR_CALM
        if len(self.connection.incoming_buffer._data) > FRAME_BYTES_MAX:
            return ErrorCodes.FRAME_SIZE_ERROR  # h2 would first read all of it, up to 16 MB
        return None

    def _take(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.RequestReceived):
            self._begin(event.stream_id, event.headers)
        elif isinstance(event, h2.events.DataReceived):
            exchange = self._exchanges.get(event.stream_id)
            if exchange is not None:
                exchange.feed(event.data, event.flow_controlled_length)
            else:
                self.release(event.stream_id, event.flow_controlled_length)
        elif isinstance(event, h2.events.StreamEnded):
            if (exchange := self._exchanges.get(event.stream_id)) is not None:
                exchange.end()
        elif isinstance(event, h2.events.StreamReset):
            self._resets += 1
            if (exchange := self._exchanges.pop(event.stream_id, None)) is not None:
                exchange.drop()
        elif isinstance(event, h2.events.WindowUpdated | h2.events.RemoteSettingsChanged):
            for exchange in self._exchanges.values():
                exchange.has_room.set()

    def _begin(self, stream_id: int, headers: Any) -> None:
        if self._running >= HTTP2_STREAMS_MAX or self._context.terminated.is_set():
            self.reset(stream_id, ErrorCodes.REFUSED_STREAM)  # nothing was done for it, so it may be sent again
            return
        exchange = Exchange(self, stream_id, _scope(headers, self._fixed))
        self._exchanges[stream_id] = exchange
        self._running += 1
        self._spawn(self._serve, exchange)

    async def _serve(self, exchange: "Exchange") -> None:
        try:
            await self._app(exchange.scope, exchange.receive, exchange.send)
        finally:
            self._running -= 1
            self._answered += exchange.is_answered
            self._exchanges.pop(exchange.stream_id, None)
            exchange.finish()
        await self.flush()
        if not self._running and not self._is_closed:
            self._is_idle = True
            if self._context.terminated.is_set():
                await self._close(ErrorCodes.NO_ERROR)
            await self._send(Updated(idle=True))

    async def _close(self, why: ErrorCodes) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        try:
            self.connection.close_connection(why)
        except ProtocolError:
            pass  # the client closed it
        for exchange in self._exchanges.values():
            exchange.drop()
        self._exchanges.clear()
        if not self._writing.locked():  # the writer may be here because its write failed
            await self.flush()

    # For exchanges

    async def flush(self) -> None:
        """Write h2's output. Only the task that holds the lock takes it from h2, so cancelling a task that waits
        loses nothing."""
        async with self._writing:
            if data := self.connection.data_to_send():
                await self._send(RawData(data))

    def reset(self, stream_id: int, why: ErrorCodes) -> None:
        try:
            self.connection.reset_stream(stream_id, why)
        except ProtocolError:
            pass  # the stream has ended

    def release(self, stream_id: int, size: int) -> None:
        """These bytes were read: the client may send as many more."""
        if size and not self._is_closed:
            self.connection.acknowledge_received_data(size, stream_id)


class Exchange:
    """One request and its answer: ASGI's `receive` and `send`."""

    def __init__(self, protocol: Http2, stream_id: int, scope: Scope) -> None:
        self.stream_id = stream_id
        self.scope = scope
        self.has_room = asyncio.Event()  # set when the client's window may have room
        self.is_answered = False
        self._protocol = protocol
        self._body = bytearray()
        self._unread = 0  # bytes that it takes up in the window
        self._is_whole = False
        self._is_told = False  # whether the application knows that the body is complete
        self._is_gone = False
        self._news = asyncio.Event()
        self._is_bare = scope["method"] == "HEAD"  # the answer has no body

    # What arrives

    def feed(self, data: bytes, size: int) -> None:
        self._body += data
        self._unread += size
        self._news.set()

    def end(self) -> None:
        self._is_whole = True
        self._news.set()

    def drop(self) -> None:
        """The client has reset the stream."""
        self._is_gone = True
        self._news.set()
        self.has_room.set()

    def finish(self) -> None:
        """Nothing more will be read or sent."""
        if not self._is_gone and not (self.is_answered and self._is_whole):
            # The answer was sent before the end of the body: the client need not send the rest.
            self._protocol.reset(self.stream_id, ErrorCodes.NO_ERROR if self.is_answered else ErrorCodes.INTERNAL_ERROR)
        self._protocol.release(self.stream_id, self._unread)
        self._unread = 0

    # What the gateway calls

    async def receive(self) -> MutableMapping[str, Any]:
        while not self._is_gone and not self._body and (not self._is_whole or self._is_told):
            self._news.clear()
            await self._news.wait()
        if self._is_gone:
            return _GONE
        body, self._body = bytes(self._body), bytearray()
        self._is_told = self._is_whole
        self._protocol.release(self.stream_id, self._unread)
        self._unread = 0
        await self._protocol.flush()
        return {"type": "http.request", "body": body, "more_body": not self._is_told}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if self._is_gone:
            return
        try:
            if message["type"] == "http.response.start":
                self._is_bare = suppress_body(self.scope["method"], message["status"])
                fixed = self._protocol.config.response_headers("h2")
                head = [(b":status", b"%d" % message["status"]), *message["headers"], *fixed]
                self._protocol.connection.send_headers(self.stream_id, head)  # without the headers of HTTP/1.1 only
            else:
                await self._write(b"" if self._is_bare else message["body"], not message.get("more_body", False))
        except ProtocolError:
            self.drop()  # the stream or the connection has ended

    async def _write(self, body: bytes, is_last: bool) -> None:
        connection = self._protocol.connection
        at = 0
        while at < len(body):
            self.has_room.clear()
            room = min(connection.local_flow_control_window(self.stream_id), connection.max_outbound_frame_size)
            if room > 0:
                connection.send_data(self.stream_id, body[at : at + room], is_last and at + room >= len(body))
                at += room
            await self._protocol.flush()
            if room <= 0 and not await self._gets_room():
                return
        if is_last:
            if not body:
                connection.end_stream(self.stream_id)
            self.is_answered = True
        await self._protocol.flush()

    async def _gets_room(self) -> bool:
        try:
            async with asyncio.timeout(WINDOW_S):
                await self.has_room.wait()
        except TimeoutError:
            self._protocol.reset(self.stream_id, ErrorCodes.CANCEL)
            self.drop()
        return not self._is_gone


def _scope(headers: list[tuple[bytes, bytes]], fixed: dict[str, Any]) -> Scope:
    pseudo = {name: value for name, value in headers if name[:1] == b":"}
    target = _UNPRINTABLE.sub(lambda found: b"%%%02X" % found[0][0], pseudo.get(b":path", b""))  # CONNECT has none
    raw_path, _, query = target.partition(b"?")
    return {
        "type": "http",
        "asgi": {"spec_version": "2.1", "version": "3.0"},
        "http_version": "2",
        "method": pseudo[b":method"].decode("latin-1"),
        "path": unquote(raw_path.decode()),
        "raw_path": raw_path,
        "query_string": query,
        "root_path": "",
        "headers": filter_pseudo_headers(headers),
        "state": {},
        "extensions": {},
        **fixed,
    }
