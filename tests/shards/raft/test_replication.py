"""How a leader brings others to its log."""

from __future__ import annotations

from raft_cluster import MS, Cluster
from test_traps_of_leaders import behind_a_snapshot, status

from shards.raft import Options
from shards.raft.messages import Append, AppendReply


def test_a_replica_behind_the_log_gets_a_snapshot_and_then_the_log() -> None:
    cluster = behind_a_snapshot()
    cluster.heal()

    cluster.run(500 * MS)
    cluster.propose("a", b"after")
    cluster.settle()

    assert cluster.payloads("c") == cluster.payloads("a") and len(cluster.payloads("c")) == 12
    assert cluster.hosts["c"].disk.snapshot_index > 0
    assert status(cluster, "a", "c").mode == "replicate"


def test_a_window_is_limited_in_messages_and_in_bytes() -> None:
    cluster = Cluster("abc", Options(inflight_messages_max=5, inflight_bytes_max=1000, append_bytes_max=300))
    cluster.elect("a")
    cluster.filter = lambda m: not isinstance(m, AppendReply)
    cluster.sent.clear()
    for _ in range(20):
        cluster.propose("a", b"x" * 250)
    assert len([m for m in cluster.sent_by("a", Append) if m.receiver == "b" and m.entries]) == 4
    cluster.sent.clear()

    cluster.settle()

    assert not cluster.sent_by("a", Append)


def test_backtracking_takes_one_probe_for_each_term() -> None:
    cluster = Cluster("ab", logs={"a": [1] * 5 + [5] * 50, "b": [1] * 5 + [2] * 30 + [3] * 30})
    cluster["b"].become_follower(5, None)
    cluster.hosts["b"].turn()
    cluster.elect("a")
    cluster.settle()

    rejections = [m for m in cluster.sent_by("b", AppendReply) if m.rejected]
    assert len(rejections) <= 3
    assert cluster.hosts["b"].log() == cluster.hosts["a"].log()
