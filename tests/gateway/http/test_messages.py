"""The edge of HTTP: what is refused from the head alone, how a body is read, how an answer leaves."""

import asyncio
from typing import Any
from urllib.parse import unquote

import msgspec
import pytest

import gateway.http.messages as edge
from corvo.model.errors import Refusal
from corvo.model.limits import BODY_BYTES_MAX
from gateway.http.messages import (
    HEADER_BYTES_MAX,
    HEADERS_MAX,
    PATH_BYTES_MAX,
    Disconnected,
    Request,
    Response,
    require_json,
)
from tests.gateway.asgi import JSON, a_scope, parts


def checked(**fields: Any) -> Request:
    request = Request(a_scope(**fields), parts())
    request.check()
    return request


def refused(**fields: Any) -> tuple[str, bool]:
    """The code, and whether the connection is closed after it."""
    request = Request(a_scope(**fields), parts())
    with pytest.raises(Refusal) as refusal:
        request.check()
    return refusal.value.code, request.must_close


def header(name: str, value: str = "") -> tuple[bytes, bytes]:
    return name.encode(), value.encode()


# The head


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_known_methods_pass(method: str) -> None:
    assert checked(method=method).method == method


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "PRI", "BREW", "get", "", "X" * 5_000])
def test_every_other_method_is_refused(method: str) -> None:
    assert refused(method=method) == ("METHOD_NOT_ALLOWED", False)


@pytest.mark.parametrize(
    ("version", "scheme", "is_served"),
    [
        ("1.0", "http", True),
        ("1.1", "http", True),
        ("1.1", "https", True),
        ("2", "https", True),
        ("2", "http", False),  # cleartext HTTP/2: a way round the path rules of a proxy
        ("2.0", "http", False),
        ("9.9", "http", False),
        ("0.9", "http", False),
        ("3", "https", False),
        ("1", "http", False),
    ],
)
def test_http_1_is_spoken_anywhere_and_http_2_over_tls_only(version: str, scheme: str, is_served: bool) -> None:
    if is_served:
        checked(http_version=version, scheme=scheme)
    else:
        assert refused(http_version=version, scheme=scheme)[0] == "HTTP_VERSION_NOT_SUPPORTED"


@pytest.mark.parametrize(
    ("raw_path", "path"),
    [
        (b"*", "*"),
        (b"http://elsewhere.example/api/v1/info", "http://elsewhere.example/api/v1/info"),
        (b"elsewhere:443", "elsewhere:443"),
        (b"/api/v1/jobs/%00", "/api/v1/jobs/\0"),
        (b"/api/v1/jobs/a%2fcancel", "/api/v1/jobs/a/cancel"),
        (b"/api/v1/jobs/a%2Fcancel", "/api/v1/jobs/a/cancel"),
        (b"/api/v1/jobs/%ff", "/api/v1/jobs/\ufffd"),
        (b"/api/v1/jobs/%c0%af", "/api/v1/jobs/\ufffd\ufffd"),
    ],
)
def test_an_address_that_two_readers_could_read_differently_is_refused(raw_path: bytes, path: str) -> None:
    assert refused(path=path, raw_path=raw_path)[0] == "BAD_REQUEST"


@pytest.mark.parametrize(
    ("raw_path", "path"),
    [
        (b"/api/v1/jobs/%41", "/api/v1/jobs/A"),
        (b"/api/v1/jobs/%252f", "/api/v1/jobs/%2f"),  # encoded twice: a percent sign, which names no job
        (b"/api/v1/jobs/%c3%a4", "/api/v1/jobs/ä"),
        (b"/api/v1/queues/%252f/pause", "/api/v1/queues/%2f/pause"),
        (b"", "/"),  # a server that hands over no raw path
    ],
)
def test_other_encoded_addresses_pass(raw_path: bytes, path: str) -> None:
    assert checked(path=path, raw_path=raw_path).path == path


@pytest.mark.parametrize(
    ("raw_path", "path"),
    [
        (b"/api/v1/queues/a%2fb/pause", "/api/v1/queues/a\0b/pause"),
        (b"/api/v1/queues/a%2Fpause", "/api/v1/queues/a\0pause"),
        (b"/api/v1/queues/a%252Fb%2Fc%41", "/api/v1/queues/a%2Fb\0cA"),
        (b"/api/v1/webhooks/a%2Fb", "/api/v1/webhooks/a\0b"),
    ],
)
def test_an_encoded_slash_in_a_queues_name_parts_nothing(raw_path: bytes, path: str) -> None:
    assert checked(path=unquote(raw_path.decode()), raw_path=raw_path).path == path


@pytest.mark.parametrize(
    "raw_path", [b"/api/v1/queues%2Fa", b"/api/v1/queues/a%00b", b"/api/v1/queues/a%2F%ff", b"/%2F"]
)
def test_elsewhere_it_is_refused(raw_path: bytes) -> None:
    path = unquote(raw_path.decode(), errors="replace")

    assert refused(path=path, raw_path=raw_path)[0] == "BAD_REQUEST"


def test_an_address_may_be_as_long_as_the_limit_and_no_longer() -> None:
    longest = "/" + "a" * (PATH_BYTES_MAX - 1)

    checked(path=longest)
    assert refused(path=longest + "a") == ("URI_TOO_LONG", True)
    assert refused(path=longest, query_string=b"a") == ("URI_TOO_LONG", True)


def test_headers_may_be_as_many_as_the_limit_and_no_more() -> None:
    most = [header(f"x-{number}") for number in range(HEADERS_MAX)]

    checked(headers=most)
    assert refused(headers=[*most, header("x-more")]) == ("HEADERS_TOO_LARGE", True)


def test_headers_may_be_as_large_together_as_the_limit_and_no_larger() -> None:
    largest = [header("x", "a" * (HEADER_BYTES_MAX - 1))]

    checked(headers=largest)
    assert refused(headers=[*largest, header("y")]) == ("HEADERS_TOO_LARGE", True)


@pytest.mark.parametrize(
    ("headers", "code", "must_close"),
    [
        ([header("content-length", "-1")], "BAD_REQUEST", True),
        ([header("content-length", "+1")], "BAD_REQUEST", True),
        ([header("content-length", "1, 1")], "BAD_REQUEST", True),
        ([header("content-length", "0x10")], "BAD_REQUEST", True),
        ([header("content-length", "1_000")], "BAD_REQUEST", True),
        ([header("content-length", "1.0")], "BAD_REQUEST", True),
        ([header("content-length", " 1")], "BAD_REQUEST", True),
        ([header("content-length", "")], "BAD_REQUEST", True),
        ([header("content-length", "٣")], "BAD_REQUEST", True),  # a digit, in Arabic
        ([header("content-length", "9" * 21)], "BAD_REQUEST", True),
        ([header("content-length", "9" * 5_000)], "BAD_REQUEST", True),  # more digits than int() takes
        ([header("content-length", str(BODY_BYTES_MAX + 1))], "BODY_TOO_LARGE", True),
        ([header("content-length", "1"), header("content-length", "2")], "BAD_REQUEST", True),
        ([header("content-length", "1"), header("content-length", "1")], "BAD_REQUEST", True),
        ([header("content-length", "1"), header("transfer-encoding", "chunked")], "BAD_REQUEST", True),
        ([header("transfer-encoding", "chunked"), header("content-length", "0")], "BAD_REQUEST", True),
        ([header("content-encoding", "gzip")], "UNSUPPORTED_MEDIA_TYPE", False),
        ([header("content-encoding", "gzip, gzip")], "UNSUPPORTED_MEDIA_TYPE", False),
        ([header("content-encoding", "br"), header("content-length", "9" * 9)], "UNSUPPORTED_MEDIA_TYPE", False),
    ],
)
def test_headers_that_make_a_body_doubtful_are_refused(
    headers: list[tuple[bytes, bytes]], code: str, must_close: bool
) -> None:
    assert refused(headers=headers) == (code, must_close)


def test_a_body_may_be_announced_up_to_the_limit() -> None:
    checked(headers=[header("content-length", str(BODY_BYTES_MAX))])
    checked(headers=[header("content-length", "0")])
    checked(headers=[header("transfer-encoding", "chunked")])


# The kind of body


@pytest.mark.parametrize(
    "content_type",
    [
        b"application/json",
        b"Application/JSON",
        b"application/json;",
        b"application/json; charset=utf-8",
        b"application/json;charset=UTF-8",
        b'application/json; charset="utf-8"',
        b" application/json ",
    ],
)
def test_json_in_utf_8_is_read(content_type: bytes) -> None:
    require_json(content_type)


@pytest.mark.parametrize(
    "content_type",
    [
        b"",
        b"text/plain",
        b"text/json",
        b"application/jsonp",
        b"application/x-www-form-urlencoded",
        b"multipart/form-data; boundary=x",
        b"application/json; charset=utf-16",
        b"application/json; charset=latin-1",
        b"application/json, text/plain",
        b"application/vnd.api+json",
        b"\xff\xfe",
        b"a" * 10_000,
    ],
)
def test_every_other_kind_of_body_is_refused(content_type: bytes) -> None:
    with pytest.raises(Refusal) as refusal:
        require_json(content_type)

    assert refusal.value.status == 415
    assert len(refusal.value.message) < 200


# The body


def body_of(*chunks: bytes) -> bytes:
    return asyncio.run(Request(a_scope(), parts(*chunks)).body())


@pytest.mark.parametrize(
    ("chunks", "body"),
    [
        ((b"",), b""),
        ((b"{}",), b"{}"),
        ((b"{", b"}"), b"{}"),
        ((b"{}", b""), b"{}"),
        ((b"", b"{", b"", b"}", b""), b"{}"),
        (tuple(b"[1,2,3]"[at : at + 1] for at in range(7)), b"[1,2,3]"),
    ],
)
def test_a_body_is_the_sum_of_its_chunks(chunks: tuple[bytes, ...], body: bytes) -> None:
    assert body_of(*chunks) == body


def test_a_body_may_be_as_long_as_the_limit_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge, "BODY_BYTES_MAX", 10)

    assert body_of(b"12345", b"67890") == b"1234567890"
    assert body_of(b"1234567890") == b"1234567890"
    for chunks in [(b"12345", b"678901"), (b"12345678901",), (b"12345678901", b""), (b"1",) * 11]:
        request = Request(a_scope(), parts(*chunks))
        with pytest.raises(Refusal) as refusal:
            asyncio.run(request.body())
        assert (refusal.value.code, request.must_close) == ("BODY_TOO_LARGE", True)


def test_no_more_than_the_limit_is_taken_from_a_body_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge, "BODY_BYTES_MAX", 1_000)
    taken = 0

    async def receive() -> Any:
        nonlocal taken
        taken += 1
        return {"type": "http.request", "body": b"x" * 100, "more_body": True}

    with pytest.raises(Refusal, match="longer than 1000 bytes"):
        asyncio.run(Request(a_scope(), receive).body())

    assert taken == 11


@pytest.mark.parametrize("chunks", [(), (b"{",)])
def test_a_body_that_does_not_arrive_in_time_is_given_up(
    chunks: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge, "BODY_TIMEOUT_S", 0.01)
    left = list(chunks)

    async def receive() -> Any:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": True}
        return await asyncio.Event().wait()

    request = Request(a_scope(), receive)
    with pytest.raises(Refusal) as refusal:
        asyncio.run(request.body())

    assert (refusal.value.status, request.must_close) == (408, True)
    assert "0.01 s" in refusal.value.message


def test_a_body_that_trickles_is_given_up_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is for the whole body, not from one chunk to the next."""
    monkeypatch.setattr(edge, "BODY_TIMEOUT_S", 0.05)

    async def receive() -> Any:
        await asyncio.sleep(0.005)
        return {"type": "http.request", "body": b"x", "more_body": True}

    with pytest.raises(Refusal, match="did not arrive"):
        asyncio.run(Request(a_scope(), receive).body())


@pytest.mark.parametrize("chunks", [(), (b"{",)])
def test_a_client_that_leaves_in_the_middle_is_no_error(chunks: tuple[bytes, ...]) -> None:
    messages = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    messages.append({"type": "http.disconnect"})

    async def receive() -> Any:
        return messages.pop(0)

    with pytest.raises(Disconnected):
        asyncio.run(Request(a_scope(), receive).body())


def test_hanging_up_is_told_when_it_happens() -> None:
    messages = [{"type": "http.request", "body": b"", "more_body": False}, {"type": "http.disconnect"}]

    async def receive() -> Any:
        return messages.pop(0)

    asyncio.run(asyncio.wait_for(Request(a_scope(), receive).hung_up(), 1))

    assert messages == []


# The answer


FIXED = {"x-request-id", "x-content-type-options", "referrer-policy", "cache-control", "content-security-policy"}


def sent_by(status: int, body: Any, method: str = "POST", must_close: bool = False) -> tuple[dict[str, str], bytes]:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    request = Request(a_scope(method), parts())
    request.must_close = must_close
    response = Response(request, send)
    if isinstance(body, Refusal):
        asyncio.run(response.refusal(body))
    else:
        asyncio.run(response.json(status, body))
    assert sent[0]["status"] == response.status == status
    return {name.decode(): value.decode() for name, value in sent[0]["headers"]}, sent[1]["body"]


def test_an_answer_is_json_with_its_length_and_its_time() -> None:
    headers, content = sent_by(201, {"a": 1})

    assert content == b'{"a":1}'
    assert headers["content-type"] == "application/json"
    assert headers["content-length"] == "7"
    assert headers["server-timing"].startswith("proc;dur=")
    assert set(headers) == {"content-type", "content-length", "server-timing", *FIXED}


def test_an_empty_answer_has_neither_body_nor_length_nor_kind() -> None:
    headers, content = sent_by(204, None)

    assert content == b""
    assert set(headers) == {"server-timing", *FIXED}


def test_the_answer_to_head_has_the_length_but_not_the_body() -> None:
    headers, content = sent_by(200, {"a": 1}, method="HEAD")

    assert (headers["content-length"], content) == ("7", b"")


def test_a_refusal_is_a_sentence_a_code_and_a_field() -> None:
    _, content = sent_by(400, Refusal("VALIDATION_ERROR", "queue: missing", "queue"))

    assert msgspec.json.decode(content) == {"error": "queue: missing", "code": "VALIDATION_ERROR", "field": "queue"}


def test_a_refusal_that_passes_says_when_to_come_back() -> None:
    headers, content = sent_by(429, Refusal("OVERLOADED", "too much", retry_after_ms=250))

    assert headers["retry-after"] == "0.250"
    assert msgspec.json.decode(content) == {"error": "too much", "code": "OVERLOADED", "retry_after_ms": 250}


def test_after_a_doubtful_request_the_connection_is_closed() -> None:
    assert sent_by(400, Refusal("BAD_REQUEST", "no"), must_close=True)[0]["connection"] == "close"
    assert "connection" not in sent_by(400, Refusal("BAD_REQUEST", "no"))[0]


def test_the_default_headers_of_these_tests_pass() -> None:
    assert checked(headers=[JSON]).content_type == b"application/json"
