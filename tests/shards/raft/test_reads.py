"""Linearizable reads. The traps of reads are in test_traps_of_leaders."""

from __future__ import annotations

from raft_cluster import MS, Cluster, T

from shards.raft import Options, remove
from shards.raft.messages import LeaderHeartbeat


def test_reads_of_a_follower_are_confirmed_by_the_leader() -> None:
    cluster = Cluster("abc")
    cluster.elect("a")
    cluster.propose("a", b"one")
    cluster.settle()

    cluster["b"].read_index("r")
    cluster.settle()

    assert cluster.hosts["b"].reads == [("r", 2)]


def test_reads_are_refused_when_leadership_is_lost() -> None:
    cluster = Cluster("abc")
    leader = cluster.elect("a")
    cluster["b"].read_index("forwarded")
    cluster.hosts["b"].turn()
    cluster.isolate("a")
    leader.read_index("own")
    cluster.hosts["a"].turn()

    cluster.run(3 * T)

    refused = {name: [c for r in cluster.hosts[name].readies for c in r.reads_refused] for name in "ab"}
    assert refused == {"a": ["own"], "b": ["forwarded"]}


def test_many_reads_share_one_round() -> None:
    cluster = Cluster("abc")
    leader = cluster.elect("a")
    cluster.sent.clear()

    for number in range(50):
        leader.read_index(number)
    cluster.settle()

    assert len(cluster.sent_by("a", LeaderHeartbeat)) == 2
    assert len(cluster.hosts["a"].reads) == 50


def test_a_read_survives_the_departure_of_the_last_other_member() -> None:
    cluster = Cluster("ab")
    leader = cluster.elect("a")
    leader.propose_membership(remove("b"), 0)
    cluster.hosts["a"].holds_apply = True
    cluster.settle()
    host = cluster.hosts["a"]
    host.apply()  # joint
    cluster.settle()

    leader.read_index("r")  # waits for a round when the group shrinks to one
    host.apply()
    host.turn()
    host.apply()
    cluster.settle()

    assert leader.membership.voters == ("a",)
    assert [context for context, _ in host.reads] == ["r"]


def test_a_lease_read_that_was_answered_too_late_is_asked_again_only_after_a_tick() -> None:
    cluster = Cluster("abc", Options(lease_reads=True))
    leader = cluster.elect("a")
    cluster.run(200 * MS)
    late_ns = leader.lease_until_ns() + 1

    for _ in range(2):  # the core knows no other time than that of its last tick
        leader.read_index("r")
        assert [lease.until_ns < late_ns for lease in leader.ready().lease_reads] == [True]
    leader.tick(late_ns)
    leader.read_index("r")
    ready = leader.ready()

    assert ready.lease_reads == []
    assert any(isinstance(message, LeaderHeartbeat) for message in ready.send_now)
