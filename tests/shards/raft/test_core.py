"""Raft as a host sees it: one voter, three voters, restarts."""

from __future__ import annotations

import pytest
from raft_cluster import MS, Cluster, T

from shards.raft import EntryKind, NotLeader, Options, Role, TooMuchUncommitted


def alone(options: Options | None = None) -> Cluster:
    return Cluster("a", options, settle_in=False)


def test_a_single_voter_leads_at_the_first_tick_without_waiting() -> None:
    cluster = alone()
    assert cluster["a"].deadline_ns() == 0

    cluster.tick(0)

    assert cluster["a"].is_leader and cluster["a"].term == 1
    assert cluster["a"].deadline_ns() is None
    assert cluster["a"].commit_index == 1


def test_a_single_voter_leads_only_when_its_vote_is_on_disk() -> None:
    cluster = alone()
    cluster.hosts["a"].holds_disk = True

    cluster.tick(0)
    assert cluster["a"].role is Role.CANDIDATE
    cluster.hosts["a"].sync(1)

    assert cluster["a"].is_leader
    assert cluster.hosts["a"].disk.hard_state.vote == "a"


def test_a_single_voter_commits_when_its_disk_has_the_entry() -> None:
    cluster = alone()
    cluster.tick(0)
    host = cluster.hosts["a"]
    host.holds_disk = True

    positions = cluster.propose("a", b"one", b"two")

    assert positions == [(2, 1), (3, 1)]
    assert cluster["a"].commit_index == 1
    host.sync()
    host.turn()
    assert cluster["a"].commit_index == 3 and cluster.payloads("a") == [b"one", b"two"]


def test_a_restarted_single_voter_hands_out_all_that_was_not_applied() -> None:
    cluster = alone()
    cluster.tick(0)
    host = cluster.hosts["a"]
    host.holds_apply = True
    cluster.propose("a", b"one", b"two", b"three")
    assert host.disk.state.applied < 4

    host.holds_apply = False
    cluster.restart("a")
    cluster.tick(0)

    assert cluster["a"].is_leader and cluster["a"].term == 2
    assert cluster.payloads("a") == [b"one", b"two", b"three"]
    assert cluster["a"].applied_index == cluster["a"].last_index == 5


def test_memory_holds_no_entry_that_is_stable_and_applied() -> None:
    cluster = alone()
    cluster.tick(0)

    for number in range(50):
        cluster.propose("a", b"%d" % number)

    assert cluster["a"].log.tail == [] and cluster["a"].log.tail_bytes == 0


def test_a_stalled_machine_does_not_keep_the_log_in_memory() -> None:
    cluster = alone(Options(tail_bytes_max=1000, apply_bytes_max=500))
    cluster.tick(0)
    host = cluster.hosts["a"]
    host.holds_apply = True
    for _ in range(20):
        cluster.propose("a", b"x" * 200)
    assert cluster["a"].log.tail_bytes <= 1000

    host.holds_apply = False
    host.apply()
    host.turn()

    assert len(cluster.payloads("a")) == 20


def test_one_ready_hands_out_a_bounded_number_of_bytes() -> None:
    cluster = alone(Options(apply_bytes_max=500))
    cluster.tick(0)
    host = cluster.hosts["a"]
    before = len(host.readies)

    cluster.propose("a", *[b"x" * 200] * 10)

    sizes = [sum(len(entry.payload) for entry in ready.apply) for ready in host.readies[before:]]
    assert max(sizes) <= 500 and sum(sizes) == 2000


def test_proposals_beyond_the_allowance_are_refused_and_nothing_changes() -> None:
    cluster = alone(Options(uncommitted_bytes_max=1000))
    cluster.tick(0)
    host = cluster.hosts["a"]
    host.holds_disk = True
    cluster.propose("a", b"x" * 900)
    last = cluster["a"].last_index

    with pytest.raises(TooMuchUncommitted):
        cluster["a"].propose([b"x" * 200])
    assert cluster["a"].last_index == last

    host.sync()
    host.turn()
    cluster["a"].propose([b"x" * 200])


def test_one_payload_above_the_allowance_is_possible() -> None:
    cluster = alone(Options(uncommitted_bytes_max=1000))
    cluster.tick(0)

    cluster.propose("a", b"x" * 5000)

    assert len(cluster.payloads("a")) == 1


def test_three_voters_elect_replicate_and_apply() -> None:
    cluster = Cluster("abc")
    cluster.elect("a")

    cluster.propose("a", b"one")
    cluster.settle()

    assert [cluster.payloads(name) for name in "abc"] == [[b"one"]] * 3
    assert {cluster[name].leader_id for name in "abc"} == {"a"}


def test_a_follower_refuses_proposals_with_a_hint() -> None:
    cluster = Cluster("abc")
    cluster.elect("a")

    with pytest.raises(NotLeader) as refused:
        cluster["b"].propose([b"one"])

    assert refused.value.leader_hint == "a"
    assert cluster["b"].last_index == 1


def test_a_group_elects_a_leader_by_itself_and_another_when_it_dies() -> None:
    cluster = Cluster("abc", settle_in=False)
    cluster.run(4 * T)
    first = cluster.leader()
    assert first is not None

    cluster.crash(first.id)
    cluster.run(4 * T)

    second = cluster.leader()
    assert second is not None and second.id != first.id and second.term > first.term


def test_a_stable_group_keeps_its_leader_and_its_term() -> None:
    cluster = Cluster("abc")
    leader = cluster.elect("b")
    term = leader.term

    cluster.run(20 * T)

    assert leader.is_leader and {cluster[name].term for name in "abc"} == {term}


def test_a_leader_without_quorum_steps_down() -> None:
    cluster = Cluster("abc")
    cluster.elect("a")
    cluster.isolate("a")

    cluster.run(T + 100 * MS)

    assert cluster["a"].role is not Role.LEADER


def test_a_restarted_group_keeps_everything() -> None:
    cluster = Cluster("abc")
    cluster.elect("a")
    for number in range(10):
        cluster.propose("a", b"%d" % number)
        cluster.settle()

    for name in "abc":
        cluster.restart(name)
    cluster.run(5 * T)

    assert cluster.leader() is not None
    assert [cluster.payloads(name) for name in "abc"] == [[b"%d" % number for number in range(10)]] * 3


def test_a_term_begins_with_an_empty_entry() -> None:
    cluster = Cluster("abc")
    cluster.elect("a")

    (entry,) = cluster["b"].log.entries(1, 1, 1)

    assert entry.kind == EntryKind.NOOP and entry.payload == b""


def test_the_cluster_can_be_written_to_while_one_replica_is_down_and_it_catches_up() -> None:
    cluster = Cluster("abc")
    cluster.elect("a")
    cluster.crash("c")
    for number in range(30):
        cluster.propose("a", b"%d" % number)
        cluster.settle()

    cluster.restart("c")
    cluster.run(300 * MS)

    assert len(cluster.payloads("c")) == 30


def test_the_clock_may_not_go_back() -> None:
    cluster = Cluster("abc")

    with pytest.raises(AssertionError):
        cluster["a"].tick(cluster.now_ns - 1)
