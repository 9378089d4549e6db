"""Web pages of other origins: what a browser is told, and what OPTIONS and HEAD answer."""

from typing import Any

import pytest

from gateway.access.guard import Policy
from gateway.http.cors import Cors
from tests.gateway.asgi import House, Reply, a_scope, call, parts

PAGE = "https://app.example.com"


def send(house: House, method: str, path: str, origin: str = PAGE, body: bytes = b"") -> Reply:
    headers = [(b"origin", origin.encode()), (b"content-type", b"application/json")]
    return house.ask(a_scope(method, path, headers if origin else headers[1:]), body)


def a_house(*origins: str) -> House:
    house = House(policy=Policy("off", origins=frozenset(origins)))
    house.app._cors = Cors(origins)
    return house


@pytest.mark.parametrize(
    ("origins", "origin", "told"),
    [
        ((), PAGE, None),
        (("*",), PAGE, "*"),
        (("*",), "", None),
        ((PAGE,), PAGE, PAGE),
        ((PAGE,), "https://evil.example.com", None),
        ((PAGE, "http://localhost:3000"), "http://localhost:3000", "http://localhost:3000"),
        ((PAGE,), "https://app.example.com.evil.org", None),
        ((PAGE,), "null", None),
    ],
)
def test_a_page_is_told_that_it_may_read_the_answer(origins: tuple[str, ...], origin: str, told: Any) -> None:
    is_foreign = bool(origin) and told is None
    with a_house(*origins) as house:
        for method, path, body, status in (
            ("POST", "/api/v1/enqueue", b'{"queue": "mail"}', 403 if is_foreign else 201),
            ("POST", "/api/v1/enqueue", b"{}", 403 if is_foreign else 400),
            ("GET", "/docs", b"", 200),
            ("OPTIONS", "/api/v1/enqueue", b"", 200),
            ("GET", "/api/v1/nowhere", b"", 404),
        ):
            reply = send(house, method, path, origin, body)
            assert (reply.status, reply.headers.get("access-control-allow-origin")) == (status, told), (method, path)


def test_a_cache_keeps_answers_for_pages_apart() -> None:
    with a_house(PAGE) as house:
        assert send(house, "GET", "/api/v1/info", PAGE).headers["vary"] == "origin"
        assert send(house, "GET", "/api/v1/info", "").headers["vary"] == "origin"


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/api/v1/enqueue", "OPTIONS, POST"),
        ("/api/v1/schedules/nightly", "DELETE, GET, HEAD, OPTIONS, PUT"),
        ("/api/v1/metrics", "GET, HEAD, OPTIONS"),
        ("/healthz", "GET, HEAD, OPTIONS"),
    ],
)
def test_options_tells_what_is_served(path: str, allowed: str) -> None:
    with a_house() as house:
        reply = send(house, "OPTIONS", path)

    assert (reply.status, reply.headers["allow"], reply.content) == (200, allowed, b"")
    assert "POST" in reply.headers["access-control-allow-methods"]
    assert "content-type" in reply.headers["access-control-allow-headers"]


def test_options_of_nothing_is_a_404() -> None:
    with a_house() as house:
        assert send(house, "OPTIONS", "/api/v1/nowhere").code == "NOT_FOUND"


@pytest.mark.parametrize("path", ["/api/v1/info", "/api/v1/queues", "/api/v1/schedules"])
def test_head_is_get_without_the_body(path: str) -> None:
    with a_house() as house:
        full, head = send(house, "GET", path), send(house, "HEAD", path)

    assert (head.status, head.content) == (full.status, b"")
    assert head.headers["content-length"] == full.headers["content-length"]


def test_head_where_there_is_no_get_is_refused() -> None:
    with a_house() as house:
        reply = house.runner.run(call(house.app, a_scope("HEAD", "/api/v1/enqueue", []), parts()))

    assert (reply.status, reply.content) == (405, b"")
