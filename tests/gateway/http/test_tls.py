"""TLS in front of the gateway, by both servers: who is let in, what is spoken, and that nobody else is disturbed."""

import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from gateway.http.servers import granian, hypercorn
from gateway.http.tls_reload import Certificate
from tests.gateway.served import (
    INFO,
    PATIENCE_S,
    Served,
    Talk,
    a_fetch,
    a_server,
    chunked,
    descriptors,
    enqueue,
    request,
    wait_until,
)
from tests.support.authority import Authority

pytestmark = pytest.mark.system

SERVERS: dict[str, Any] = {"hypercorn": hypercorn, "granian": granian}


@pytest.fixture(scope="module")
def authority() -> Iterator[Authority]:
    with tempfile.TemporaryDirectory(prefix="corvo-") as folder:
        yield Authority(Path(folder))


@pytest.fixture(scope="module", params=SERVERS)
def served(request: pytest.FixtureRequest, authority: Authority) -> Iterator[Served]:
    with a_server(SERVERS[request.param].serve, authority=authority, is_quiet=True) as server:
        yield server


def url(served: Served) -> str:
    return f"https://localhost:{served.port}"


# What is spoken


def test_plain_requests_and_unusual_ones_share_a_connection(served: Served, authority: Authority) -> None:
    """The first kind goes by the fast path, where there is one."""
    with Talk(served, authority.context()) as talk:
        for _ in range(3):
            assert talk.ask(enqueue()).status == 201
            assert talk.ask(INFO).status == 200
            assert talk.ask(chunked(b'5\r\n{"que\r\nc\r\nue": "mail"}\r\n0\r\n\r\n')).status == 201
            assert talk.ask(enqueue(b"{")).status == 400


def test_requests_sent_ahead_and_in_pieces_are_answered_in_order(served: Served, authority: Authority) -> None:
    with Talk(served, authority.context()) as talk:
        talk.say(b"".join(enqueue(b'{"queue": "ahead", "payload": %d}' % number) for number in range(100)))
        heard = [talk.hear() for _ in range(100)]
        for byte in enqueue():
            talk.say(bytes([byte]))

        assert {one.status for one in heard} == {201}
        assert talk.hear().status == 201
    jobs = [one.json["job_id"] for one in heard]
    assert jobs == sorted(set(jobs)), "ids sort by age"


@pytest.mark.parametrize("is_two", [False, True], ids=["HTTP/1.1", "HTTP/2"])
def test_large_bodies_and_answers_come_through_whole(served: Served, authority: Authority, is_two: bool) -> None:
    queue = f"large.{is_two}"
    jobs = [{"queue": queue, "payload": "x" * 900} for _ in range(900)]
    with httpx.Client(verify=authority.context(), http2=is_two, base_url=url(served)) as client:
        made = client.post("/api/v1/enqueue/batch", json={"jobs": jobs}).json()["job_ids"]
        wanted = {"queues": [queue], "worker_id": "w", "count": 500}
        fetched = client.post("/api/v1/fetch/batch", json=wanted).json()["jobs"]

    assert len(set(made)) == 900
    assert [(job["job_id"], len(job["payload"])) for job in fetched] == [
        (job_id, 900) for job_id in made[: len(fetched)]
    ]
    assert len(fetched) > 100


def test_http_2_is_spoken_with_those_who_want_it(served: Served, authority: Authority) -> None:
    with httpx.Client(verify=authority.context(), http2=True, base_url=url(served)) as client:
        made = client.post("/api/v1/enqueue", json={"queue": "two"})
        info = client.get("/api/v1/info")
        refused = client.post("/api/v1/enqueue", content=b"{", headers={"content-type": "application/json"})
        head = client.head("/api/v1/info")

    assert [made.http_version, made.status_code] == ["HTTP/2", 201]
    assert [info.http_version, info.status_code] == ["HTTP/2", 200]
    assert (refused.status_code, refused.json()["code"]) == (400, "PARSE_ERROR")
    assert (head.status_code, head.content) == (200, b"")


@pytest.mark.parametrize(
    ("wanted", "agreed"),
    [
        (["h2", "http/1.1"], "h2"),
        (["http/1.1"], "http/1.1"),
        ([], None),
    ],
)
def test_the_client_chooses_the_protocol(
    served: Served, authority: Authority, wanted: list[str], agreed: str | None
) -> None:
    with Talk(served, authority.context(*wanted)) as talk:
        assert isinstance(talk._socket, ssl.SSLSocket)
        assert talk._socket.selected_alpn_protocol() == agreed
        if agreed != "h2":
            assert talk.is_usable()


def test_a_stream_is_served(served: Served, authority: Authority) -> None:
    address = f"wss://localhost:{served.port}/api/v1/stream"
    with connect(address, ssl=authority.context(), compression=None, max_size=None) as stream:
        for number in range(50):
            stream.send(f'{{"id": {number}, "enqueue": [{{"queue": "mail", "payload": "{"x" * 900}"}}]}}')
        answers = [msgspec.json.decode(stream.recv(timeout=PATIENCE_S)) for _ in range(50)]

    assert sorted(answer["id"] for answer in answers) == list(range(50))
    assert {answer["enqueued"][0]["status"] for answer in answers} == {"pending"}


# Who is let in


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_newer_versions_are_spoken(served: Served, authority: Authority, version: ssl.TLSVersion) -> None:
    context = authority.context()
    context.minimum_version = context.maximum_version = version
    with Talk(served, context) as talk:
        assert talk.is_usable()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_older_versions_are_not_spoken(served: Served, authority: Authority) -> None:
    context = authority.context()
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    with pytest.raises(OSError):
        Talk(served, context)


@pytest.mark.parametrize("cipher", ["AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES128-SHA256"])
def test_weak_ciphers_are_not_spoken(served: Served, authority: Authority, cipher: str) -> None:
    context = authority.context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(cipher)
    with pytest.raises(OSError):
        Talk(served, context)


def test_a_client_that_trusts_somebody_else_goes_away(served: Served, authority: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path)
    for _ in range(3):
        with pytest.raises(ssl.SSLCertVerificationError):
            Talk(served, other.context())
    with Talk(served, authority.context()) as talk:
        assert talk.is_usable()


@pytest.mark.parametrize(
    "text",
    [
        INFO,
        enqueue(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\0" * 100,
    ],
    ids=["get", "post", "http2", "half a hello", "nothing"],
)
def test_what_is_no_tls_is_never_served_and_disturbs_nobody(served: Served, authority: Authority, text: bytes) -> None:
    before = len(served.shards.asked)
    with Talk(served) as talk:
        talk.say(text)
        if not text.startswith(b"\x16"):
            heard = talk.more()
            assert b"HTTP" not in heard
            assert talk.is_closed()
    assert len(served.shards.asked) == before
    with Talk(served, authority.context()) as talk:
        assert talk.is_usable()


def test_who_leaves_at_any_moment_leaves_nothing_behind(served: Served, authority: Authority) -> None:
    with Talk(served, authority.context()) as talk:
        assert talk.is_usable()
    before = descriptors()
    for _ in range(10):
        with Talk(served) as talk:
            pass
        with Talk(served) as talk:
            talk.say(b"\x16\x03\x01\x02\x00\x01")
        for text in [b"", enqueue()[:-5], b"GET /api", INFO, enqueue()]:
            with Talk(served, authority.context()) as talk:
                talk.say(text)
    with Talk(served, authority.context()) as talk:
        assert talk.is_usable()

    wait_until(lambda: descriptors() <= before)


def test_a_worker_that_hangs_up_is_no_longer_waited_for(served: Served, authority: Authority) -> None:
    with Talk(served, authority.context()) as talk:
        talk.say(a_fetch())
        wait_until(lambda: served.shards.parked)

    wait_until(lambda: not served.shards.parked)


def test_a_client_may_ask_to_close_and_is_told_the_end(served: Served, authority: Authority) -> None:
    with Talk(served, authority.context()) as talk:
        assert talk.ask(request("GET", "/api/v1/info", "Connection: close")).status == 200
        assert talk.is_closed()


# Stopping


@pytest.mark.parametrize("name", SERVERS)
def test_a_stop_finishes_what_is_under_way_and_ends_what_waits(name: str, authority: Authority) -> None:
    context = authority.context()
    with (
        a_server(SERVERS[name].serve, authority=authority) as server,
        Talk(server, context) as slow,
        Talk(server, context) as waiting,
    ):
        waiting.say(a_fetch())
        assert server.shards.held.wait(PATIENCE_S)
        server.shards.held.clear()
        slow.say(enqueue(b'{"queue": "slow"}'))
        assert server.shards.held.wait(PATIENCE_S)
        server.drain()
        ended = waiting.hear()
        server.release()
        finished = slow.hear()

        assert (ended.status, finished.status) == (204, 201)
        assert slow.is_closed()
        server.end()
        with pytest.raises(ConnectionError):
            Talk(server)
        assert server.reported == []


@pytest.mark.parametrize("name", SERVERS)
def test_a_stop_answers_the_frames_of_a_stream_then_closes_it(name: str, authority: Authority) -> None:
    context = authority.context()
    with (
        a_server(SERVERS[name].serve, authority=authority) as server,
        connect(f"wss://localhost:{server.port}/api/v1/stream", ssl=context) as stream,
    ):
        stream.send('{"id": 7, "enqueue": [{"queue": "slow"}]}')
        assert server.shards.held.wait(PATIENCE_S)
        server.drain()
        told = msgspec.json.decode(stream.recv(timeout=PATIENCE_S))
        server.release()
        answer = msgspec.json.decode(stream.recv(timeout=PATIENCE_S))
        with pytest.raises(ConnectionClosed) as closed:
            stream.recv(timeout=PATIENCE_S)
        server.end()

    assert (told["code"], answer["id"]) == ("DRAINING", 7)
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1001
    assert server.reported == []


def test_a_handshake_that_does_not_come_is_not_waited_for(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = hypercorn.config(20.0)
    assert usual.ssl_handshake_timeout == 10.0
    usual.ssl_handshake_timeout = 0.2
    monkeypatch.setattr(hypercorn, "config", lambda graceful_s: usual)

    with a_server(hypercorn.serve, authority=authority) as server, Talk(server) as silent:
        assert silent.is_closed()
        assert server.reported == []


# Renewing


def shown(served: Served, context: ssl.SSLContext) -> bytes | None:
    """The certificate of the server, as a new connection sees it."""
    with Talk(served, context) as talk:
        assert isinstance(talk._socket, ssl.SSLSocket)
        return talk._socket.getpeercert(binary_form=True)


def test_a_new_certificate_is_shown_to_new_connections_and_old_ones_go_on(authority: Authority) -> None:
    pair = authority.sign("renewed")
    certificate = Certificate(*pair)
    server = Served(hypercorn.serve, certificate=certificate)
    context = authority.context()
    try:
        with Talk(server, context) as old:
            first = shown(server, context)
            assert not certificate.renew(), "nothing has changed"
            authority.sign("renewed")
            assert certificate.renew()
            second = shown(server, context)

            assert first != second
            assert shown(server, context) == second
            assert old.is_usable()
            with httpx.Client(verify=context, http2=True) as client:
                assert client.get(f"{url(server)}/api/v1/info").http_version == "HTTP/2"
    finally:
        server.end()
    assert server.reported == []


def test_files_that_make_no_certificate_leave_the_one_before(authority: Authority) -> None:
    pair = authority.sign("spoilt")
    certificate = Certificate(*pair)
    server = Served(hypercorn.serve, certificate=certificate)
    context = authority.context()
    try:
        first = shown(server, context)
        good = Path(pair.key).read_bytes()
        Path(pair.key).unlink()
        assert not certificate.renew()
        Path(pair.key).write_bytes(b"-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n")
        assert not certificate.renew()
        Path(pair.key).write_bytes(good)
        assert not certificate.renew(), "open to everybody"
        assert shown(server, context) == first

        Path(pair.key).chmod(0o600)
        assert certificate.renew()
        assert shown(server, context) == first
    finally:
        server.end()
