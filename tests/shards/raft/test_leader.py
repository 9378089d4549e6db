"""Changing members and handing over, when all goes well."""

from __future__ import annotations

import pytest
from raft_cluster import MS, Cluster, T
from test_traps_of_leaders import change, grow

from shards.raft import MembershipRefused, Options, RaftRefusal, Transferring, add_learner, promote, remove
from shards.raft.messages import Append


def test_a_change_for_another_membership_than_the_callers_is_refused() -> None:
    cluster = Cluster("abc")
    cluster.elect("a")

    with pytest.raises(MembershipRefused, match="by now"):
        cluster["a"].propose_membership(remove("c"), 7)


def test_a_new_leader_ends_the_joint_phase_that_another_began() -> None:
    cluster = Cluster("abcde")
    cluster.elect("a")
    cluster.filter = lambda m: not (isinstance(m, Append) and any(e.index > 2 for e in m.entries))
    change(cluster, "a", remove("e"))
    cluster.settle()
    assert cluster["b"].membership.is_joint
    cluster.crash("a")
    cluster.filter = None

    cluster.run(5 * T)

    leader = cluster.leader()
    assert leader is not None and leader.membership.voters == tuple("abcd") and not leader.membership.is_joint


def test_a_newcomer_catches_up_as_a_learner_and_is_promoted() -> None:
    cluster = Cluster("abc")
    cluster.elect("a")
    for number in range(20):
        cluster.propose("a", b"%d" % number)
    cluster.settle()

    grow(cluster, "a", "d")

    assert len(cluster.payloads("d")) == 20
    assert cluster["d"].membership.voters == ("a", "b", "c", "d")


def test_a_transfer_moves_leadership_without_a_timeout() -> None:
    cluster = Cluster("abc")
    leader = cluster.elect("a")
    cluster.propose("a", b"one")

    leader.transfer("b")
    with pytest.raises(Transferring):
        leader.propose([b"two"])
    cluster.settle()

    assert cluster["b"].is_leader and b"one" in cluster.payloads("b")
    assert cluster["b"].term == 2


@pytest.mark.parametrize("request_name", ["propose", "transfer", "read"])
def test_a_replica_without_a_leader_refuses(request_name: str) -> None:
    cluster = Cluster("abc")

    with pytest.raises(RaftRefusal):
        if request_name == "propose":
            cluster["a"].propose([b"one"])
        elif request_name == "transfer":
            cluster["a"].transfer("b")
        else:
            cluster["a"].read_index("r")


def test_a_learner_in_the_middle_of_a_long_log_is_not_promoted() -> None:
    cluster = Cluster("abc", Options(append_bytes_max=100, inflight_messages_max=1))
    cluster.elect("a")
    cluster.propose("a", *[b"x" * 100] * 20)
    cluster.settle()
    cluster.join("d")
    change(cluster, "a", add_learner("d"))
    cluster.filter = lambda m: not (m.receiver == "d" and isinstance(m, Append) and m.entries and m.prev_index > 10)
    cluster.run(300 * MS)
    assert 5 < cluster["d"].last_index < 15

    with pytest.raises(MembershipRefused, match="caught up"):
        change(cluster, "a", promote("d"))

    cluster.filter = None
    cluster.run(500 * MS)
    change(cluster, "a", promote("d"))
