"""A revoked key is refused on every node of a cluster, and what it opened is closed: streams, events, waits.

Nodes that learned of it refuse it also while shard 0 has no leader. A gateway that begins meanwhile lets nobody in."""

import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
import websockets.sync.client
from websockets.exceptions import ConnectionClosed

from chaos.cluster import Cluster, ClusterNode
from chaos.node import wait_until

pytestmark = pytest.mark.system

PASSWORD = "the-password-of-this-cluster"
PATIENCE_S = 20.0  # the promise is 2 s, on a machine that is not busy


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="corvo-") as folder:
        password_file = Path(folder) / "password"
        password_file.touch(0o600)
        password_file.write_text(PASSWORD)
        flags = ("--auth", "on", "--admin-password-file", str(password_file))
        with Cluster.start(Path(folder), shards=2, extra_flags=flags) as cluster:
            for node in cluster.nodes:
                node.show(PASSWORD)
            yield cluster


def ask(node: ClusterNode, key: str, method: str = "GET", path: str = "/auth/whoami", **more: Any) -> httpx.Response:
    headers = {"x-api-key": key}
    return httpx.request(method, f"{node.url}/api/v1{path}", headers=headers, timeout=PATIENCE_S, **more)


def make_key(cluster: Cluster, role: str = "operator") -> tuple[str, str]:
    """The key, known to every node, and its hash."""
    made = ask(cluster.nodes[0], PASSWORD, "POST", "/auth/keys", json={"name": role, "role": role})
    assert made.status_code == 200, made.text
    key, key_hash = made.json()["api_key"], made.json()["key_hash"]
    for node in cluster.nodes:
        wait_until(lambda: ask(node, key).status_code == 200, f"{node} to know a new key", PATIENCE_S)  # noqa: B023
    return key, key_hash


def revoke(node: ClusterNode, key_hash: str) -> None:
    told = ask(node, PASSWORD, "DELETE", f"/auth/keys/{key_hash}")
    assert told.status_code == 200, told.text


class Opened:
    """Everything that a key can keep open at one node. `ends` says how each ended."""

    def __init__(self, node: ClusterNode, key: str, running: ExitStack) -> None:
        self.ends: dict[str, object] = {}
        self._node, self._key = node, key
        headers = {"x-api-key": key}
        url = node.url.replace("http://", "ws://") + "/api/v1/stream"
        self._stream = running.enter_context(websockets.sync.client.connect(url, additional_headers=headers))
        self._stream.send('{"id": 1}')
        assert '"id":1' in str(self._stream.recv(timeout=PATIENCE_S), "utf-8")
        client = running.enter_context(httpx.Client(timeout=4 * PATIENCE_S))
        self._events = running.enter_context(client.stream("GET", f"{node.url}/api/v1/events", headers=headers))
        assert self._events.status_code == 200
        self._threads = [threading.Thread(target=each) for each in (self._on_stream, self._on_events, self._on_fetch)]
        for thread in self._threads:
            thread.start()
        running.callback(self._join)

    def _on_stream(self) -> None:
        try:
            self._stream.recv(timeout=4 * PATIENCE_S)
        except ConnectionClosed as closed:
            self.ends["stream"] = closed.rcvd.code if closed.rcvd else None
        except TimeoutError:
            self.ends["stream"] = "open"

    def _on_events(self) -> None:
        try:
            for _ in self._events.iter_raw():
                pass
            self.ends["events"] = "closed"
        except httpx.ReadTimeout:
            self.ends["events"] = "open"
        except httpx.TransportError:
            self.ends["events"] = "closed"

    def _on_fetch(self) -> None:
        body = {"queues": ["nothing"], "worker_id": f"w-{self._node}-{self._key[3:9]}", "timeout": 60}
        headers = {"x-api-key": self._key}
        told = httpx.post(f"{self._node.url}/api/v1/fetch", json=body, headers=headers, timeout=4 * PATIENCE_S)
        self.ends["fetch"] = told.status_code

    def _join(self) -> None:
        for thread in self._threads:
            thread.join(PATIENCE_S)


def test_what_a_revoked_key_opened_is_closed_on_every_node(cluster: Cluster) -> None:
    key, key_hash = make_key(cluster)
    other, other_hash = make_key(cluster)
    with ExitStack() as running:
        opened = [Opened(node, key, running) for node in cluster.nodes]
        kept = Opened(cluster.nodes[1], other, running)
        wait_until(lambda: _fetchers(cluster) >= 4, "all fetches to wait", PATIENCE_S)

        revoke(cluster.nodes[2], key_hash)

        for node in cluster.nodes:
            wait_until(lambda: ask(node, key).status_code == 401, f"{node} to refuse the key", PATIENCE_S)  # noqa: B023
        for each in opened:
            wait_until(lambda: len(each.ends) == 3, "all that it opened to be closed", PATIENCE_S)  # noqa: B023
            assert each.ends == {"stream": 4401, "events": "closed", "fetch": 401}
        assert kept.ends == {}, "what another key opened stays open"
        revoke(cluster.nodes[0], other_hash)


def _fetchers(cluster: Cluster) -> int:
    workers = ask(cluster.nodes[0], PASSWORD, path="/workers").json()
    return sum(1 for worker in workers if worker["id"].startswith("w-"))


def test_without_a_leader_a_revoked_key_stays_refused(cluster: Cluster) -> None:
    revoked, revoked_hash = make_key(cluster)
    good, _ = make_key(cluster, "readonly")
    revoke(cluster.nodes[0], revoked_hash)
    for node in cluster.nodes:
        wait_until(lambda: ask(node, revoked).status_code == 401, f"{node} to refuse the key", PATIENCE_S)  # noqa: B023
    left, *frozen = sorted(cluster.nodes, key=lambda node: node is cluster.leader_of(0))
    for node in frozen:
        node.freeze(0)
    try:
        assert ask(left, good).status_code == 200, "its copy of the keys serves on"
        change = {"name": "late", "role": "worker"}
        wait_until(
            lambda: ask(left, PASSWORD, "POST", "/auth/keys", json=change).status_code == 503,
            "shard 0 to be without a leader",
            PATIENCE_S,
        )
        assert {ask(node, revoked).status_code for node in cluster.nodes} <= {401, 503}

        left.server.kill("gateway")

        wait_until(lambda: _answers(left, good) == 503, "a gateway without a copy to let nobody in", PATIENCE_S)
        assert _answers(left, revoked) == 503
    finally:
        for node in frozen:
            node.thaw(0)
    cluster.await_ready()
    wait_until(lambda: _answers(left, good) == 200, "the gateway to know keys again", PATIENCE_S)
    assert _answers(left, revoked) == 401


def _answers(node: ClusterNode, key: str) -> int:
    try:
        return ask(node, key).status_code
    except httpx.TransportError:
        return 0  # not back yet


def test_no_process_shows_a_secret(cluster: Cluster) -> None:
    key, _ = make_key(cluster, "worker")
    for node in cluster.nodes:
        pids = [process.pid for process in node.processes]
        assert len(pids) >= 4
        shown = [Path(f"/proc/{pid}/{what}").read_bytes() for pid in pids for what in ("cmdline", "environ")]
        log = node.log_path.read_bytes() if node.log_path.exists() else b""
        for secret in (PASSWORD, key):
            assert not any(secret.encode() in text for text in (*shown, log)), f"{node} shows a secret"
