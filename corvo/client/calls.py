"""What to send for each request and how to read what comes back. Pure: no socket, no clock.

Routes and types are written from the server's endpoints (`routes.py`), so they cannot drift from the server's.
A driver (`http.py`, `aio.py`) sends it and hands status, headers and bytes to `read_answer`.
"""

import functools
from collections.abc import Mapping
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from .bodies import Body
from .errors import ServerRefused as ServerRefused
from .refusals import class_of
from .routes import ROUTES, Repeats

PREFIX = "/api/v1"
REASON_CHARS_MAX = 300  # of an answer that is not ours: a proxy's page must not fill the screen

A = TypeVar("A")


class HttpCall(NamedTuple, Generic[A]):
    method: str
    path: str
    body: bytes | None
    answers: Mapping[int, Any]  # status → type of the answer; None: an empty one
    wait_s: float = 0.0  # how long the server may hold the answer back on purpose
    repeats: Repeats = "never"  # whether it may be sent again when no answer came


class _ErrorBody(msgspec.Struct):
    error: str
    code: str = ""
    field: str | None = None


def call_of(
    name: str, body: msgspec.Struct | None = None, query: msgspec.Struct | None = None, /, **parameters: str
) -> HttpCall[A]:
    """The call of an endpoint, by its name. `methods.py` says which `A` it answers with."""
    route = ROUTES[name]
    path = PREFIX + route.path.format_map({key: quote(value, safe="") for key, value in parameters.items()})
    if query is not None and (named := urlencode(query_of(query))):
        path = f"{path}?{named}"
    content = None if body is None else msgspec.json.encode(without_defaults(body))
    return HttpCall(
        route.method, path, content, route.answers, route.wait_s + getattr(body, "timeout", 0.0), route.repeats
    )


def read_answer(call: HttpCall[A], status: int, headers: Mapping[str, str], content: bytes) -> A:
    """The typed answer, or the refusal raised."""
    if status not in call.answers:
        raise refusal_of(status, headers, content)
    expected = call.answers[status]
    if expected is None:
        return None  # type: ignore[return-value]  # the call's own type says that this answer may be empty
    try:
        return _decoder(expected).decode(content)  # type: ignore[no-any-return]  # `A` is that type, by construction
    except msgspec.MsgspecError as error:
        raise ServerRefused(
            "UNREADABLE_ANSWER", f"the answer cannot be read ({error}): is the server of another version?", status
        ) from None


def query_of(query: msgspec.Struct) -> dict[str, Any]:
    fields = without_defaults(query)
    return {name: str(value).lower() if isinstance(value, bool) else value for name, value in fields.items()}


def without_defaults(struct: msgspec.Struct) -> dict[str, Any]:
    """Only what differs from the default is sent: a default that the server changes takes effect without a new client.
    Documents are sent whole."""
    given = ((field, getattr(struct, field.name)) for field in msgspec.structs.fields(struct))
    return {field.encode_name: _lean(value) for field, value in given if not _is_default(value, field)}


def _lean(value: Any) -> Any:
    if isinstance(value, Body):
        return without_defaults(value)
    if isinstance(value, dict):
        return {key: _lean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_lean(item) for item in value]
    return value


def _is_default(value: Any, field: msgspec.structs.FieldInfo) -> bool:
    default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    if isinstance(default, msgspec.UnsetType):  # a document, of which nothing else is known, not even how it compares
        return value is msgspec.UNSET
    return bool(value == default)


@functools.cache
def _decoder(answer: Any) -> "msgspec.json.Decoder[Any]":
    return msgspec.json.Decoder(answer)


def refusal_of(status: int, headers: Mapping[str, str], content: bytes) -> ServerRefused:
    try:
        body = _decoder(_ErrorBody).decode(content)
    except msgspec.MsgspecError:  # not an answer of ours: a proxy, or another program on this port
        text = " ".join(content.decode(errors="replace").split())[:REASON_CHARS_MAX]
        body = _ErrorBody(f"HTTP {status} instead of an answer of Corvo's: {text or 'no text'}")
    kind = class_of(body.code, status)
    return kind(body.code or f"HTTP_{status}", body.error, status, _retry_after_s(headers), body.field)


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Only seconds: the other form of the header, a date, is never sent by Corvo."""
    try:
        return max(0.0, float(headers.get("retry-after", "")))
    except ValueError:
        return None
