"""Heads of HTTP/1.1. The fast path and the server's own parser (h11) must read the same request: one that they read
differently could be smuggled past whatever stands in front."""

import h11

from gateway.http.fast_path import recognise
from tests.gateway.catalogue import CLOSED, KEPT, LENIENT, SMUGGLED
from tests.gateway.served import INFO, enqueue, request


def beginnings() -> list[bytes]:
    catalogue = [raw for raw, _ in (*KEPT, *CLOSED)] + SMUGGLED + LENIENT
    plain = [
        enqueue(),
        INFO,
        enqueue(b"", "X-API-Key: k", "Accept: */*", "Connection: keep-alive"),
        request("POST", "/api/v1/jobs/s00_job_1/cancel", "Content-Length: 0"),
    ]
    return [raw[:4_000] for raw in (*plain, *catalogue)]


def play(data: bytes) -> None:
    head = recognise(data)
    if head is None:
        return
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(data[: head.end])
    event = connection.next_event()  # raises for what h11 refuses: the fast path must refuse it too
    assert isinstance(event, h11.Request), event
    assert event.method == b"POST" and event.target.decode() == head.path
    assert event.http_version == b"1.1"
    assert list(event.headers) == list(head.headers), head
    given = [value for name, value in event.headers if name == b"content-length"]
    assert [int(value) for value in given] == ([head.length] if given else [])
    assert given or head.length == 0
    assert not any(name == b"transfer-encoding" for name, _ in event.headers)
    assert connection.next_event() in (h11.NEED_DATA,) or head.length == 0
