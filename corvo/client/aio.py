"""The asynchronous driver: as `http.py`, to await. The names are the same."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from . import DEFAULT_SERVER, calls
from .answers import BulkProgress, EventView, Gap
from .async_methods import AsyncMethods
from .attempts import PAUSE_S_FIRST, PAUSE_S_MAX, Attempts
from .audit_export import ACCEPT_LINES, LineSplitter
from .bodies import AuditExportQuery, EventsQuery
from .calls import HttpCall, ServerRefused
from .connection import CallPatience, TraceHeaders, checked_server, no_trace, standing_headers, unreachable
from .errors import CorvoError, Unreachable
from .sse import SILENCE_S, EventCursor, FrameReader, ProgressCursor, StreamCursor, Unreadable
from .trust import trusting

A = TypeVar("A")
H = TypeVar("H")


class AsyncClient(AsyncMethods):
    """As `Client`. Use it in the event loop that it is first used in."""

    def __init__(
        self,
        server: str = DEFAULT_SERVER,
        *,
        timeout_s: float = 10.0,  # for one answer, beyond the time the server may hold it back
        deadline_s: float = 15.0,  # for all attempts of one call together; 0: one attempt
        waits_for_server: bool = True,  # try again, within the deadline, when nobody listens at the address
        ca_cert: str | None = None,  # file of the authorities to trust; None: see `trusting`
        api_key: str | None = None,  # sent with every request
        namespace: str | None = None,  # to act in, if the key may choose
        trace: TraceHeaders = no_trace,  # headers such as `traceparent`, asked before each request
        connections_max: int = 100,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.server = checked_server(server)
        self._patience = CallPatience(timeout_s, deadline_s, waits_for_server)
        self._trace = trace
        self._sleep = sleep
        self._clock = clock
        self.credentials, headers = standing_headers(api_key, namespace)
        self.secure = trusting(ca_cert) if self.server.startswith("https:") else None
        self._http = httpx.AsyncClient(
            base_url=self.server,
            verify=self.secure or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),  # not used; httpx would load authorities
            headers=headers,
            limits=httpx.Limits(max_connections=connections_max, max_keepalive_connections=connections_max),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    def within(self, deadline_s: float) -> "AsyncClient":
        """This client with another deadline, on the same connections: `await client.within(2).enqueue(…)`."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, _patience=self._patience._replace(deadline_s=deadline_s))
        return other

    async def call(self, call: HttpCall[A]) -> A:
        attempts = Attempts(call, self._clock(), *self._patience)
        while True:
            try:
                return await self._send(call, *attempts.begin(self._clock()))
            except CorvoError as error:
                pause = attempts.pause_after(error, self._clock())
                if pause is None:
                    raise
            await self._sleep(pause)

    async def _send(self, call: HttpCall[A], headers: dict[str, str], patience_s: float) -> A:
        async with self._reached(patience_s):
            response = await self._http.request(
                call.method,
                call.path,
                content=call.body,
                headers={**self._trace(), **headers},
                timeout=httpx.Timeout(min(self._patience.timeout_s, patience_s), read=patience_s),
            )
        return calls.read_answer(call, response.status_code, response.headers, response.content)

    # Answers that go on

    def events(self, query: EventsQuery | None = None, *, after: str = "") -> AsyncIterator[EventView | Gap]:
        """Events of jobs and queues as they happen, for ever. A stream that breaks goes on behind the last event that
        came. A server that refuses or cannot be reached at first raises."""
        return self.follow(EventCursor(query, after))

    def bulk_progress(self, bulk_id: str) -> AsyncIterator[BulkProgress]:
        """The progress of a bulk operation, until it has ended."""
        return self.follow(ProgressCursor(calls.call_of("bulk_progress", bulk_id=bulk_id).path))

    async def export_audit_logs(self, query: AuditExportQuery | None = None) -> AsyncIterator[bytes]:
        """The audit log, oldest first: one JSON record a line."""
        call: HttpCall[None] = calls.call_of("export_audit_logs", None, query)
        lines = LineSplitter()
        async with self._open_stream(call.path, {}, ACCEPT_LINES, SILENCE_S) as response:
            await self._require_ok(response)
            async for piece in response.aiter_bytes():
                for line in lines.feed(piece):
                    yield line
        for line in lines.end():
            yield line

    async def follow(
        self, cursor: StreamCursor[H], note_break: Callable[[str], Awaitable[None]] | None = None
    ) -> AsyncIterator[H]:
        """What a stream says, through broken connections. `note_break` is told of each, and waits."""
        pause, has_begun = PAUSE_S_FIRST, False
        while not cursor.has_ended():
            try:
                async for heard in self._connection(cursor):
                    pause, has_begun = PAUSE_S_FIRST, True
                    if heard is not None:
                        yield heard
                trouble = "the server ended the stream"
            except (ServerRefused, Unreachable) as error:
                if not has_begun or isinstance(error, Unreadable):
                    raise
                trouble = str(error)
            if cursor.has_ended():
                return
            if note_break is not None:
                await note_break(trouble)
            else:
                await self._sleep(pause)
                pause = min(2 * pause, PAUSE_S_MAX)

    async def _connection(self, cursor: StreamCursor[H]) -> AsyncIterator[H | None]:
        """What is heard on one connection; None for a sign of life."""
        reader = FrameReader()
        async with self._open_stream(*cursor.request(), SILENCE_S) as response:
            await self._require_ok(response)
            async for line in response.aiter_lines():
                frame = reader.feed(line)
                if frame is not None:
                    yield cursor.read(frame)

    async def _require_ok(self, response: httpx.Response) -> None:
        if response.status_code != 200:
            raise calls.refusal_of(response.status_code, response.headers, await response.aread())

    @asynccontextmanager
    async def _open_stream(
        self, path: str, query: Mapping[str, Any], headers: Mapping[str, str], silence_s: float
    ) -> AsyncIterator[httpx.Response]:
        """An answer that goes on; it is lost when nothing comes for so long."""
        timeout = httpx.Timeout(self._patience.timeout_s, read=silence_s)
        headers = {**self._trace(), **headers}
        params = dict(query) or None  # an empty one would cut the query of the path
        async with (
            self._reached(silence_s),
            self._http.stream("GET", path, params=params, headers=headers, timeout=timeout) as response,
        ):
            yield response

    @asynccontextmanager
    async def _reached(self, patience_s: float) -> AsyncIterator[None]:
        try:
            yield
        except httpx.TransportError as error:
            raise unreachable(error, self.server, patience_s, self.secure is not None) from None
