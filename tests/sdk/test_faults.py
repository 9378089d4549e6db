"""The proxy of the conformance suite: what matches a fault meets it, everything else passes."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from sdk.conformance.faults import HOST, FaultProxy
from sdk.conformance.scenario import Fault


class Echo(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen: list[str] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.seen.append(self.path)
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def proxy() -> Iterator[FaultProxy]:
    Echo.seen = []
    with ThreadingHTTPServer((HOST, 0), Echo) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            with FaultProxy(server.server_address[1]) as proxy:
                yield proxy
        finally:
            server.shutdown()
            thread.join(10)


def test_requests_pass_on_one_connection(proxy: FaultProxy) -> None:
    with httpx.Client(base_url=proxy.url) as client:
        assert [client.post("/a", content=text).text for text in ("one", "two")] == ["one", "two"]
    assert Echo.seen == ["/a", "/a"]


def test_a_status_is_answered_instead_of_the_server(proxy: FaultProxy) -> None:
    proxy.add(Fault("^POST /a ", times=1, status=429, retry_after_s=0.25))
    with httpx.Client(base_url=proxy.url) as client:
        refused = client.post("/a", content=b"x")
        others = [client.post(path, content=b"x").status_code for path in ("/b", "/a")]

    assert (refused.status_code, refused.headers["retry-after"], refused.json()["code"]) == (429, "0.250", "OVERLOADED")
    assert others == [200, 200]
    assert (Echo.seen, proxy.used) == (["/b", "/a"], 1)


@pytest.mark.parametrize(("cut", "seen"), [("before", []), ("after", ["/a"])])
def test_a_cut_breaks_the_connection_before_or_after_the_server_had_the_request(
    proxy: FaultProxy, cut: str, seen: list[str]
) -> None:
    proxy.add(Fault("^POST /a ", cut=cut))
    with httpx.Client(base_url=proxy.url) as client, pytest.raises(httpx.TransportError):
        client.post("/a", content=b"x")

    assert Echo.seen == seen
