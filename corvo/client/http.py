"""The synchronous driver: sends calls over httpx and sleeps between attempts (`attempts.py`)."""

import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from . import DEFAULT_SERVER, calls
from .answers import BulkProgress, EventView, Gap
from .attempts import PAUSE_S_FIRST, PAUSE_S_MAX, Attempts
from .audit_export import ACCEPT_LINES, split_lines
from .bodies import AuditExportQuery, EventsQuery
from .calls import HttpCall, ServerRefused
from .connection import CallPatience, TraceHeaders, checked_server, no_trace, standing_headers, unreachable
from .errors import BadServer as BadServer
from .errors import CorvoError
from .errors import Unreachable as Unreachable
from .errors import UntrustedServer as UntrustedServer
from .methods import Methods
from .sse import SILENCE_S, EventCursor, FrameReader, ProgressCursor, StreamCursor, Unreadable
from .trust import trusting

A = TypeVar("A")
H = TypeVar("H")


class Client(Methods):
    """One connection pool to one server; a method for each endpoint (`methods.py`). Threads may share it.

    `sleep` and `clock` are handed in by tests. `secure` is the TLS context of its connections, None without TLS, and
    `credentials` the headers that identify it: both for other connections to the same server.
    """

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
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.server = checked_server(server)
        self._patience = CallPatience(timeout_s, deadline_s, waits_for_server)
        self._trace = trace
        self._sleep = sleep
        self._clock = clock
        self.credentials, headers = standing_headers(api_key, namespace)
        self.secure = trusting(ca_cert) if self.server.startswith("https:") else None
        self._http = httpx.Client(
            base_url=self.server,
            verify=self.secure or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),  # not used; httpx would load authorities
            headers=headers,
            limits=httpx.Limits(max_connections=connections_max, max_keepalive_connections=connections_max),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def within(self, deadline_s: float) -> "Client":
        """This client with another deadline, on the same connections: `client.within(2).enqueue(…)`."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, _patience=self._patience._replace(deadline_s=deadline_s))
        return other

    def call(self, call: HttpCall[A]) -> A:
        attempts = Attempts(call, self._clock(), *self._patience)
        while True:
            try:
                return self._send(call, *attempts.begin(self._clock()))
            except CorvoError as error:
                pause = attempts.pause_after(error, self._clock())
                if pause is None:
                    raise
            self._sleep(pause)

    def _send(self, call: HttpCall[A], headers: dict[str, str], patience_s: float) -> A:
        with self._reached(patience_s):
            response = self._http.request(
                call.method,
                call.path,
                content=call.body,
                headers={**self._trace(), **headers},
                timeout=httpx.Timeout(min(self._patience.timeout_s, patience_s), read=patience_s),
            )
        return calls.read_answer(call, response.status_code, response.headers, response.content)

    # Answers that go on

    def events(self, query: EventsQuery | None = None, *, after: str = "") -> Iterator[EventView | Gap]:
        """Events of jobs and queues as they happen, for ever. A stream that breaks goes on behind the last event that
        came. A server that refuses or cannot be reached at first raises."""
        return self.follow(EventCursor(query, after))

    def bulk_progress(self, bulk_id: str) -> Iterator[BulkProgress]:
        """The progress of a bulk operation, until it has ended."""
        return self.follow(ProgressCursor(calls.call_of("bulk_progress", bulk_id=bulk_id).path))

    def export_audit_logs(self, query: AuditExportQuery | None = None) -> Iterator[bytes]:
        """The audit log, oldest first: one JSON record a line."""
        call: HttpCall[None] = calls.call_of("export_audit_logs", None, query)
        with self.open_stream(call.path, {}, ACCEPT_LINES, SILENCE_S) as response:
            self._require_ok(response)
            yield from split_lines(response.iter_bytes())

    def follow(self, cursor: StreamCursor[H], note_break: Callable[[str], None] | None = None) -> Iterator[H]:
        """What a stream says, through broken connections. `note_break` is told of each, and waits."""
        pause, has_begun = PAUSE_S_FIRST, False
        while not cursor.has_ended():
            try:
                for heard in self._connection(cursor):
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
                note_break(trouble)
            else:
                self._sleep(pause)
                pause = min(2 * pause, PAUSE_S_MAX)

    def _connection(self, cursor: StreamCursor[H]) -> Iterator[H | None]:
        """What is heard on one connection; None for a sign of life."""
        reader = FrameReader()
        with self.open_stream(*cursor.request(), SILENCE_S) as response:
            self._require_ok(response)
            for line in response.iter_lines():
                frame = reader.feed(line)
                if frame is not None:
                    yield cursor.read(frame)

    def _require_ok(self, response: httpx.Response) -> None:
        if response.status_code != 200:
            raise calls.refusal_of(response.status_code, response.headers, response.read())

    @contextmanager
    def open_stream(
        self, path: str, query: Mapping[str, Any], headers: Mapping[str, str], silence_s: float
    ) -> Iterator[httpx.Response]:
        """An answer that goes on; it is lost when nothing comes for so long."""
        timeout = httpx.Timeout(self._patience.timeout_s, read=silence_s)
        headers = {**self._trace(), **headers}
        params = dict(query) or None  # an empty one would cut the query of the path
        with (
            self._reached(silence_s),
            self._http.stream("GET", path, params=params, headers=headers, timeout=timeout) as response,
        ):
            yield response

    @contextmanager
    def _reached(self, patience_s: float) -> Iterator[None]:
        try:
            yield
        except httpx.TransportError as error:
            raise unreachable(error, self.server, patience_s, self.secure is not None) from None
