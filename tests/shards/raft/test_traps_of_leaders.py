"""The traps of reference/raft.md section 3, by number: reads, leases, members, transfers, snapshots, flow."""

from __future__ import annotations

import msgspec
import pytest
from raft_cluster import MS, Cluster, T

from shards.raft import (
    MembershipRefused,
    Options,
    Role,
    TransferRefused,
    Transferring,
    add_learner,
    promote,
    remove,
)
from shards.raft.messages import (
    Append,
    AppendReply,
    EntryKind,
    HeartbeatReply,
    Hello,
    InstallSnapshot,
    LeaderHeartbeat,
    LogEntry,
    ReadRequest,
    TimeoutNow,
    Vote,
    VoteReply,
)

LEASES = Options(lease_reads=True)


def change(cluster: Cluster, name: str, what) -> tuple[int, int]:
    position = cluster[name].propose_membership(what, cluster[name].membership.config_id)
    cluster.hosts[name].turn()
    return position


def grow(cluster: Cluster, leader: str, newcomer: str) -> None:
    """Bring a newcomer in as a voter, the proper way."""
    cluster.join(newcomer)
    change(cluster, leader, add_learner(newcomer))
    cluster.run(500 * MS)
    change(cluster, leader, promote(newcomer))
    cluster.run(500 * MS)
    assert newcomer in cluster[leader].membership.voters


def status(cluster: Cluster, leader: str, peer: str):
    return next(line for line in cluster[leader].progress() if line.replica == peer)


# --- reads


def test_trap_21_a_read_waits_until_the_leader_has_committed_in_its_term() -> None:
    cluster = Cluster("abc")
    cluster.filter = lambda m: not isinstance(m, AppendReply)
    leader = cluster.elect("a")
    leader.read_index("early")
    cluster.run(300 * MS)
    assert cluster.hosts["a"].reads == []

    cluster.filter = None
    cluster.run(300 * MS)

    assert cluster.hosts["a"].reads == [("early", 1)]


def test_trap_22_answers_to_an_earlier_round_do_not_confirm_a_later_read() -> None:
    cluster = Cluster("abc")
    leader = cluster.elect("a")
    cluster.tick(100 * MS, "a")
    cluster.settle()
    earlier = [m for m in cluster.sent if isinstance(m, HeartbeatReply)]
    assert earlier
    cluster.isolate("a")

    leader.read_index("later")
    cluster.settle()
    for message in earlier * 2:
        cluster.deliver(message)
    assert cluster.hosts["a"].reads == []

    cluster.heal()
    cluster.run(200 * MS)
    assert cluster.hosts["a"].reads == [("later", 1)]


def test_trap_22_an_answer_to_a_read_of_a_former_life_is_not_taken_for_a_new_one() -> None:
    cluster = Cluster("abc")
    cluster.elect("a")
    cluster["b"].read_index("old")
    cluster.hosts["b"].turn()
    cluster.filter = lambda m: not isinstance(m, HeartbeatReply)  # the leader must wait before it answers
    cluster.settle()
    raft = cluster.restart("b")
    cluster.run(150 * MS)
    cluster.propose("a", b"one")
    cluster.settle()
    raft.read_index("new")  # has the same number as the old one had
    cluster.hosts["b"].turn()
    requests = cluster.take(ReadRequest)

    cluster.filter = None
    cluster.run(200 * MS)
    assert cluster.hosts["b"].reads == []
    cluster.queue.extend(requests)
    cluster.run(200 * MS)

    assert cluster.hosts["b"].reads == [("new", 2)]


def test_trap_23_a_read_waits_for_the_machine() -> None:
    cluster = Cluster("abc")
    leader = cluster.elect("a")
    host = cluster.hosts["a"]
    host.holds_apply = True
    cluster.propose("a", b"one")
    cluster.settle()

    leader.read_index("r")
    cluster.settle()
    assert leader.commit_index == 2 and host.reads == []

    host.apply()
    host.turn()
    assert host.reads == [("r", 2)]


def test_trap_24_a_lease_counts_from_sending_not_from_the_answer() -> None:
    cluster = Cluster("abc", LEASES)
    leader = cluster.elect("a")
    cluster.tick(100 * MS, "a")
    sent_at_ns = cluster.now_ns
    cluster.tick(400 * MS, "b", "c")  # the network is slow; the leader's own clock goes on at its next tick
    cluster.settle()

    assert leader.lease_until_ns() == sent_at_ns + T - LEASES.lease_margin_ns

    leader.read_index("fresh")
    assert [lease.context for lease in leader.ready().lease_reads] == ["fresh"]


def test_trap_24_a_lease_that_is_over_is_not_used() -> None:
    cluster = Cluster("abc", LEASES)
    leader = cluster.elect("a")
    cluster.tick(100 * MS, "a")
    cluster.settle()
    until_ns = leader.lease_until_ns()
    for name in "bc":  # queued before the stop, so that the leader does not step down
        leader.step(HeartbeatReply(*leader.header(name)[1::-1], 1, 1, leader.term, round=1))

    cluster.now_ns = until_ns
    leader.tick(until_ns)
    leader.read_index("late")
    ready = leader.ready()

    assert ready.lease_reads == []
    assert any(isinstance(m, LeaderHeartbeat) for m in ready.send_now)


def test_trap_25_a_transfer_voids_the_lease_for_the_whole_term() -> None:
    cluster = Cluster("abc", LEASES)
    leader = cluster.elect("a")
    cluster.run(200 * MS)
    assert leader.lease_until_ns() > cluster.now_ns
    cluster.filter = lambda m: not isinstance(m, TimeoutNow)

    leader.transfer("b")
    assert leader.lease_until_ns() == 0
    cluster.run(2 * T)

    assert leader.is_leader and leader.lease_until_ns() == 0  # the order may still arrive


def test_trap_26_a_restarted_follower_keeps_a_promise_that_it_forgot() -> None:
    cluster = Cluster("abc", LEASES)
    leader = cluster.elect("a")
    cluster.isolate("c")
    cluster.run(200 * MS)
    cluster.heal()
    cluster.isolate("a")
    cluster.restart("b")
    cluster.settle()
    request = Vote(*cluster["c"].header("b", 9), last_index=9, last_term=8, is_transfer=False)
    forced = msgspec.structs.replace(request, is_transfer=True)
    cluster.sent.clear()

    cluster.deliver(request)
    cluster.deliver(forced)
    assert cluster.now_ns < leader.lease_until_ns()
    assert not cluster.sent_by("b", VoteReply) and cluster["b"].term == leader.term

    cluster.tick(T, "b")
    cluster.deliver(request)
    assert [reply.granted for reply in cluster.sent_by("b", VoteReply)] == [True]


def test_trap_26_own_ambition_does_not_break_a_promise_either() -> None:
    cluster = Cluster("abc", LEASES)
    cluster.elect("a")
    cluster.run(200 * MS)

    cluster["b"].campaign()

    assert cluster["b"].role is Role.FOLLOWER and cluster["b"].leader_id == "a"


# --- members


def test_trap_27_no_change_of_members_before_a_commit_in_the_term() -> None:
    cluster = Cluster("abc")
    cluster.filter = lambda m: not isinstance(m, AppendReply)
    leader = cluster.elect("a")
    with pytest.raises(MembershipRefused, match="term"):
        change(cluster, "a", remove("c"))
    assert leader.last_index == 1

    cluster.filter = None
    cluster.run(200 * MS)
    change(cluster, "a", remove("c"))
    cluster.run(200 * MS)

    assert leader.membership.voters == ("a", "b") and not leader.membership.is_joint


def test_trap_28_nobody_campaigns_over_a_committed_membership_it_has_not_applied() -> None:
    cluster = Cluster("abc")
    cluster.elect("a")
    cluster.hosts["b"].holds_apply = True
    change(cluster, "a", remove("c"))
    cluster.settle()
    assert cluster["b"].log.has_committed_unapplied_membership()
    cluster.crash("a")
    term = cluster["b"].term

    for _ in range(2):
        cluster.tick(5 * T, "b")
    cluster["b"].campaign()
    assert cluster["b"].role is Role.FOLLOWER and cluster["b"].term == term
    assert (cluster["b"].leader_id, cluster["b"].deadline_ns()) == (None, None), "nothing to wait for, nobody to name"

    cluster.hosts["b"].apply()
    cluster["b"].campaign()
    assert cluster["b"].role is Role.PRE_CANDIDATE


def test_trap_29_one_change_at_a_time_and_one_leave_entry() -> None:
    cluster = Cluster("abc")
    leader = cluster.elect("a")
    change(cluster, "a", remove("c"))
    with pytest.raises(MembershipRefused, match="under way"):
        leader.propose_membership(remove("b"), leader.membership.config_id)
    cluster.propose("a", b"between", b"the two")
    cluster.hosts["a"].holds_apply = True
    cluster.settle()
    cluster.hosts["a"].apply()
    assert leader.membership.is_joint
    with pytest.raises(MembershipRefused, match="under way"):
        leader.propose_membership(remove("b"), leader.membership.config_id)

    cluster.hosts["a"].holds_apply = False
    for number in range(5):
        cluster.propose("a", b"%d" % number)
    cluster.run(T)

    kinds = [leader.log.entries(i, i, 1)[0].kind for i in range(1, leader.last_index + 1)]
    assert kinds.count(EntryKind.MEMBERSHIP) == 2
    assert leader.membership.voters == ("a", "b") and not leader.membership.is_joint


def test_trap_30_a_learner_that_does_not_know_of_its_promotion_votes() -> None:
    cluster = Cluster("ab")
    cluster.elect("a")
    cluster.join("c")
    change(cluster, "a", add_learner("c"))
    cluster.run(500 * MS)
    # c never hears that it was promoted; then a dies, and b needs c's vote.
    cluster.filter = lambda m: not (isinstance(m, Append) and m.receiver == "c")
    change(cluster, "a", promote("c"))
    cluster.run(300 * MS)
    assert cluster["b"].membership.voters == ("a", "b", "c") and cluster["c"].membership.voters == ("a", "b")
    cluster.crash("a")
    cluster.run(2 * T, 100 * MS)
    cluster.filter = None
    cluster.run(6 * T)

    assert cluster["b"].is_leader


def test_trap_31_a_removed_follower_disturbs_nobody() -> None:
    cluster = Cluster("abc")
    leader = cluster.elect("a")
    cluster.isolate("c")  # it does not even learn that it was removed
    change(cluster, "a", remove("c"))
    cluster.run(300 * MS)
    term = leader.term

    cluster.heal()
    cluster.run(20 * T, 100 * MS)

    assert leader.is_leader and leader.term == term


def test_trap_31_a_removed_leader_hands_over_and_steps_down() -> None:
    cluster = Cluster("abc")
    cluster.elect("a")
    cluster.propose("a", b"one")
    change(cluster, "a", remove("a"))

    cluster.run(2 * T)

    leader = cluster.leader()
    assert leader is not None and leader.id in "bc" and leader.membership.voters == ("b", "c")
    assert cluster["a"].role is Role.FOLLOWER and cluster["a"].deadline_ns() is None
    term = leader.term
    cluster.run(20 * T, 100 * MS)
    assert leader.is_leader and leader.term == term


def test_trap_32_a_newcomer_without_the_log_cannot_be_a_voter() -> None:
    cluster = Cluster("abc")
    leader = cluster.elect("a")
    with pytest.raises(MembershipRefused, match="learner first"):
        change(cluster, "a", promote("d"))
    change(cluster, "a", add_learner("d"))  # d does not exist yet
    cluster.run(200 * MS)
    with pytest.raises(MembershipRefused, match="caught up"):
        change(cluster, "a", promote("d"))

    cluster.crash("c")
    cluster.propose("a", b"one")
    cluster.settle()

    assert leader.commit_index == leader.last_index


def test_trap_33_a_replica_whose_disk_was_wiped_falls_silent_and_says_so() -> None:
    cluster = Cluster("abc")
    leader = cluster.elect("a")
    cluster.restart("b")
    cluster.run(200 * MS)
    assert cluster.hosts["b"].disk.incarnation == 2
    host = cluster.hosts["b"]
    host.disk.__init__(leader.membership)  # wiped: the counter begins anew
    raft = cluster.restart("b")
    cluster.sent.clear()

    cluster.run(300 * MS)
    cluster.deliver(Vote("c", "b", 1, 0, 9, last_index=9, last_term=9, is_transfer=False))

    assert any(ready.is_rolled_back for ready in host.readies)
    assert raft.is_rolled_back and not raft.may_campaign() and raft.last_index == 0
    assert {type(m) for m in cluster.sent_by("b", object)} <= {Hello}


# --- handing over


def test_trap_34_a_transfer_to_one_that_is_behind_is_given_up_in_time() -> None:
    cluster = Cluster("abc")
    leader = cluster.elect("a")
    cluster.filter = lambda m: not (isinstance(m, Append) and m.receiver == "b")
    cluster.propose("a", b"one")
    cluster.settle()
    leader.transfer("b")
    with pytest.raises(Transferring):
        leader.propose([b"two"])

    cluster.run(T + 100 * MS)

    assert leader.is_leader and not cluster.sent_by("a", TimeoutNow)
    cluster.propose("a", b"two")
    cluster.settle()
    assert cluster.payloads("c") == [b"one", b"two"]


def test_trap_34_a_transfer_to_one_that_cannot_lead_is_refused() -> None:
    cluster = Cluster("abc")
    leader = cluster.elect("a")
    cluster.join("d")
    change(cluster, "a", add_learner("d"))
    cluster.run(200 * MS)
    for target in ("d", "x", "a"):
        with pytest.raises(TransferRefused):
            leader.transfer(target)
    cluster.crash("b")
    cluster.run(2 * T)
    with pytest.raises(TransferRefused, match="in time"):
        leader.transfer("b")
    leader.stance.replication.progress["c"].await_snapshot(1, cluster.now_ns + T)
    with pytest.raises(TransferRefused, match="in time"):
        leader.transfer("c")

    leader.propose([b"still writing"])


def test_trap_34_no_transfer_while_members_change() -> None:
    cluster = Cluster("abc")
    leader = cluster.elect("a")
    change(cluster, "a", remove("c"))

    with pytest.raises(TransferRefused, match="members"):
        leader.transfer("b")


def test_trap_34_a_successor_that_is_removed_meanwhile_is_forgotten() -> None:
    cluster = Cluster("abc")
    leader = cluster.elect("a")
    cluster.cut("a", "b")
    change(cluster, "a", remove("b"))
    leader.stance._successor = "b"  # as if a transfer had begun just before
    leader.stance._transfer_deadline_ns = cluster.now_ns + T

    cluster.settle()

    assert "b" not in leader.membership.voters
    assert leader.propose([b"one"])


# --- snapshots


def behind_a_snapshot(options: Options | None = None) -> Cluster:
    """Replica c was away while the log that it needs was compacted."""
    cluster = Cluster("abc", options)
    cluster.elect("a")
    cluster.propose("a", b"seen by all")
    cluster.settle()
    cluster.isolate("c")
    for number in range(10):
        cluster.propose("a", b"%d" % number)
        cluster.settle()
    cluster.run(T)
    cluster.compact("a", 9)
    return cluster


def test_trap_36_a_crash_before_the_install_leaves_the_old_state_and_after_it_the_new_one() -> None:
    cluster = behind_a_snapshot()
    cluster.filter = lambda m: not isinstance(m, InstallSnapshot)
    cluster.heal()
    cluster.run(500 * MS)
    cluster.filter = None
    cluster.hosts["c"].holds_disk = True
    cluster.deliver(next(m for m in cluster.dropped if isinstance(m, InstallSnapshot)))
    assert any(write.persist.snapshot for write in cluster.hosts["c"].writes)
    assert not cluster["c"].may_campaign()
    assert all(m.index < 9 for m in cluster.sent_by("c", AppendReply) if not m.rejected)

    before = cluster.hosts["c"].disk.state.copy()
    cluster.hosts["c"].holds_disk = False
    cluster.restart("c")
    assert cluster.hosts["c"].state == before
    cluster.run(2 * T)

    assert cluster.payloads("c") == cluster.payloads("a")
    cluster.restart("c")
    assert cluster.hosts["c"].state.applied >= 9
    assert cluster["c"].membership.voters == ("a", "b", "c")


def snapshot_for(cluster: Cluster, receiver: str, index: int, term: int) -> InstallSnapshot:
    return InstallSnapshot(
        *cluster["a"].header(receiver), index=index, index_term=term, membership=cluster["a"].membership
    )


def test_trap_37_a_snapshot_older_than_what_is_committed_is_ignored() -> None:
    cluster = Cluster("abc")
    cluster.elect("a")
    cluster.propose("a", *[b"x"] * 5)
    cluster.settle()
    cluster.sent.clear()

    cluster.deliver(snapshot_for(cluster, "b", 3, 1))

    assert [m.index for m in cluster.sent_by("b", AppendReply)] == [6]
    assert cluster["b"].last_index == 6 and cluster["b"].log.first_index == 1


def test_trap_38_a_snapshot_that_the_log_covers_only_moves_commitment() -> None:
    cluster = Cluster("abc")
    cluster.elect("a")
    cluster.propose("a", *[b"x"] * 5)
    cluster.filter = lambda m: not (isinstance(m, Append | LeaderHeartbeat) and m.receiver == "b")
    b_append = Append(
        *cluster["a"].header("b"),
        prev_index=1,
        prev_term=1,
        commit=1,
        entries=[LogEntry(2 + n, 1, EntryKind.NORMAL, b"x") for n in range(5)],
    )
    cluster.deliver(b_append)
    cluster.settle()
    assert cluster["b"].commit_index == 1

    cluster.deliver(snapshot_for(cluster, "b", 4, 1))

    assert cluster["b"].commit_index == 4 and cluster["b"].last_index == 6
    assert not any(r.persist and r.persist.snapshot for r in cluster.hosts["b"].readies)


def test_trap_39_a_snapshot_without_news_is_given_up() -> None:
    cluster = behind_a_snapshot(Options(snapshot_timeout_ns=3 * T))
    cluster.filter = lambda m: not isinstance(m, InstallSnapshot)
    cluster.heal()
    cluster.run(T)
    assert status(cluster, "a", "c").mode == "snapshot"
    count = len(cluster.sent_by("a", InstallSnapshot))

    cluster.run(4 * T)
    assert len(cluster.sent_by("a", InstallSnapshot)) > count

    cluster.filter = None
    cluster.run(4 * T)
    assert cluster.payloads("c") == cluster.payloads("a")


@pytest.mark.parametrize("ok", [True, False])
def test_trap_39_a_report_ends_the_waiting(ok: bool) -> None:
    cluster = behind_a_snapshot()
    cluster.filter = lambda m: not isinstance(m, InstallSnapshot)
    cluster.heal()
    cluster.run(300 * MS)
    cluster.filter = None

    cluster["a"].report_snapshot("c", ok)
    assert status(cluster, "a", "c").mode == "probe"
    cluster.run(T)

    assert cluster.payloads("c") == cluster.payloads("a")


def test_trap_40_compaction_past_a_follower_in_mid_probe_does_not_stall_it() -> None:
    cluster = Cluster("abc")
    cluster.elect("a")
    cluster.filter = lambda m: not (m.sender == "c" and isinstance(m, AppendReply))
    cluster.propose("a", *[b"x"] * 10)
    cluster.settle()
    cluster.crash("c")
    cluster.hosts["c"].disk.log = {1: cluster.hosts["c"].disk.log[1]}
    cluster.hosts["c"].disk.state.__init__(1, [], cluster.states[1].hash)
    cluster.hosts["c"].disk.hard_state = msgspec.structs.replace(cluster.hosts["c"].disk.hard_state, commit=1)
    cluster["a"].report_unreachable("c")
    cluster.restart("c")
    cluster.compact("a", 8)

    cluster.filter = None
    cluster.run(T)

    assert cluster.payloads("c") == cluster.payloads("a")


# --- flow


def test_trap_41_a_window_full_of_lost_messages_drains() -> None:
    cluster = Cluster("abc", Options(inflight_messages_max=3))
    cluster.elect("a")
    cluster.filter = lambda m: not (m.receiver == "c" and isinstance(m, Append) and m.entries)
    for number in range(10):
        cluster.propose("a", b"%d" % number)
    cluster.settle()
    assert status(cluster, "a", "c").inflight_messages == 3
    cluster.sent.clear()
    cluster.tick(100 * MS, "a")
    cluster.settle()
    empty = [m for m in cluster.sent_by("a", Append) if m.receiver == "c" and not m.entries]
    assert empty, "no empty append asked where the follower stands"

    cluster.filter = None
    cluster.run(300 * MS)

    assert len(cluster.payloads("c")) == 10


def test_trap_42_a_late_completion_does_not_mark_overwritten_entries_stable() -> None:
    cluster = Cluster("abc")
    raft, host = cluster["b"], cluster.hosts["b"]
    host.holds_disk = True

    def send(sender: str, term: int, *terms: int) -> None:
        entries = [LogEntry(n, t, EntryKind.NORMAL, b"%d" % t) for n, t in enumerate(terms, 1)]
        cluster.deliver(Append(sender, "b", 1, 1, term, prev_index=0, prev_term=0, commit=0, entries=entries))

    send("a", 1, 1, 1, 1)
    send("c", 2, 2, 2)
    send("a", 3, 3, 3, 3)
    assert len(host.writes) == 3
    host.sync(1)
    assert raft.log.stable == 0
    host.sync(1)
    assert raft.log.stable == 0

    host.sync(1)

    assert raft.log.stable == 3 and [entry.term for entry in host.disk.log.values()] == [3, 3, 3]


def test_trap_44_a_replica_with_another_state_is_reported_on_both_sides() -> None:
    cluster = Cluster("abc")
    cluster.elect("a")
    cluster.settle()
    cluster.hosts["b"].state.hash = b"another!"  # as if its machine had read a clock
    cluster.propose("a", b"one")
    cluster.settle()

    cluster.run(200 * MS)

    at_leader = {d.peer for r in cluster.hosts["a"].readies for d in r.diverged}
    at_follower = {d.peer for r in cluster.hosts["b"].readies for d in r.diverged}
    assert at_leader == {"b"} and at_follower == {"a"}
    assert not any(r.diverged for r in cluster.hosts["c"].readies)


def test_trap_52_a_leader_whose_disk_stalls_hands_over() -> None:
    cluster = Cluster("abc")
    leader = cluster.elect("a")
    cluster.run(200 * MS)
    cluster.hosts["a"].holds_disk = True
    cluster.propose("a", b"one")
    cluster.settle()

    cluster.run(2 * T)

    now = cluster.leader()
    assert not leader.is_leader and now is not None and now.id != "a"
    assert b"one" in cluster.payloads(now.id)
