"""A whole node behind TLS: producers, workers, streams, events, the command line, and a certificate that is renewed."""

import json
import socket
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from websockets.sync.client import connect

from chaos.node import Node, wait_until
from corvo.cli.main import run
from corvo.client.http import Client, Unreachable
from corvo.ops.jobs.ack import AckBody
from corvo.ops.jobs.enqueue import EnqueueBody
from corvo.ops.jobs.fetch import FetchBody
from corvo.runtime.addresses import split_address
from gateway.http.tls_reload import LOOK_S
from tests.support.authority import Authority

pytestmark = pytest.mark.system

PATIENCE_S = 20.0


@pytest.fixture(scope="module")
def authority() -> Iterator[Authority]:
    with tempfile.TemporaryDirectory(prefix="corvo-") as folder:
        yield Authority(Path(folder))


@pytest.fixture(scope="module", params=["hypercorn", "granian"])
def node(request: pytest.FixtureRequest, authority: Authority) -> Iterator[Node]:
    flags = ["--shards", "1", "--http-server", request.param, *authority.sign(request.param).flags]
    with tempfile.TemporaryDirectory(prefix="corvo-") as folder:
        node = Node.start(Path(folder) / "data", *flags)
        yield node
        assert node.stop() == 0
        log = (Path(folder) / "data" / "server.log").read_text()
        assert "Traceback" not in log
        assert f'"url": "{node.url}"' in log and node.url.startswith("https://")


@pytest.mark.parametrize("is_two", [False, True], ids=["HTTP/1.1", "HTTP/2"])
def test_a_job_goes_from_producer_to_worker_and_is_done(node: Node, authority: Authority, is_two: bool) -> None:
    with httpx.Client(base_url=f"{node.url}/api/v1", verify=authority.context(), http2=is_two, timeout=40.0) as http:
        made = http.post("/enqueue", json={"queue": "mail", "payload": {"n": 1}})
        fetched = http.post("/fetch", json={"queues": ["mail"], "worker_id": "w"}).json()
        done = http.post(f"/ack/{fetched['job_id']}", json={"lease_token": fetched["lease_token"]})
        page = http.get(httpx.URL(f"{node.url}/docs"))

    assert (made.http_version, made.status_code) == ("HTTP/2" if is_two else "HTTP/1.1", 201)
    assert (fetched["job_id"], fetched["payload"]) == (made.json()["job_id"], {"n": 1})
    assert (done.json(), page.status_code) == ({"status": "ok"}, 200)


def test_our_client_and_the_stream_reach_it(node: Node, authority: Authority) -> None:
    with Client(node.url, ca_cert=authority.file) as client:
        job_id = client.enqueue(EnqueueBody(queue="ours")).job_id
        job = client.fetch(FetchBody(queues=["ours"], worker_id="w"))
        assert job is not None and job.job_id == job_id
        client.ack(job_id, AckBody(lease_token=job.lease_token))
    address = node.url.replace("https", "wss") + "/api/v1/stream"
    with connect(address, ssl=authority.context()) as stream:
        stream.send('{"id": 1, "enqueue": [{"queue": "streamed"}]}')
        assert json.loads(stream.recv(timeout=PATIENCE_S))["enqueued"][0]["status"] == "pending"


@pytest.mark.parametrize("is_two", [False, True], ids=["HTTP/1.1", "HTTP/2"])
def test_events_arrive_as_they_happen(node: Node, authority: Authority, is_two: bool) -> None:
    with httpx.Client(base_url=f"{node.url}/api/v1", verify=authority.context(), http2=is_two, timeout=40.0) as http:
        with http.stream("GET", "/events", params={"queues": f"heard.{is_two}"}) as heard:
            lines = heard.iter_lines()
            next(lines)
            job_id = http.post("/enqueue", json={"queue": f"heard.{is_two}"}).json()["job_id"]
            line = next(line for line in lines if line.startswith("data: "))
        assert job_id in line
        assert http.get("/info").status_code == 200, "the connection goes on without the listener"


@pytest.mark.parametrize("protocol", ["stream", "http"])
def test_it_can_be_put_under_load(
    node: Node, authority: Authority, capsys: pytest.CaptureFixture[str], protocol: str
) -> None:
    flags = ["--jobs", "200", "--batch", "10", "--connections", "2", "--queues", "2", "--protocol", protocol]
    code = run(["bench", "--server", node.url, "--ca-cert", authority.file, "--output", "json", *flags])

    report = json.loads(capsys.readouterr().out)
    assert (code, report["errors"], report["completed"], report["server"]["url"]) == (0, {}, 200, node.url)


def test_plain_words_are_not_answered_and_the_command_line_says_why(
    node: Node, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = node.url.replace("https", "http")
    with Client(plain) as client, pytest.raises(Unreachable, match="if it speaks TLS, its address begins with https:"):
        client.queues()
    assert run(["status", "--server", node.url]) == 1
    assert "is not trusted: " in capsys.readouterr().err
    assert node.is_healthy()


def serial(node: Node, context: ssl.SSLContext) -> bytes | None:
    """What tells one certificate from the next."""
    with socket.create_connection(split_address(node.settings.bind), timeout=PATIENCE_S) as raw:
        return _shaken(raw, context)


def _shaken(raw: socket.socket, context: ssl.SSLContext) -> bytes | None:
    with context.wrap_socket(raw, server_hostname="localhost") as secure:
        return secure.getpeercert(binary_form=True)


def test_a_renewed_certificate_is_shown_without_a_restart_of_the_node(node: Node, authority: Authority) -> None:
    """Granian's gateway leaves in good order for a successor; meanwhile clients wait and are not refused."""
    context = authority.context()
    before = serial(node, context)
    gateway = node.pid_of("gateway")
    authority.sign(node.settings.http_server)

    wait_until(lambda: serial(node, context) != before, "the new certificate", LOOK_S + PATIENCE_S)

    assert (node.pid_of("gateway") == gateway) == (node.settings.http_server == "hypercorn")
    with Client(node.url, ca_cert=authority.file) as client:
        assert client.enqueue(EnqueueBody(queue="after")).job_id
