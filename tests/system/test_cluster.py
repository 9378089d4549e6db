"""Three nodes, end to end: what a cluster promises when nodes die, part, stand still and come back.

One cluster serves all tests: each finds it whole, and uses queues of its own. The nodes reach each other through
proxies, so that they can be parted.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from chaos.cluster import Cluster, ClusterNode
from chaos.node import Node, wait_until
from chaos.ports import HOST, free_ports
from chaos.rolling_restart import restart_every_node
from chaos.trial import Trial
from corvo.model.audit_chain import ChainCheck
from corvo.model.sharding import shard_of_queue

pytestmark = pytest.mark.system

SHARDS = 2
REFUSED_WITHIN_S = 2.0
FROZEN_S = 3.0
RETRY_S = 1.0


@pytest.fixture(scope="module")
def shared_cluster() -> Iterator[Cluster]:
    with (
        tempfile.TemporaryDirectory(prefix="corvo-") as folder,
        Cluster.start(Path(folder), shards=SHARDS, proxied=True) as cluster,
    ):
        yield cluster


@pytest.fixture
def cluster(shared_cluster: Cluster) -> Cluster:
    """Whole, whatever a test that failed has left."""
    shared_cluster.heal()
    for node in shared_cluster.nodes:
        if not node.is_running:
            node.launch()
    shared_cluster.await_ready()
    return shared_cluster


def queue_of(shard: int, name: str) -> str:
    return next(f"{name}.{n}" for n in range(1000) if shard_of_queue(f"{name}.{n}", SHARDS) == shard)


def post(node: ClusterNode, path: str, body: object, timeout: float = 20.0) -> httpx.Response:
    return httpx.post(f"{node.url}/api/v1{path}", json=body, timeout=timeout)


def enqueue(node: ClusterNode, queue: str, **fields: object) -> str:
    response = post(node, "/enqueue", {"queue": queue, **fields})
    assert response.status_code == 201, response.text
    return str(response.json()["job_id"])


def fetch(node: ClusterNode, queue: str, worker: str, count: int) -> dict[str, int]:
    """Lease tokens by job."""
    body = {"queues": [queue], "worker_id": worker, "timeout": 0.1, "count": count}
    response = post(node, "/fetch/batch", body)
    assert response.status_code == 200, response.text
    return {job["job_id"]: job["lease_token"] for job in response.json()["jobs"]}


def ack(node: ClusterNode, job_id: str, lease_token: int) -> None:
    assert post(node, f"/ack/{job_id}", {"lease_token": lease_token}).json() == {"status": "ok"}


def read(node: ClusterNode, job_id: str) -> httpx.Response:
    return httpx.get(f"{node.url}/api/v1/jobs/{job_id}", timeout=20.0)


def others_of(cluster: Cluster, node: ClusterNode) -> list[ClusterNode]:
    return [other for other in cluster.nodes if other is not node]


def test_the_death_of_a_leader_loses_and_doubles_nothing(cluster: Cluster) -> None:
    trial = Trial(cluster, patience_s=RETRY_S)
    trial.begin()
    leader = cluster.leader_of(0)

    leader.kill()

    trial.await_flow()
    leader.start()
    cluster.await_caught_up()
    assert trial.end() == []


def test_a_node_that_is_cut_off_refuses_while_the_others_serve(cluster: Cluster) -> None:
    queue = queue_of(0, "partition")
    leader = cluster.leader_of(0)
    others = others_of(cluster, leader)
    known = enqueue(leader, queue)

    cluster.cut_off(leader)

    for _ in range(2):  # while it may still believe that it leads, and when it cannot any more
        for refused in asked_at_once(leader, queue, known):
            assert refused.status_code == 503, refused.text
            assert refused.elapsed.total_seconds() < REFUSED_WITHIN_S
    cluster.leader_of(0, others)
    newer = enqueue(others[0], queue)
    claimed = fetch(others[1], queue, "w1", 10)
    assert claimed.keys() >= {known, newer}
    ack(others[0], known, claimed[known])

    cluster.heal()
    cluster.await_alike()
    for job_id, state in ((known, "completed"), (newer, "active")):
        answers = [read(node, job_id).json() for node in cluster.nodes]
        assert answers == [answers[0]] * len(cluster.nodes)
        assert answers[0]["state"] == state


def asked_at_once(node: ClusterNode, queue: str, job_id: str) -> list[httpx.Response]:
    """A write and a read."""
    with ThreadPoolExecutor(2) as pool:
        written, shown = pool.submit(post, node, "/enqueue", {"queue": queue}), pool.submit(read, node, job_id)
        return [written.result(), shown.result()]


def test_a_leader_that_stood_still_neither_shows_nor_gives_what_is_past(cluster: Cluster) -> None:
    queue = queue_of(0, "freeze")
    leader = cluster.leader_of(0)
    others = others_of(cluster, leader)
    jobs = {enqueue(leader, queue) for _ in range(20)}

    leader.freeze(0)
    frozen_at = time.monotonic()
    cluster.leader_of(0, others)
    claims = [fetch(others[0], queue, "w1", 8), fetch(others[1], queue, "w2", 8)]
    for job_id, token in claims[0].items():
        ack(others[1], job_id, token)
    with ThreadPoolExecutor(9) as pool:
        # Asked before it wakes: the first that it sees, when nobody has told it yet that it leads no more.
        shown = [pool.submit(read, leader, job_id) for job_id in claims[0]]
        claim = pool.submit(fetch, leader, queue, "w3", 20)
        time.sleep(max(0.0, frozen_at + FROZEN_S - time.monotonic()))  # the fault's own length
        leader.thaw(0)

    assert [answer.result().json().get("state") for answer in shown] == ["completed"] * 8
    claims.append(claim.result())
    assert sorted(job_id for claimed in claims for job_id in claimed) == sorted(jobs)
    cluster.await_alike()


def test_a_rolling_restart_fails_no_request_for_longer_than_a_second(cluster: Cluster) -> None:
    trial = Trial(cluster, patience_s=RETRY_S)
    trial.begin()

    restart_every_node(trial)

    assert trial.end() == []


def test_a_node_that_was_away_for_long_is_brought_up_to_date(cluster: Cluster) -> None:
    """On one shard so much has happened that the log no longer tells it all: that state comes whole."""
    node = cluster.leader_of(0)
    others = others_of(cluster, node)
    has = next(replica.applied_index for replica in cluster.replicas_of(0) if replica.node_id == node.name)
    node.kill()
    leader = cluster.leader_of(0, others)
    busy, quiet = queue_of(0, "away"), queue_of(1, "away")
    for _ in range(7):
        answer = post(leader, "/enqueue/batch", {"jobs": [{"queue": busy, "payload": "x" * 200_000}] * 25})
        assert answer.status_code < 300, answer.text
    few = [enqueue(other, quiet) for other in others for _ in range(5)]
    wait_until(lambda: begins_after(leader, busy, has), "the log to begin after what the node has", 60.0)

    node.start()

    cluster.await_alike()
    assert "the snapshot from the leader is in place" in node.log_of_this_life()
    assert all(read(node, job_id).status_code == 200 for job_id in [*few, answer.json()["job_ids"][-1]])


def begins_after(leader: ClusterNode, queue: str, index: int) -> bool:
    """With each write the log lets go of a little of what it need not keep."""
    enqueue(leader, queue)
    status = leader.status()
    return status is not None and status.groups[0].commit_index - status.groups[0].log_entries > index


def test_health_names_the_node_that_is_missed_and_then_the_shards_without_a_quorum(cluster: Cluster) -> None:
    asked, second, third = cluster.nodes
    wait_until(lambda: health(asked) == "healthy", "the cluster to be healthy", 60.0)

    second.kill()
    wait_until(lambda: health(asked) == "degraded: node-2 does not answer", "node-2 to be missed", 60.0)
    assert httpx.get(f"{asked.url}/readyz", timeout=10.0).json()["health"] == "degraded: node-2 does not answer"

    third.kill()
    told = "unavailable: shards 0, 1: no quorum, 1 of 3 voters answers; node-2 does not answer; node-3 does not answer"
    wait_until(lambda: health(asked) == told, "the quorum to be missed", 60.0)
    ready = httpx.get(f"{asked.url}/readyz", timeout=10.0)
    assert (ready.status_code, told in ready.json()["error"]) == (503, True)
    assert "\ncorvo_health 2.0\n" in httpx.get(f"{asked.url}/metrics", timeout=10.0).text


def health(node: ClusterNode) -> str:
    status = node.status()
    return "no answer" if status is None else status.health.sentence


@pytest.mark.parametrize(
    ("shards", "reason"),
    [(SHARDS, "belongs to another cluster"), (SHARDS + 1, f"has {SHARDS} shards and this node {SHARDS + 1}")],
)
def test_a_node_of_something_else_is_refused_with_a_reason(
    cluster: Cluster, folder: Path, shards: int, reason: str
) -> None:
    port = free_ports(shards, 1)[0]
    listed = [*((node.name, node.address) for node in cluster.nodes), ("node-9", f"{HOST}:{port}")]
    peers = ",".join(f"{name}={address}" for name, address in listed)

    flags = ["--node-id", "node-9", "--raft-bind", f"{HOST}:{port}", "--shards", str(shards), "--peers", peers]
    stranger = Node.launch(folder / "stranger", *flags)

    try:
        wait_until(lambda: stranger.exit_code is not None, "the stranger to give up", 60.0)
    finally:
        stranger.kill_all()
    assert stranger.exit_code == 2
    assert reason in (folder / "stranger" / "server.log").read_text()
    assert all(node.is_ready() for node in cluster.nodes)


def test_a_damaged_replica_stops_with_its_remedy_and_is_rebuilt_by_it(cluster: Cluster) -> None:
    node = cluster.leader_of(1)  # not of shard 0: without it, a node knows no keys and serves nobody
    others = others_of(cluster, node)
    damaged, sound = queue_of(1, "damage"), queue_of(0, "damage")
    latest = enqueue(node, damaged)
    assert node.stop() == 0
    flip_a_byte(node.data_dir / "shards" / "01", latest)

    node.launch()

    remedy = f"corvo node reset --shard 1 --data-dir {node.data_dir}"
    wait_until(lambda: remedy in node.log_of_this_life(), "the replica to say what to do", 60.0)
    kept = [latest] + [enqueue(other, queue) for other in others for queue in (damaged, sound)]
    wait_until(lambda: accepts(node, sound), "its other shard to serve", 60.0)
    assert node.stop() == 0
    command = [sys.executable, "-m", "corvo.cli.main", *remedy.split()[1:], "--yes"]
    subprocess.run(command, check=True, timeout=30.0, capture_output=True)
    node.start()
    cluster.await_alike()
    assert all(read(node, job_id).status_code == 200 for job_id in kept)


def accepts(node: ClusterNode, queue: str) -> bool:
    try:
        return post(node, "/enqueue", {"queue": queue}).status_code == 201
    except httpx.TransportError:
        return False  # it does not listen yet


def flip_a_byte(database: Path, job_id: str) -> None:
    """In a record of this job, where LevelDB keeps what was written last: all of it is read when it is opened."""
    for path in database.glob("*.log"):
        content = bytearray(path.read_bytes())
        place = content.find(job_id.encode())
        if place >= 0:
            content[place] ^= 0xFF
            path.write_bytes(content)
            return
    raise AssertionError(f"{job_id} is in no file of {database}")


def test_every_node_has_the_same_audit_log(cluster: Cluster) -> None:
    """Whichever node a change went through, and whichever leads shard 0."""
    for number, node in enumerate(cluster.nodes):
        post(node, f"/queues/audited.{number}/pause", None).raise_for_status()
    exports = [httpx.get(f"{node.url}/api/v1/audit-logs/export", timeout=20.0).content for node in cluster.nodes]
    assert len(set(exports)) == 1
    check = ChainCheck()
    for line in exports[0].splitlines():
        check.take(line)
    check.finish()
    for node in cluster.nodes:
        query = {"consistent": "true", "path_prefix": "/api/v1/queues/audited."}
        listed = httpx.get(f"{node.url}/api/v1/audit-logs", params=query, timeout=20.0).json()["audit_logs"]
        assert [log["target"]["queue"] for log in listed] == ["audited.2", "audited.1", "audited.0"]
