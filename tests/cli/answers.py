"""Builders of answers with defaults, so that a test writes only what matters."""

import io
from typing import Any

from corvo.cli.screen.top.looks import Look
from corvo.queries.cluster import ClusterStatus, MembershipView, MirrorView, NodeView, ReplicaView, ShardView
from corvo.queries.job import JobErrorView, JobView
from corvo.queries.queues import QueueView
from corvo.queries.search import JobSummary, SearchAnswer
from corvo.queries.workers import WorkerView
from tests.client.playback import Playback

ID = "s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8"
NOON = "2026-01-31T12:00:00.000000000Z"
NOON_NS = 1_769_860_800 * 10**9


class Terminal(io.StringIO):
    """Standard input with a person behind it."""

    def isatty(self) -> bool:
        return True


def _of(**values: Any) -> dict[str, Any]:
    return values


def a_queue(name: str = "mail", **values: Any) -> QueueView:
    counts = dict.fromkeys(("pending", "active", "held", "completed", "dead", "scheduled", "retrying", "cancelled"), 0)
    return QueueView(**{"name": name, "created_at": NOON, **counts, "enqueued": 0, "failed": 0, **values})


def a_shard(number: int = 0, **values: Any) -> ShardView:
    figures = _of(term=3, commit_index=90, applied_index=90, log_entries=90, operations_total=1000, entries_total=90)
    rest = _of(batch_size_avg=11.1, sync_ms_avg=0.42, waiting=0, fetches_parked=0, leases=0, mirror_lag_entries=0)
    names = _of(shard=number, node_id="node-1", state="leader", leader_id="node-1", memory_bytes=30_000_000)
    return ShardView(**{**figures, **rest, **names, **values})


def a_status(shards: int = 4, **values: Any) -> ClusterStatus:
    fixed = _of(status="healthy", mode="single", node_id="node-1", version="0.1.0", shards=shards, fsync=True)
    groups = [a_shard(number) for number in range(shards)]
    return ClusterStatus(**{**fixed, "groups": groups, "mirror": MirrorView(4.0, "g1", 12), **values})


def a_replica(node_id: str = "node-2", **values: Any) -> ReplicaView:
    figures = _of(term=3, commit_index=90, applied_index=90, lag=0, log_entries=90, log_bytes=2_048, state_hash="ab")
    feeding = _of(last_contact_ms=12.0, mode="replicate")
    return ReplicaView(**{"node_id": node_id, "role": "follower", **figures, **feeding, **values})


def a_cluster(*replicas: ReplicaView, **values: Any) -> ClusterStatus:
    """node-1 leads the only shard; the others are given."""
    leader = a_replica("node-1", role="leader", last_contact_ms=None, mode="")
    names = ["node-1", *(replica.node_id for replica in replicas)]
    group = _of(members=MembershipView(voters=names), replicas=[leader, *replicas])
    nodes = [NodeView(name, f"{name}:9400", True) for name in names]
    return a_status(1, **{"mode": "cluster", "groups": [a_shard(0, **group)], "nodes": nodes, **values})


def a_worker(name: str = "w1", **values: Any) -> WorkerView:
    fixed = _of(id=name, hostname="host-a", queues=["mail"], last_heartbeat=NOON, started_at=NOON)
    return WorkerView(**{**fixed, **values})


def a_job(**values: Any) -> JobView:
    fixed = _of(id=ID, queue="mail", state="dead", payload={"to": "ada"}, priority=1, attempt=3, max_retries=3)
    retry = _of(retry_backoff="exponential", retry_base_delay_ms=5000, retry_max_delay_ms=600_000)
    errors = [JobErrorView(id=3, job_id=ID, attempt=3, error="boom", created_at=NOON)]
    return JobView(**{**fixed, **retry, "created_at": NOON, "errors": errors, **values})


def a_search_answer(*jobs: JobSummary) -> SearchAnswer:
    return SearchAnswer(list(jobs), len(jobs), True, False, None, 1.5, 3.0)


def a_summary(**values: Any) -> JobSummary:
    fixed = _of(id=ID, queue="mail", state="dead", payload={"to": "ada"}, priority=1, attempt=3, max_retries=3)
    return JobSummary(**{**fixed, "created_at": NOON, **values})


def a_look(taken_s: float = 0.0, **values: Any) -> Look:
    return Look(**{"taken_s": taken_s, "now_ns": NOON_NS, "status": a_status(), "queues": [], "workers": [], **values})


def prepare(playback: Playback) -> None:
    """A small server with a bit of everything."""
    playback.answer("GET", "/cluster/status", a_status())
    playback.answer("GET", "/queues", [a_queue(pending=5, completed=7)])
    playback.answer("GET", "/workers", [a_worker(active_jobs=2)])
    playback.answer("GET", f"/jobs/{ID}", a_job())
    playback.answer("POST", "/jobs/search", a_search_answer(a_summary()))
