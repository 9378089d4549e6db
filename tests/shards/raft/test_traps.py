"""The traps of reference/raft.md section 3, by number: log, votes, terms and elections (1 to 20)."""

from __future__ import annotations

import msgspec
import pytest
from raft_cluster import MS, Cluster, T

from shards.raft import EntryKind, LogEntry, Options, Role
from shards.raft.messages import (
    Append,
    AppendReply,
    HeartbeatReply,
    Hello,
    LeaderHeartbeat,
    PreVote,
    PreVoteReply,
    TimeoutNow,
    Vote,
    VoteReply,
)


def header(cluster: Cluster, sender: str, receiver: str, term: int) -> tuple[str, str, int, int, int]:
    """As `sender` would write it in its present incarnation."""
    disks = {name: host.disk.incarnation for name, host in cluster.hosts.items()}
    return sender, receiver, disks.get(sender, 1), disks[receiver], term


def entries(first: int, *terms: int) -> list[LogEntry]:
    return [LogEntry(first + n, term, EntryKind.NORMAL, b"%d.%d" % (first + n, term)) for n, term in enumerate(terms)]


def append(
    cluster: Cluster, sender: str, receiver: str, term: int, prev: tuple[int, int], *terms: int, commit: int = 0
):
    message = Append(
        *header(cluster, sender, receiver, term),
        prev_index=prev[0],
        prev_term=prev[1],
        commit=commit,
        entries=entries(prev[0] + 1, *terms),
    )
    cluster.deliver(message)


def vote(cluster: Cluster, sender: str, receiver: str, term: int, last: tuple[int, int]) -> Vote:
    return Vote(*header(cluster, sender, receiver, term), last_index=last[0], last_term=last[1], is_transfer=False)


def test_trap_01_an_entry_of_an_earlier_term_is_not_committed_by_counting() -> None:
    # Figure 8 of the paper, (c): S1 leads term 4 and has brought the entry of term 2 to a majority.
    logs = {"a": [1, 2], "b": [1, 2], "c": [1], "d": [1], "e": [1, 3]}
    cluster = Cluster("abcde", logs=logs, terms={"a": 3, "b": 3, "c": 3, "d": 3})
    cluster.filter = lambda m: not isinstance(m, Append) or all(entry.term < 4 for entry in m.entries)
    cluster.elect("a")
    leader = cluster["a"]
    # The network loses what carries the entry of term 4; deliver the old one by hand.
    append(cluster, "a", "b", leader.term, (2, 2))
    append(cluster, "a", "c", leader.term, (1, 1), 2)
    cluster.settle()
    matches = {status.replica: status.match for status in leader.progress()}
    assert [matches[name] >= 2 for name in "abc"] == [True] * 3

    assert leader.commit_index == 0

    cluster.filter = None
    cluster.run(200 * MS)
    assert leader.commit_index == leader.last_index == 3


def test_trap_02_a_vote_is_on_disk_before_it_is_given() -> None:
    cluster = Cluster("abc")
    host = cluster.hosts["c"]
    host.holds_disk = True
    cluster.deliver(vote(cluster, "a", "c", 5, (0, 0)))
    assert not cluster.sent_by("c", VoteReply)

    cluster.crash("c")
    host.holds_disk = False
    cluster.restart("c")
    cluster.pass_startup()
    cluster.deliver(vote(cluster, "b", "c", 5, (0, 0)))
    cluster.deliver(vote(cluster, "a", "c", 5, (0, 0)))

    grants = [reply.receiver for reply in cluster.sent_by("c", VoteReply) if reply.granted]
    assert grants == ["b"]
    assert host.disk.hard_state.vote == "b"


def test_trap_03_terms_survive_the_restart_of_the_whole_group() -> None:
    cluster = Cluster("abc")
    cluster.elect("a")
    cluster.isolate("c")
    cluster.propose("a", b"kept")
    cluster.settle()
    term = cluster["a"].term
    for name in "abc":
        cluster.crash(name)

    cluster.heal()
    for name in "cab":  # the one that missed the write begins
        cluster.restart(name)
        cluster.run(700 * MS)
    cluster["c"].campaign()
    cluster.run(5 * T)

    assert min(cluster[name].term for name in "abc") > term
    assert all(b"kept" in cluster.payloads(name) for name in "abc")


def test_trap_04_an_append_is_acknowledged_only_when_it_is_synced() -> None:
    cluster = Cluster("abc")
    cluster.elect("a")
    for name in "bc":
        cluster.hosts[name].holds_disk = True
    cluster.sent.clear()

    cluster.propose("a", b"one")
    cluster.settle()
    assert cluster["a"].commit_index == 1
    assert not cluster.sent_by("b", AppendReply)

    cluster.hosts["b"].sync()
    cluster.settle()
    assert cluster["a"].commit_index == 2


def test_trap_04_a_repeated_append_is_not_acknowledged_ahead_of_the_disk() -> None:
    cluster = Cluster("abc")
    cluster.elect("a")
    cluster.hosts["b"].holds_disk = True
    cluster.propose("a", b"one")
    repeated = [m for m in cluster.queue if isinstance(m, Append) and m.receiver == "b"]
    cluster.settle()
    cluster.sent.clear()

    cluster.deliver(repeated[0])

    assert not cluster.sent_by("b", AppendReply)
    assert cluster.hosts["b"].writes[-1].persist.is_empty


def test_trap_05_a_vote_request_waits_for_the_log_it_boasts_of() -> None:
    cluster = Cluster("abc")
    cluster.elect("a")
    cluster.hosts["b"].holds_disk = True
    cluster.propose("a", b"one")
    cluster.settle()
    cluster.crash("a")
    cluster.sent.clear()

    cluster.run(3 * T)

    assert cluster["b"].role is Role.PRE_CANDIDATE
    assert not cluster.sent_by("b", PreVote) and not cluster.sent_by("b", Vote)
    assert all(write.send_after == [] or write.persist for write in cluster.hosts["b"].writes)
    assert any(isinstance(m, PreVote) for write in cluster.hosts["b"].writes for m in write.send_after)


def test_trap_05_a_late_grant_to_a_former_life_elects_nobody() -> None:
    cluster = Cluster("abc")
    cluster["b"].campaign()
    cluster.hosts["b"].turn()
    cluster.filter = lambda m: not isinstance(m, VoteReply)
    cluster.settle()
    assert cluster["b"].role is Role.CANDIDATE
    late = [m for m in cluster.dropped if isinstance(m, VoteReply) and m.granted]
    term = cluster["b"].term
    assert late

    raft = cluster.restart("b")
    cluster.tick(2 * T, "b")
    raft.become_candidate(is_transfer=False)
    cluster.hosts["b"].turn()
    for message in late:
        cluster.deliver(message)
        # Even if its term were the one that the new life campaigns in.
        cluster.deliver(msgspec.structs.replace(message, term=raft.term))

    assert raft.role is Role.CANDIDATE and raft.term > term


def test_trap_06_messages_for_a_former_life_are_dropped_and_answered_with_hello() -> None:
    cluster = Cluster("abc")
    cluster.elect("a")
    cluster.run(200 * MS)
    stale = [m for m in cluster.sent if m.receiver == "b"][-20:] + [
        VoteReply("c", "b", 1, 1, 9, granted=True),
        AppendReply("c", "b", 1, 1, 9, index=50),
        Vote("c", "b", 1, 1, 9, last_index=99, last_term=9, is_transfer=False),
    ]
    raft = cluster.restart("b")
    cluster.hosts["b"].turn()
    term, commit, cluster.queue = raft.term, raft.commit_index, type(cluster.queue)()
    cluster.sent.clear()

    for message in stale:
        if message.receiver_incarnation:
            cluster.deliver(message)

    assert (raft.term, raft.commit_index, raft.leader_id) == (term, commit, None)
    assert raft.dropped_count > 3
    assert {type(m) for m in cluster.sent_by("b", object)} == {Hello}
    cluster.run(200 * MS)
    assert raft.leader_id == "a" and cluster["a"].term == term  # the leader has learnt, without an election


def test_trap_06_an_answer_to_incarnation_zero_is_never_believed() -> None:
    cluster = Cluster("abc")
    cluster["a"].campaign()
    cluster.hosts["a"].turn()
    cluster.queue.clear()

    cluster.deliver(PreVoteReply("b", "a", 1, 0, cluster["a"].term + 1, granted=True))

    assert cluster["a"].role is Role.PRE_CANDIDATE


def test_trap_07_a_delayed_duplicate_removes_nothing() -> None:
    cluster = Cluster("abc")
    append(cluster, "a", "b", 1, (0, 0), *[1] * 10)

    append(cluster, "a", "b", 1, (0, 0), *[1] * 5)

    assert cluster["b"].last_index == 10
    assert not any(ready.persist and ready.persist.truncate_after for ready in cluster.hosts["b"].readies)


@pytest.mark.parametrize("commit", [3, 9])
def test_trap_08_a_high_commit_index_never_reaches_an_unverified_tail(commit: int) -> None:
    cluster = Cluster("abc", logs={"b": [1, 1, 2, 2]})
    cluster.deliver(LeaderHeartbeat(*header(cluster, "a", "b", 3), commit=commit, round=1))
    assert cluster["b"].commit_index == 0

    append(cluster, "a", "b", 3, (2, 1), commit=commit)

    assert cluster["b"].commit_index == 2


def test_trap_09_a_heartbeat_tells_no_more_than_the_receiver_holds() -> None:
    cluster = Cluster("abc")
    cluster.elect("a")
    cluster.filter = lambda m: not (isinstance(m, Append) and m.receiver == "c")
    for number in range(5):
        cluster.propose("a", b"%d" % number)
        cluster.settle()
    cluster.sent.clear()

    cluster.tick(100 * MS, "a")

    told = {m.receiver: m.commit for m in cluster.sent_by("a", LeaderHeartbeat)}
    assert told == {"b": 6, "c": 1}


def test_trap_10_commitment_never_goes_back() -> None:
    cluster = Cluster("abc")
    append(cluster, "a", "b", 1, (0, 0), 1, 1, 1, commit=3)

    append(cluster, "c", "b", 2, (3, 1), 2, commit=1)
    cluster.deliver(LeaderHeartbeat(*header(cluster, "c", "b", 2), commit=0, round=1))

    assert cluster["b"].commit_index == 3


def test_trap_11_reordered_answers_move_nothing_back() -> None:
    cluster = Cluster("abc")
    cluster.elect("a")
    answers = []
    cluster.filter = lambda m: not (m.sender == "b" and isinstance(m, AppendReply))
    for number in range(5):
        cluster.propose("a", b"%d" % number)
        cluster.settle()
        answers += [m for m in cluster.dropped if isinstance(m, AppendReply) and m not in answers]
    peer = cluster["a"].stance.replication.progress["b"]
    term = cluster["a"].term
    before = peer.match
    reject = AppendReply(*header(cluster, "b", "a", term), index=before, rejected=True, hint_index=0, hint_term=0)

    for message in [*reversed(answers), reject, *answers]:
        cluster.deliver(message)
        assert peer.match >= before and peer.match < peer.next
        before = peer.match

    assert peer.match == 6


def test_trap_12_an_answer_of_an_earlier_term_is_ignored() -> None:
    cluster = Cluster("abc")
    cluster.elect("a")
    old_term = cluster["a"].term
    cluster["a"].become_follower(old_term, None)
    cluster.tick(MS)
    cluster.tick(T, "b", "c")
    cluster.elect("a")
    assert cluster["a"].term > old_term
    cluster.filter = lambda m: not isinstance(m, AppendReply)
    cluster.propose("a", b"new")
    commit = cluster["a"].commit_index

    for name in "bc":
        cluster.deliver(AppendReply(*header(cluster, name, "a", old_term), index=cluster["a"].last_index))

    assert cluster["a"].commit_index == commit


def test_trap_13_one_voter_counts_once() -> None:
    cluster = Cluster("abcde")
    cluster.filter = lambda m: not (isinstance(m, VoteReply) and m.sender != "b")
    cluster["a"].campaign()
    cluster.settle()
    grant = next(m for m in cluster.sent_by("b", VoteReply) if m.granted)

    for _ in range(3):
        cluster.deliver(grant)

    assert cluster["a"].role is Role.CANDIDATE


def test_trap_13_a_pre_vote_is_no_vote() -> None:
    cluster = Cluster("abc")
    cluster.filter = lambda m: not isinstance(m, VoteReply)
    cluster["a"].campaign()
    cluster.settle()
    assert cluster["a"].role is Role.CANDIDATE
    term = cluster["a"].term

    for name in "bc":
        cluster.deliver(PreVoteReply(*header(cluster, name, "a", term), granted=True))
        cluster.deliver(PreVoteReply(*header(cluster, name, "a", term + 1), granted=True))

    assert cluster["a"].role is Role.CANDIDATE


def test_trap_14_a_vote_is_repeated_for_the_same_candidate() -> None:
    cluster = Cluster("abc")
    request = vote(cluster, "a", "c", 3, (0, 0))
    cluster.deliver(request)
    cluster.deliver(vote(cluster, "b", "c", 3, (0, 0)))
    cluster.deliver(request)

    answers = [(reply.receiver, reply.granted) for reply in cluster.sent_by("c", VoteReply)]
    assert answers == [("a", True), ("b", False), ("a", True)]


def test_trap_15_a_leader_votes_for_nobody_in_its_own_term() -> None:
    cluster = Cluster("abc")
    leader = cluster.elect("a")

    cluster.deliver(vote(cluster, "b", "a", leader.term, (9, 9)))

    assert [reply.granted for reply in cluster.sent_by("a", VoteReply)] == [False]
    assert leader.is_leader


def test_trap_16_a_second_leader_of_one_term_ends_the_process() -> None:
    cluster = Cluster("abc")
    leader = cluster.elect("a")

    for receiver in "ac":
        sender = "b" if receiver == "c" else "c"
        with pytest.raises(AssertionError, match="two leaders"):
            cluster.deliver(LeaderHeartbeat(*header(cluster, sender, receiver, leader.term), commit=0, round=1))


def test_trap_17_a_replica_that_was_cut_off_does_not_depose_the_leader() -> None:
    cluster = Cluster("abc")
    leader = cluster.elect("a")
    term = leader.term
    cluster.isolate("c")
    cluster.run(50 * T, 100 * MS)

    cluster.heal()
    cluster.run(3 * T)

    assert leader.is_leader and {cluster[name].term for name in "abc"} == {term}
    assert cluster["c"].leader_id == "a"


def test_trap_18_partial_connectivity_leaves_a_stable_leader() -> None:
    cluster = Cluster("abcde")
    cluster.elect("a")
    # d sees only b, e sees only c.
    for one, other in [("d", "a"), ("d", "c"), ("d", "e"), ("e", "a"), ("e", "b")]:
        cluster.cut(one, other)
    term = cluster["a"].term

    cluster.run(100 * T, 100 * MS)

    assert cluster["a"].is_leader and cluster["a"].term == term


def test_trap_18_a_leader_that_sees_too_few_gives_way_to_one_that_sees_enough() -> None:
    cluster = Cluster("abcde")
    cluster.elect("a")
    for other in "cde":
        cluster.cut("a", other)
    for one, other in [("c", "d"), ("d", "e"), ("c", "e")]:
        cluster.cut(one, other)  # only b sees everybody

    cluster.run(10 * T, 100 * MS)

    leader = cluster.leader()
    assert leader is not None and leader.id == "b"
    term = leader.term
    cluster.run(20 * T, 100 * MS)
    assert cluster["b"].is_leader and cluster["b"].term == term


def test_trap_19_a_higher_term_with_a_shorter_log_does_not_block_the_group() -> None:
    cluster = Cluster("ab", logs={"a": [1], "b": [1, 1]}, terms={"a": 7, "b": 1})

    cluster.run(10 * T)

    leader = cluster.leader()
    assert leader is not None and leader.id == "b" and leader.term > 7


def test_trap_19_a_leader_with_a_lower_term_is_told() -> None:
    cluster = Cluster("abc")
    cluster.elect("a")
    cluster["c"].become_follower(40, None)  # somebody asked for its vote while it was alone

    cluster.run(6 * T)

    assert cluster.leader() is not None and cluster.leader().term >= 40
    assert len({cluster[name].leader_id for name in "abc"}) == 1


def test_trap_20_a_pre_candidate_forgets_the_old_leader() -> None:
    cluster = Cluster("abc")
    cluster.elect("a")
    cluster.crash("a")
    cluster.tick(T, "b", "c")
    for name in "bc":
        cluster[name].campaign()
        assert cluster[name].leader_id is None
        cluster.hosts[name].turn()

    cluster.run(5 * T)

    assert cluster.leader() is not None


def test_trap_35_an_order_to_campaign_of_another_term_is_ignored() -> None:
    cluster = Cluster("abc")
    leader = cluster.elect("a")
    term = leader.term

    for wrong in (term - 1, term + 1):
        cluster.deliver(TimeoutNow(*header(cluster, "a", "b", wrong)))
    cluster.deliver(TimeoutNow(*header(cluster, "c", "b", term)))  # not by the leader

    assert cluster["b"].role is Role.FOLLOWER and cluster["b"].term == term


def test_trap_54_a_starved_loop_sees_its_messages_before_its_timers() -> None:
    cluster = Cluster("abc")
    leader = cluster.elect("a")
    term = leader.term
    cluster.tick(100 * MS, "a")
    late = cluster.take(LeaderHeartbeat, "b")
    cluster.settle()

    for message in late:
        cluster["b"].step(message)
    cluster["b"].tick(cluster.now_ns + 10 * T)

    assert cluster["b"].role is Role.FOLLOWER and cluster["b"].term == term


def test_trap_54_a_leader_that_was_starved_sends_one_heartbeat_not_a_hundred() -> None:
    cluster = Cluster("abc")
    leader = cluster.elect("a")
    cluster.tick(100 * MS, "a")
    cluster.settle()
    for name in "bc":
        leader.step(HeartbeatReply(*header(cluster, name, "a", leader.term), round=1))
    cluster.sent.clear()

    cluster.tick(10 * T, "a")

    assert leader.is_leader
    assert len(cluster.sent_by("a", LeaderHeartbeat)) == 2


def test_trap_55_a_stopped_follower_asks_once_before_it_hears_the_leader() -> None:
    cluster = Cluster("abc")
    leader = cluster.elect("a")
    term = leader.term
    cluster.run(200 * MS)
    for _ in range(600):
        cluster.tick(100 * MS, "a", "b")
        cluster.take(LeaderHeartbeat, "c")
        cluster.settle()
    cluster.sent.clear()

    cluster.tick(0, "c")
    assert len(cluster.sent_by("c", PreVote)) == 2
    cluster.run(3 * T)

    assert leader.is_leader and cluster["c"].term == term
    assert len(cluster.sent_by("c", PreVote)) == 2


def test_trap_51_a_large_log_does_not_delay_heartbeats() -> None:
    cluster = Cluster("abc", Options(append_bytes_max=1000, inflight_bytes_max=3000))
    cluster.elect("a")
    cluster.filter = lambda m: not isinstance(m, Append) or not m.entries  # the slow lane is stuck
    for _ in range(64):
        cluster.propose("a", b"x" * 500)
    cluster.settle()
    term = cluster["a"].term

    cluster.run(10 * T)

    assert cluster["a"].is_leader and cluster["b"].term == term
    assert max(len(m.entries) for m in cluster.sent_by("a", Append)) <= 2
