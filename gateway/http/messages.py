"""HTTP requests and responses as plain ASGI: early checks, reading of bodies, writing of answers.

The server lets through more than we accept: bodies of any size, slow bodies, two length headers at once, cleartext
HTTP/2, odd bytes in the path. All of these are refused here.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from time import perf_counter
from typing import Any, NamedTuple, Protocol, TypeVar
from urllib.parse import parse_qsl, unquote

import msgspec

from corvo.endpoint import PlanContext
from corvo.model import ids
from corvo.model.access import Principal
from corvo.model.errors import Refusal
from corvo.model.json_input import validation_refusal
from corvo.model.limits import BODY_BYTES_MAX
from gateway.http.fixed_headers import REQUEST_ID, Header, fixed_headers, missing, request_id

T = TypeVar("T")
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Write = Callable[[bytes], Awaitable[None]]

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
HEADERS_MAX = 100
HEADER_BYTES_MAX = 16 * 1024
PATH_BYTES_MAX = 8 * 1024
HTTP2_STREAMS_MAX = 100  # on one connection; more are refused, and may be sent again
HTTP2_HEAD_BYTES_MAX = 32 * 1024  # as HTTP/2 counts them; beyond this the connection is closed
BODY_TIMEOUT_S = 15.0
LAST_WORD_S = 2.0  # to end a streamed answer: a client that does not read must not delay a gateway that stops
SLASH_IN_NAMES = (
    b"/api/v1/queues/",
    b"/api/v1/workers/",
    b"/api/v1/webhooks/",
)  # where a path may contain a name with a slash
FRAME_FAST_PATH = "corvo.frames"  # in the state of a scope: where the stream reads and writes frames past the server
KEY_HEADER = ids.KEY_HEADER.lower().encode()
ENCODED_SLASH = "\0"  # in `Request.path`: a slash inside a name. No path contains a NUL of its own

to_json = msgspec.json.Encoder().encode
_JSON = (b"content-type", b"application/json")
_CLOSE = (b"connection", b"close")
_CHALLENGE = (b"www-authenticate", b"Bearer")


class ErrorBody(msgspec.Struct, omit_defaults=True):
    error: str
    code: str
    field: str | None = None
    retry_after_ms: int = 0


class Disconnected(Exception):
    """The client disconnected before its request was served."""


class Revocable(Protocol):
    """What decided about a request's credential, and may change its mind."""

    @property
    def is_over(self) -> bool: ...

    async def over(self) -> None:
        """Return when the credential does not hold any more."""


class Streaming(NamedTuple):
    """The body of a streamed answer: `run` writes it piece by piece, and the answer ends when it returns."""

    content_type: bytes
    run: Callable[[Write], Awaitable[None]]


class Request:
    """One request. The body is read on demand, once."""

    __slots__ = (
        "_id",
        "_is_chunked",
        "_is_late",
        "_length",
        "_receive",
        "admission",
        "content_type",
        "context",
        "method",
        "must_close",
        "parameters",
        "path",
        "principal",
        "query",
        "repeat_key",
        "scope",
        "started",
    )

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.started = perf_counter()
        self.scope = scope
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.query: bytes = scope["query_string"]
        self.parameters: tuple[str, ...] = ()  # from the path, once its route is known
        self.principal: Principal  # once it is admitted
        self.context: PlanContext  # of the principal's namespace
        self.admission: Revocable | None = None  # None: nothing can revoke it
        self.content_type = b""
        self.repeat_key = b""  # `Idempotency-Key`: a request with the same key is this one, sent again
        self.must_close = False
        self._receive = receive
        self._length = -1
        self._is_chunked = False
        self._is_late = False
        self._id = b""

    def check(self) -> None:
        """Refuse what the head alone shows to be wrong."""
        scope = self.scope
        if scope["http_version"] == "2" and scope["scheme"] == "http":
            raise Refusal("HTTP_VERSION_NOT_SUPPORTED", "HTTP/2 is supported over TLS only")
        if scope["http_version"] not in ("1.1", "1.0", "2"):
            raise Refusal("HTTP_VERSION_NOT_SUPPORTED", f"HTTP/{scope['http_version']} is not supported")
        if self.method not in METHODS:
            raise Refusal("METHOD_NOT_ALLOWED", f"the method {self.method[:20]} is not supported")
        self._check_path()
        self._check_headers()

    def _check_path(self) -> None:
        raw: bytes = self.scope.get("raw_path") or self.path.encode()
        if len(raw) + len(self.query) > PATH_BYTES_MAX:
            self.must_close = True
            raise Refusal("URI_TOO_LONG", f"the URL is longer than {PATH_BYTES_MAX} bytes")
        if raw[:1] != b"/":
            raise Refusal("BAD_REQUEST", "the path must begin with /")
        if b"%" in raw:
            lowered = raw.lower()
            if b"%00" in lowered or "\ufffd" in self.path:
                raise Refusal("BAD_REQUEST", "the URL has an encoded NUL, or bytes that are not UTF-8")
            if b"%2f" in lowered:
                if not raw.startswith(SLASH_IN_NAMES):
                    raise Refusal(
                        "BAD_REQUEST",
                        "the URL has an encoded slash; only the name of a queue or a worker may have one",
                    )
                pieces = raw.decode(errors="replace").split("/")
                self.path = "/".join(unquote(piece).replace("/", ENCODED_SLASH) for piece in pieces)

    def _check_headers(self) -> None:
        headers: list[tuple[bytes, bytes]] = self.scope["headers"]
        size = 0
        for name, value in headers:
            size += len(name) + len(value)
            if name == b"content-length":
                if not value.isdigit() or len(value) > 20 or self._length >= 0:
                    self.must_close = True
                    raise Refusal("BAD_REQUEST", "content-length is not one number")
                self._length = int(value)
            elif name == b"content-type":
                self.content_type = value
            elif name == KEY_HEADER:
                if self.repeat_key:
                    raise Refusal("BAD_REQUEST", "idempotency-key is there twice")
                self.repeat_key = value
            elif name == b"transfer-encoding":
                self._is_chunked = True
            elif name == b"content-encoding":
                raise Refusal("UNSUPPORTED_MEDIA_TYPE", "compressed bodies are not supported; send plain JSON")
        if len(headers) > HEADERS_MAX or size > HEADER_BYTES_MAX:
            self.must_close = True
            raise Refusal(
                "HEADERS_TOO_LARGE", f"at most {HEADERS_MAX} headers and {HEADER_BYTES_MAX} bytes in total are accepted"
            )
        if self._is_chunked and self._length >= 0:
            # Two lengths for one body are used to smuggle requests past a proxy. Trust neither.
            self.must_close = True
            raise Refusal("BAD_REQUEST", "content-length and transfer-encoding exclude each other")
        if self._length > BODY_BYTES_MAX:
            self.must_close = True
            raise Refusal("BODY_TOO_LARGE", f"a body of {self._length} bytes; at most {BODY_BYTES_MAX} are accepted")

    async def body(self) -> bytes:
        """The whole body, within the limits on size and time."""
        # This does what `asyncio.timeout` does, for a third of the cost: every request passes here.
        task = asyncio.current_task()
        assert task is not None
        timer = asyncio.get_running_loop().call_later(BODY_TIMEOUT_S, self._give_up, task)
        try:
            return await self._read()
        except asyncio.CancelledError:
            if not self._is_late or task.uncancel() > 0:
                raise
            self.must_close = True
            raise Refusal("REQUEST_TIMEOUT", f"the body did not arrive within {BODY_TIMEOUT_S:g} s") from None
        finally:
            timer.cancel()

    def _give_up(self, task: "asyncio.Task[Any]") -> None:
        self._is_late = True
        task.cancel()

    async def _read(self) -> bytes:
        parts: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            part = message.get("body", b"")
            size += len(part)
            if size > BODY_BYTES_MAX:
                self.must_close = True
                raise Refusal("BODY_TOO_LARGE", f"the body is longer than {BODY_BYTES_MAX} bytes")
            parts.append(part)
            if not message.get("more_body"):
                return b"".join(parts)

    @property
    def id(self) -> bytes:
        """In the answer, and in log lines about it."""
        if not self._id:
            self._id = request_id(self.scope["headers"])
        return self._id

    def leave_body(self) -> None:
        """It will not be read, so no other request can follow on this connection."""
        self.must_close = self.must_close or self._is_chunked or self._length > 0

    def header(self, name: bytes) -> str:
        """The value of a header, by its lower-case name; empty if it is missing."""
        headers: list[tuple[bytes, bytes]] = self.scope["headers"]
        return next((value.decode("latin-1") for known, value in headers if known == name), "")

    async def hand_on(self, app: App, send: Send) -> None:
        """Pass the request to another application, which reads the body itself."""
        await app(self.scope, self._receive, send)

    async def hung_up(self) -> None:
        """Return when the client has disconnected, or its credential was revoked. Call it only after the body was
        read."""
        if self.admission is None:
            await self._disconnected()
            return
        waits = [asyncio.ensure_future(self._disconnected()), asyncio.ensure_future(self.admission.over())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def _disconnected(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass


class Response:
    """Sends one answer, with the time that it took."""

    __slots__ = ("_request", "_send", "headers", "status")

    def __init__(self, request: Request, send: Send) -> None:
        self.headers: list[Header] | None = None  # added to every answer to this request
        self._request = request
        self._send = send
        self.status = 0

    async def json(self, status: int, body: Any, extra: Sequence[Header] = ()) -> None:
        await self.send(status, b"" if body is None else to_json(body), _JSON if body is not None else None, extra)

    async def refusal(self, refusal: Refusal) -> None:
        extra = []
        if refusal.retry_after_ms:
            extra.append((b"retry-after", f"{refusal.retry_after_ms / 1000:.3f}".encode()))
        if refusal.code == "UNAUTHORIZED":
            extra.append(_CHALLENGE)
        body = ErrorBody(refusal.message, refusal.code, refusal.field, refusal.retry_after_ms)
        await self.json(refusal.status, body, extra)

    async def send(
        self,
        status: int,
        content: bytes,
        content_type: Header | None,
        extra: Sequence[Header] = (),
    ) -> None:
        self.status = status
        headers = self._headers(status, content, content_type, extra) + self._fixed()
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": b"" if self._request.method == "HEAD" else content})

    def _fixed(self) -> list[Header]:
        """That every answer has. The fast path writes them as bytes."""
        return list(fixed_headers(_is_secure(self._request)))

    def _headers(
        self,
        status: int,
        content: bytes,
        content_type: Header | None,
        extra: Sequence[Header],
    ) -> list[Header]:
        headers = [] if status == 204 else [(b"content-length", b"%d" % len(content))]
        headers += (_timing(self._request), (REQUEST_ID, self._request.id))
        if content_type is not None:
            headers.append(content_type)
        if extra:
            headers += extra
        if self.headers:
            headers += self.headers
        if self._request.must_close:
            headers.append(_CLOSE)
        return headers

    async def stream(self, status: int, streaming: Streaming) -> None:
        """Write a streamed answer. Neither browsers nor proxies may cache or buffer it."""
        self.status = status
        headers = [
            (b"content-type", streaming.content_type),
            (b"x-accel-buffering", b"no"),
            _timing(self._request),
            (REQUEST_ID, self._request.id),
            *self._fixed(),
            *(self.headers or ()),
        ]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        if self._request.method != "HEAD":
            await streaming.run(self._write)
        try:
            async with asyncio.timeout(LAST_WORD_S):
                await self._send({"type": "http.response.body", "body": b""})
        except TimeoutError:
            raise Disconnected from None

    async def _write(self, piece: bytes) -> None:
        await self._send({"type": "http.response.body", "body": piece, "more_body": True})

    async def relay(self, message: MutableMapping[str, Any]) -> None:
        """Send what another application sends, add what every answer has, and note the status."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            request = self._request
            own: list[Header] = list(message["headers"])
            own += (_timing(request), (REQUEST_ID, request.id), *missing(own, _is_secure(request)))
            message = {**message, "headers": own + (self.headers or [])}
        await self._send(message)


def _is_secure(request: Request) -> bool:
    return request.scope.get("scheme") in ("https", "wss")


def _timing(request: Request) -> tuple[bytes, bytes]:
    return b"server-timing", b"proc;dur=%.3f" % ((perf_counter() - request.started) * 1000)


def is_json(content_type: bytes) -> bool:
    if content_type == b"application/json":  # nearly always
        return True
    kind, _, parameters = content_type.lower().partition(b";")
    return kind.strip() == b"application/json" and parameters.strip() in (b"", b"charset=utf-8", b'charset="utf-8"')


def require_json(content_type: bytes) -> None:
    """Refuse a body that is not declared as JSON. A form of another site cannot, so it cannot post here."""
    if not is_json(content_type):
        shown = content_type.decode("latin-1")[:100] or "missing"
        raise Refusal("UNSUPPORTED_MEDIA_TYPE", f"content-type is {shown}; send application/json")


def parse_query(kind: type[T], query: bytes) -> T:
    """The query string as its struct."""
    try:
        return msgspec.convert(dict(parse_qsl(query.decode(), keep_blank_values=True)), kind, strict=False)
    except msgspec.ValidationError as error:
        raise validation_refusal(error, kind) from None
    except UnicodeDecodeError as error:
        raise Refusal("VALIDATION_ERROR", f"the query string: {error}") from None
