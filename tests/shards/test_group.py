"""Three replicas of one shard: what one of them is asked, all of them hold."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from corvo.model.errors import Refused
from corvo.model.lifecycle import State
from corvo.queries.cluster import GetIndex, GetStatus
from corvo.queries.feed import Pull
from corvo.queries.job import GetJob, JobRecord
from corvo.queries.members import AddNode, GroupMembers, MoveLeader, RemoveNode
from corvo.state import keys
from corvo.wire import Call
from shards.errors import Distrusted
from shards.group.messages import Announcement, ForwardedReplies, PeerMessage, RaftMessage, RepliesMayBeLost
from shards.raft.messages import AppendReply, HeartbeatReply, InstallSnapshot, ReadRequest, StatePoint
from shards.storage import raft_log, write_batcher
from tests.shards.replica_group import Group, Node
from tests.shards.rig import Rig
from tests.support.builders import ack, enqueue, fetch, job_id


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Group]:
    group = Group(tmp_path)
    yield group
    group.close()


def test_a_job_asked_of_any_replica_is_held_by_all(group: Group) -> None:
    leader, follower = group.leader(), group.follower()

    assert group.ask(follower, enqueue(1)) == [State.PENDING]
    (claimed,) = group.ask(leader, fetch("mail"))
    assert group.ask(follower, ack(1, token=claimed.lease_token)) == [None]

    record = group.ask(follower, GetJob(job_id(1)))
    assert isinstance(record, JobRecord) and record.job.state == State.COMPLETED
    group.agree()


def test_a_follower_knows_how_far_it_must_be_for_all_that_was_answered(group: Group) -> None:
    leader, follower = group.leader(), group.follower()
    for number in range(5):
        group.ask(leader, enqueue(number))
    answered = leader.replica.tables.applied.index

    assert group.ask(follower, GetIndex()) >= answered
    assert follower.replica.tables.applied.index >= answered, "it answers when it has applied that much itself"

    group.cut_off = {follower.name}
    group.pass_time(2_000)
    assert group.ask(follower, GetIndex()).code == "NOT_LEADER"


def test_a_fetch_parked_through_a_follower_gets_the_job_that_comes(group: Group) -> None:
    leader, follower = group.leader(), group.follower()
    waiting = follower.send(fetch("mail", wait_ms=30_000))
    group.pass_time(50)
    assert waiting not in follower.answers

    group.ask(leader, enqueue(1))
    group.pass_time(20)

    assert [claimed.job_id for claimed in follower.answers[waiting]] == [job_id(1)]


def test_no_job_is_claimed_for_somebody_who_waited_on_a_node_that_died(group: Group) -> None:
    leader, follower = group.leader(), group.follower()
    follower.send(fetch("mail", wait_ms=30_000))
    group.pass_time(50)
    follower.kill()
    leader.links.broken.add(follower.name)

    group.ask(leader, enqueue(1))

    assert [claimed.job_id for claimed in group.ask(leader, fetch("mail", claim=2))] == [job_id(1)]


def test_when_the_leader_dies_another_takes_over_with_everything(group: Group) -> None:
    leader, follower = group.leader(), group.follower()
    group.ask(leader, enqueue(1))
    waiting = follower.send(fetch("empty", wait_ms=60_000))
    group.pass_time(50)

    leader.kill()
    group.pass_time(3_000)

    refused = follower.answers[waiting]
    assert isinstance(refused, Refused) and refused.code == "OUTCOME_UNKNOWN"
    assert group.leader().name != leader.name
    assert [claimed.job_id for claimed in group.ask(follower, fetch("mail"))] == [job_id(1)]
    leader.start()
    group.agree()


def test_a_leader_that_is_cut_off_refuses_soon_and_never_lies(group: Group) -> None:
    leader = group.leader()
    group.ask(leader, enqueue(1))
    group.cut_off = {leader.name}

    unfinished, read = leader.send(enqueue(2)), leader.send(GetJob(job_id(1)))
    group.pass_time(1_200)

    assert not leader.replica.raft.is_leader
    assert leader.answers[unfinished].code == "OUTCOME_UNKNOWN"
    assert leader.answers[read].code == "NOT_LEADER"
    later = leader.send(enqueue(3))
    assert leader.answers[later].code == "NOT_LEADER"

    group.ask(group.leader(), enqueue(4))
    group.cut_off = set()
    group.agree()
    assert group.ask(leader, GetJob(job_id(2))).code == "JOB_NOT_FOUND"
    assert isinstance(group.ask(leader, GetJob(job_id(4))), JobRecord)


def test_leadership_goes_to_the_preferred_node_and_on_request_to_another(group: Group) -> None:
    group.until(lambda: group.leaders() == ["node-1"], "shard 0 is led by the first node")

    assert isinstance(group.ask(group.nodes["node-2"], MoveLeader("node-3")), Refused), "its leader changed: ask again"
    assert group.leaders() == ["node-3"]
    assert isinstance(group.ask(group.nodes["node-2"], MoveLeader("node-3")), GroupMembers)
    refused = group.ask(group.nodes["node-2"], MoveLeader("node-9"))
    assert refused.code == "MEMBERSHIP_REFUSED" and "node-9 is no voter" in refused.message


def test_a_node_joins_catches_up_and_votes(group: Group) -> None:
    for number in range(20):
        group.ask(group.leader(), enqueue(number))
    newcomer = group.join("node-4")

    group.until(lambda: "node-4" in group.leader().replica.raft.membership.voters, "the newcomer votes")

    group.agree()
    assert group.leader().replica.tables.nodes["node-4"] == "127.0.0.1:4400"
    assert group.ask(newcomer, enqueue(99)) == [State.PENDING]


def test_a_node_is_removed_and_the_others_go_on(group: Group) -> None:
    leader = group.leader()
    group.until(lambda: len(leader.replica.tables.nodes) == 3, "all addresses are on record")
    gone = group.follower()

    members = group.ask(leader, RemoveNode(gone.name))

    assert isinstance(members, GroupMembers) and gone.name not in members.voters and not members.outgoing
    group.ask(leader, enqueue(1))
    group.pass_time(2_000)
    assert gone.name not in leader.replica.tables.nodes
    assert gone.replica.raft.role.value == "follower"
    assert isinstance(group.ask(leader, RemoveNode(gone.name)), GroupMembers), "removing it once more changes nothing"


def test_one_that_was_removed_soon_says_that_it_has_no_leader(group: Group) -> None:
    leader, gone = group.leader(), group.follower()
    group.ask(leader, RemoveNode(gone.name))
    group.pass_time(2_000)

    assert group.ask(gone, enqueue(1)).code == "NOT_LEADER"


def test_one_of_the_same_name_can_join_after_the_removal(group: Group) -> None:
    leader, gone = group.leader(), group.follower()
    group.ask(leader, RemoveNode(gone.name))
    gone.kill()
    for file in gone.path.iterdir():
        file.unlink()
    gone.path.rmdir()

    gone.founders = ()
    gone.start(first_incarnation=1_000_000)

    group.until(lambda: gone.name in group.leader().replica.raft.membership.voters, "it votes again")
    group.agree()


def test_the_leader_can_be_removed(group: Group) -> None:
    leader, follower = group.leader(), group.follower()
    group.ask(follower, enqueue(1))
    follower.send(RemoveNode(leader.name))

    group.until(lambda: group.leaders() not in ([], [leader.name]), "another leads")

    assert isinstance(group.ask(follower, RemoveNode(leader.name)), GroupMembers)
    assert group.ask(follower, enqueue(2)) == [State.PENDING]


def test_the_last_voter_cannot_be_removed(tmp_path: Path) -> None:
    group = Group(tmp_path, ("node-1",))
    refused = group.ask(group.leader(), RemoveNode("node-1"))
    assert refused.code == "MEMBERSHIP_REFUSED" and "last voter" in refused.message
    group.close()


def test_an_operator_can_add_a_node_before_it_comes(group: Group) -> None:
    members = group.ask(group.follower(), AddNode("node-4", "127.0.0.1:4400"))
    assert isinstance(members, GroupMembers) and members.learners == ["node-4"]
    group.join("node-4")
    group.until(lambda: "node-4" in group.leader().replica.raft.membership.voters, "the newcomer votes")


def test_a_replica_that_was_away_for_too_long_gets_the_state(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raft_log, "KEPT_ENTRIES", 5)
    monkeypatch.setattr(raft_log, "COMPACT_PER_BATCH", 4)
    monkeypatch.setattr(write_batcher, "RIDE_AFTER_NS", 0)
    follower = group.follower()
    follower.kill()
    group.pass_time(2_000)
    for number in range(60):
        group.ask(group.leader(), enqueue(number))
    assert group.leader().replica.status().log_first_index > 20

    follower.start()
    group.until(lambda: follower.replacements == 1, "the state is installed")

    group.ask(group.leader(), enqueue(77))
    group.agree()
    assert isinstance(group.ask(follower, GetJob(job_id(30))), JobRecord)


def test_a_replica_that_led_and_comes_back_needs_no_state(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader elected meanwhile has proved nothing of it yet: it must ask, not assume that everything is missing."""
    monkeypatch.setattr(raft_log, "KEPT_ENTRIES", 5)
    monkeypatch.setattr(raft_log, "COMPACT_PER_BATCH", 4)
    monkeypatch.setattr(write_batcher, "RIDE_AFTER_NS", 0)
    for number in range(60):
        group.ask(group.leader(), enqueue(number))
    group.agree()
    former = group.leader()
    former.kill()
    group.pass_time(3_000)
    assert group.leader().replica.status().log_first_index > 20

    former.start()
    group.pass_time(1_000)

    group.agree()
    assert former.replacements == 0


def test_a_mirror_that_is_ahead_of_a_replica_that_was_killed_need_not_begin_anew(group: Group) -> None:
    """The mirror has seen what the disk has not: the state of the last moment, which the log repeats."""
    follower = group.follower()
    for number in range(5):
        group.ask(group.leader(), enqueue(number))
    group.agree()
    seen = group.ask(follower, Pull(0, 0, 1_000)).upto
    group.ask(group.leader(), enqueue(5))
    group.pass_time(20)
    batch = group.ask(follower, Pull(seen, 0, 1_000))
    assert batch.upto > seen and not batch.is_gap

    follower.kill()
    follower.start()
    assert follower.replica.tables.applied.index < batch.upto
    after = group.ask(follower, Pull(batch.upto, 0, 1_000))
    assert (after.upto, after.records, after.is_gap) == (batch.upto, [], False)

    group.ask(group.leader(), enqueue(6))
    group.agree()
    assert keys.job(job_id(6)) in dict(group.ask(follower, Pull(batch.upto, 0, 1_000)).records)


def test_a_replica_without_memory_takes_no_part_in_elections_until_it_is_taken_in_anew(group: Group) -> None:
    leader, victim = group.leader(), group.follower()
    group.ask(leader, enqueue(1))
    group.cut_off = {leader.name}
    victim.reset()
    assert victim.replica.members.has_forgotten

    group.pass_time(5_000)
    assert group.leaders() == [], "one that remembers and one that does not are no majority"

    group.cut_off = set()
    group.until(lambda: not victim.replica.members.has_forgotten, "the group has taken it in")
    group.until(lambda: victim.name in group.leader().replica.raft.membership.voters, "it votes again")
    group.agree()
    victim.kill()
    victim.start()
    assert not victim.replica.members.has_forgotten


def test_a_replica_whose_state_differs_stops(group: Group) -> None:
    follower = group.follower()
    group.ask(group.leader(), enqueue(1))
    group.agree()
    follower.replica.tables.applied.hash = b"\xff" * 16

    with pytest.raises(Distrusted, match="differs from the leader's"):
        for number in range(2, 20):
            group.ask(group.leader(), enqueue(number))
            group.pass_time(300)
    assert group.leaders() != []


def test_any_replica_tells_about_any_other(group: Group) -> None:
    leader, follower = group.leader(), group.follower()

    status = group.ask(follower, GetStatus(leader.name))
    own = group.ask(follower, GetStatus())

    assert (status.node_id, status.role, own.node_id, own.role) == (leader.name, "leader", follower.name, "follower")
    assert {replica.node_id for replica in status.replicas} == {"node-1", "node-2", "node-3"}
    assert own.replicas == []


def test_a_leader_that_ends_hands_over_first(group: Group) -> None:
    leader = group.leader()
    group.ask(leader, enqueue(1))
    group.agree()

    leader.replica.members.hand_over()
    leader.turn()
    group.deliver()

    assert group.leaders() != [leader.name] and len(group.leaders()) == 1, "without a pause"


# What may be lost between two replicas


def _settled(group: Group) -> tuple[Node, Node]:
    leader = group.leader()
    group.until(lambda: len(leader.replica.tables.nodes) == 3, "all addresses are on record")
    return group.leader(), group.follower()


def test_who_waits_through_a_link_that_broke_one_way_is_told_to_ask_again(group: Group) -> None:
    leader, follower = _settled(group)
    waiting = follower.send(fetch("mail", wait_ms=30_000), deadline_ms=40_000)
    group.pass_time(50)

    leader.links.broken.add(follower.name)  # the follower's own link to the leader is well
    group.pass_time(50)

    assert follower.answers[waiting].code == "OUTCOME_UNKNOWN"


def test_an_answer_that_could_not_be_sent_is_told_of_and_the_repetition_finds_the_claim(group: Group) -> None:
    leader, follower = _settled(group)
    group.ask(leader, enqueue(1))
    group.lost = lambda sender, posted: isinstance(posted.body, ForwardedReplies | RepliesMayBeLost)
    number = follower.send(fetch("mail", claim=7))
    group.pass_time(100)
    assert number not in follower.answers
    group.lost = lambda sender, posted: False
    group.pass_time(50)

    assert follower.answers[number].code == "OUTCOME_UNKNOWN"
    assert [job.job_id for job in group.ask(follower, fetch("mail", claim=7, is_repeated=True))] == [job_id(1)]


def test_what_never_left_certainly_changed_nothing(group: Group) -> None:
    leader, follower = _settled(group)
    group.cut_off = {leader.name}

    assert follower.answers[follower.send(enqueue(1))].code == "NOT_LEADER"


def test_a_read_whose_question_was_lost_is_refused(group: Group) -> None:
    _, follower = _settled(group)
    group.lost = lambda sender, posted: (
        isinstance(posted.body, RaftMessage) and isinstance(posted.body.message, ReadRequest)
    )

    assert follower.answers[follower.send(GetIndex())].code == "NOT_LEADER"


def test_no_job_is_claimed_for_a_caller_whose_deadline_is_over(group: Group) -> None:
    leader, _ = _settled(group)
    late = leader.send(fetch("mail", wait_ms=30_000), deadline_ms=1_000)  # asked again late in a long wait
    group.pass_time(2_000)
    group.ask(leader, enqueue(1))
    group.pass_time(100)

    assert leader.answers[late] == []
    assert group.ask(leader, GetJob(job_id(1))).job.state == State.PENDING


def test_a_recall_finds_a_fetch_between_proposal_and_commitment(group: Group) -> None:
    leader, _ = _settled(group)
    group.ask(leader, enqueue(1))
    first = leader.send(fetch("mail", wait_ms=30_000, claim=1))
    second = leader.send(fetch("mail", wait_ms=30_000, claim=2))
    leader.turn([(b"gateway", [Call(second, 0, b"")])])
    group.pass_time(100)

    assert [job.job_id for job in leader.answers[first]] == [job_id(1)]
    assert leader.answers[second] == []


# Memory


def test_a_newcomer_that_lost_its_disk_does_not_elect_somebody_who_lacks_what_was_acknowledged(tmp_path: Path) -> None:
    group = Group(tmp_path, ("node-1", "node-2"))
    newcomer = group.join("node-3")
    group.until(lambda: "node-3" in group.leader().replica.raft.membership.voters, "it votes")
    group.until(lambda: group.leaders() == ["node-1"], "node-1 leads", 30_000)
    group.cut_off = {"node-2"}
    assert group.ask(group.nodes["node-1"], enqueue(1)) == [State.PENDING]  # on node-1 and node-3
    newcomer.kill()
    shutil.rmtree(newcomer.path)
    newcomer.start(first_incarnation=2_000_000)
    group.nodes["node-1"].kill()
    group.mail.clear()
    group.cut_off = set()

    group.pass_time(6_000)

    assert group.leaders() == []
    group.close()


def test_a_voter_without_memory_stays_while_its_copy_is_needed(group: Group) -> None:
    leader, victim = _settled(group)
    away = next(node for node in group.nodes.values() if node not in (leader, victim))
    away.kill()
    group.pass_time(1_000)
    victim.reset()
    group.pass_time(5_000)

    assert group.ask(leader, enqueue(5)) == [State.PENDING]
    away.start()
    group.until(lambda: not victim.replica.members.has_forgotten, "it is taken in anew once the third is back")


def test_one_whose_follower_is_broken_does_not_distrust_itself(group: Group) -> None:
    leader, follower = _settled(group)
    group.ask(leader, enqueue(1))
    group.agree()
    core = leader.replica.raft
    third = next(name for name in group.nodes if name not in (leader.name, follower.name))
    lives = {name: core.incarnations.of(name) for name in (follower.name, third)}
    point = StatePoint(core.points.latest.index, b"\xee" * 16)
    wrong = HeartbeatReply(follower.name, leader.name, lives[follower.name], core.incarnations.own, core.term, 0, point)
    newer = AppendReply(third, leader.name, lives[third], core.incarnations.own, core.term + 1, index=0)

    leader.turn((), [PeerMessage(follower.name, RaftMessage(wrong)), PeerMessage(third, RaftMessage(newer))])

    assert not leader.replica.raft.is_leader


# Letters that nobody of ours would send


def test_an_address_that_is_none_and_a_state_without_its_stream_are_ignored(group: Group) -> None:
    leader, follower = _settled(group)
    core = follower.replica.raft
    message = InstallSnapshot(
        leader.name, follower.name, 1, 0, core.term, core.last_index + 50, core.term, core.membership
    )

    leader.turn((), [PeerMessage(follower.name, Announcement("nonsense", False))])
    follower.turn((), [PeerMessage(leader.name, RaftMessage(message))])
    group.pass_time(300)

    assert "nonsense" not in leader.replica.tables.nodes.values()
    assert group.ask(follower, enqueue(1)) == [State.PENDING]


def test_a_transfer_to_one_that_is_behind_does_not_keep_writes_out(group: Group) -> None:
    group.until(lambda: group.leaders() == ["node-1"], "the first node leads")
    leader = group.leader()
    group.lost = lambda sender, posted: posted.node == "node-2" and isinstance(posted.body, RaftMessage)
    for number in range(150):
        group.ask(leader, enqueue(number))
    move = leader.send(MoveLeader("node-2"), deadline_ms=10_000)

    refused = 0
    for number in range(200, 280):
        asked = leader.send(enqueue(number))
        group.pass_time(100)
        refused += isinstance(leader.answers.get(asked), Refused)
    group.pass_time(4_000)

    assert refused == 0
    assert leader.answers[move].code == "MEMBERSHIP_REFUSED" and "node-2" in leader.answers[move].message


def test_a_node_alone_says_that_it_has_no_company(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "db")
    assert rig.one(RemoveNode("node-2")).code == "MEMBERSHIP_REFUSED"
    rig.kill()
