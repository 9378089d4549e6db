"""The leader's care for its group, step by step."""

from typing import Any

from corvo.model.errors import Refused
from corvo.ops.upkeep.name_node import NameNode
from corvo.queries.members import AddNode, GroupMembers, MoveLeader, RemoveNode
from shards import raft
from shards.group.member_changes import MOVED_NS, SETTLED_NS, TRANSFER_AGAIN_NS, MemberPlanner, preferred_leader
from shards.intake.waiters import PendingCall
from shards.raft import Membership, PeerStatus

SECOND = 1_000_000_000
THREE = Membership(5, ("node-1", "node-2", "node-3"))
NODES = {"node-1": "a:1", "node-2": "b:1", "node-3": "c:1"}


def a_peer(replica: str, match: int = 10, mode: str = "replicate", **fields: Any) -> PeerStatus:
    return PeerStatus(replica, match, match + 1, mode, fields.get("is_learner", False), fields.get("up", True), 0, 0)


PEERS = [a_peer("node-1"), a_peer("node-2"), a_peer("node-3")]


def asked(ask: Any, deadline_ns: int = 60 * SECOND) -> PendingCall:
    return PendingCall(b"gw", 1, ask, b"", 0, deadline_ns)


def a_steward(shard: int = 0) -> MemberPlanner:
    planner = MemberPlanner("node-1", shard)
    planner.begin(0)
    return planner


def test_a_group_in_order_needs_nothing() -> None:
    step = a_steward().look(THREE, PEERS, NODES, SECOND)
    assert (step.names, step.change, step.successor) == ([], None, None)


def test_a_newcomer_is_named_then_taken_in_then_promoted() -> None:
    planner = a_steward()
    planner.arrive("node-4", "d:1", True)

    step = planner.look(THREE, PEERS, NODES, 0)
    assert (step.names, step.change) == ([NameNode("node-4", "d:1")], None)

    known = NODES | {"node-4": "d:1"}
    assert planner.look(THREE, PEERS, known, 0).change == raft.add_learner("node-4")

    learning = Membership(6, THREE.voters, (), ("node-4",))
    behind = [*PEERS, a_peer("node-4", is_learner=True, up=False)]
    assert planner.look(learning, behind, known, 0).change is None
    ready = [*PEERS, a_peer("node-4", is_learner=True)]
    assert planner.look(learning, ready, known, 0).change == raft.promote("node-4")


def test_a_voter_that_lost_its_memory_leaves_before_it_comes_back() -> None:
    planner = a_steward()
    planner.arrive("node-3", "c:1", True)

    assert planner.look(THREE, PEERS, NODES, 0).change == raft.remove("node-3")
    without = Membership(8, ("node-1", "node-2"))
    step = planner.look(without, PEERS[:2], NODES, 0)
    assert (step.names, step.change) == ([], raft.add_learner("node-3"))


def test_one_that_was_removed_does_not_come_back_by_itself() -> None:
    planner = a_steward()
    planner.arrive("node-9", "z:1", False)

    step = planner.look(THREE, PEERS, NODES, 0)

    assert (step.names, step.change) == ([], None)


def test_a_member_that_moved_is_named_anew() -> None:
    planner = a_steward()
    planner.arrive("node-2", "elsewhere:1", False)
    step = planner.look(THREE, PEERS, NODES, 0)
    assert (step.names, step.change) == ([NameNode("node-2", "elsewhere:1")], None)


def test_who_has_left_is_forgotten() -> None:
    step = a_steward().look(Membership(9, ("node-1", "node-2")), PEERS[:2], NODES, 0)
    assert step.names == [NameNode("node-3", "")]


def test_nothing_is_begun_while_a_change_is_under_way() -> None:
    planner = a_steward()
    planner.ask(asked(RemoveNode("node-2")))
    joint = Membership(7, ("node-1", "node-3"), THREE.voters)
    step = planner.look(joint, PEERS, NODES, 0)
    assert (step.names, step.change, step.successor) == ([], None, None)
    assert planner.answers(joint, 0) == []


def test_wishes_are_answered_when_they_have_come_true() -> None:
    planner = a_steward()
    add, gone, move = asked(AddNode("node-2", "b:1")), asked(RemoveNode("node-9")), asked(MoveLeader("node-1"))
    for waiting in (add, gone, move):
        planner.ask(waiting)

    told = GroupMembers(5, ["node-1", "node-2", "node-3"], [], [])
    assert planner.answers(THREE, 0) == [(add, told), (gone, told), (move, told)]
    assert planner.answers(THREE, 0) == []


def test_what_can_never_come_true_is_refused_at_once() -> None:
    planner = a_steward()
    planner.ask(asked(MoveLeader("node-9")))
    ((_, refused),) = planner.answers(THREE, 0)
    assert isinstance(refused, Refused) and refused.code == "MEMBERSHIP_REFUSED" and "node-9" in refused.message

    planner.ask(asked(RemoveNode("node-1")))
    ((_, refused),) = planner.answers(Membership(1, ("node-1",)), 0)
    assert isinstance(refused, Refused) and "last voter" in refused.message


def test_who_waits_too_long_is_told_why() -> None:
    planner = a_steward()
    planner.ask(asked(RemoveNode("node-2"), deadline_ns=SECOND))
    planner.look(THREE, PEERS, NODES, 0)
    planner.stalled("another change is under way")

    assert planner.answers(THREE, 0) == []
    ((_, refused),) = planner.answers(THREE, SECOND - 1)
    assert isinstance(refused, Refused) and "another change is under way" in refused.message


def test_whoever_waits_when_leadership_is_lost_asks_the_next_one() -> None:
    planner = a_steward()
    waiting = asked(RemoveNode("node-2"))
    planner.ask(waiting)
    ((told, refused),) = planner.end()
    assert told is waiting and refused.code == "NOT_LEADER"


def test_the_preferred_node_gets_the_lead_once_things_have_settled() -> None:
    planner = a_steward(shard=1)
    assert planner.look(THREE, PEERS, NODES, SETTLED_NS - 1).successor is None
    assert planner.look(THREE, PEERS, NODES, SETTLED_NS).successor == "node-2"
    assert planner.look(THREE, PEERS, NODES, SETTLED_NS + 1).successor is None, "not again at once if it failed"
    assert planner.look(THREE, PEERS, NODES, SETTLED_NS + TRANSFER_AGAIN_NS).successor == "node-2"


def test_a_leader_that_somebody_asked_for_stays_for_a_while() -> None:
    planner = a_steward(shard=1)
    planner.ask(asked(MoveLeader("node-1")))
    planner.answers(THREE, 0)

    assert planner.look(THREE, PEERS, NODES, MOVED_NS - 1).successor is None
    assert planner.look(THREE, PEERS, NODES, MOVED_NS).successor == "node-2"


def test_a_preferred_node_that_is_behind_has_to_wait() -> None:
    behind = [a_peer("node-1", match=10_000), a_peer("node-2", match=10), a_peer("node-3", match=10_000)]
    probing = [a_peer("node-1"), a_peer("node-2", mode="probe"), a_peer("node-3")]
    for peers in (behind, probing):
        assert a_steward(shard=1).look(THREE, peers, NODES, SETTLED_NS).successor is None


def test_shards_prefer_the_voters_in_turn() -> None:
    assert [preferred_leader(THREE, shard) for shard in range(4)] == ["node-1", "node-2", "node-3", "node-1"]
    assert preferred_leader(Membership(), 0) is None
