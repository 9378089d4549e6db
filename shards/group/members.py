"""A replica and the others of its group: letters in, calls passed on and served for others, members looked after.

What changes the state or the log stays in `replica.py`; here is everything that a replica without others has no use
for. A replica that lost its memory (`corvo node reset`) takes no part in elections until the group has taken it in
anew: under the old membership it might vote a second time in one term, or for somebody who lacks what it had confirmed.
"""

from collections.abc import Callable

import structlog

from corvo.endpoint import Operation
from corvo.model.errors import Refused
from corvo.queries.cluster import GetIndex, GetStatus
from corvo.queries.events import GetEvents
from corvo.queries.feed import Pull, Scan
from corvo.queries.members import AddNode, MoveLeader, RemoveNode
from corvo.runtime.addresses import is_reachable
from corvo.state.tables import Tables
from corvo.wire import Call, Reply, tag_of
from shards import raft
from shards.group.config import GroupConfig
from shards.group.forwarding import CallKey, Forwarding, foreign_peer, parse_foreign
from shards.group.member_changes import MemberPlanner
from shards.group.messages import (
    Announcement,
    ForwardedCalls,
    ForwardedReplies,
    PeerMessage,
    RaftMessage,
    RepliesMayBeLost,
)
from shards.intake.admission import Admission
from shards.intake.waiters import PendingCall
from shards.snapshots.transfer import Complete, Sent

TEND_EVERY_NS = 1_000_000_000

NO_LEADER = Refused("NOT_LEADER", "this shard has no leader at the moment; send the request again", 50)
LOST = Refused(
    "OUTCOME_UNKNOWN", "the shard lost its leader with the request under way; look before repeating it", 1_000
)
FULL = Refused("OVERLOADED", "too many requests wait for the shard's leader; send the request again", 250)

ALONE = Refused(
    "MEMBERSHIP_REFUSED", "this node was started for itself alone; start it with --peers to give it company"
)

CHANGES_OF_MEMBERS = (AddNode, RemoveNode, MoveLeader)
_ELECTION = (raft.Vote, raft.PreVote)
_ANSWERED_HERE = frozenset(ask.__struct_config__.tag for ask in (GetStatus, GetIndex, GetEvents, Pull, Scan))

log = structlog.get_logger()


class Members:
    def __init__(
        self,
        group_config: GroupConfig,
        shard: int,
        core: raft.Raft,
        admission: Admission,
        tables: Tables,
        has_forgotten: bool,
    ) -> None:
        self.has_forgotten = has_forgotten
        self._group_config = group_config
        self._core = core
        self._admission = admission
        self._tables = tables
        self._forwarding = Forwarding(group_config.post)
        self._planner = MemberPlanner(core.id, shard)
        self._told = raft.RoleChange(raft.Role.FOLLOWER, 0, None, 0)
        self._tend_at_ns = 0
        self._has_complete = False
        self._uncertain: set[str] = set()  # nodes that must be told that answers for them may be lost
        admission.on_gone = self._lose_peer

    # Letters

    def receive(self, posted: PeerMessage, now_ns: int) -> None:
        node, body = posted
        if isinstance(body, RaftMessage):
            is_muted = self.has_forgotten and isinstance(body.message, _ELECTION)
            if not is_muted and not isinstance(body.message, raft.InstallSnapshot):  # that comes with its state
                self._core.step(body.message, now_ns)
        elif isinstance(body, ForwardedCalls):
            peer = foreign_peer(node, body.peer)
            for call in body.calls:
                if self._core.is_leader or not call.ask or tag_of(call.ask) in _ANSWERED_HERE:
                    self._admission.admit(peer, call, now_ns)
                else:
                    self._admission.answer(peer, call.id, NO_LEADER)
        elif isinstance(body, ForwardedReplies):
            for reply in self._forwarding.take_back(body):
                self._admission.reply(body.peer, reply)
        elif isinstance(body, RepliesMayBeLost):
            self._refuse(self._forwarding.forget(node), LOST)
        elif isinstance(body, Announcement):
            if self._core.is_leader and is_reachable(body.address):
                self._planner.arrive(node, body.address, body.is_empty)
        elif self._group_config.snapshots is not None:
            self._heed(self._group_config.snapshots.receive(posted, now_ns), now_ns)

    def _heed(self, event: Sent | Complete | None, now_ns: int) -> None:
        if isinstance(event, Sent):
            self._core.report_snapshot(event.peer, event.ok)
        elif isinstance(event, Complete):
            self._has_complete = True
            self._core.step(event.install, now_ns)

    def post(self, message: raft.AnyMessage, now_ns: int) -> None:
        if isinstance(message, raft.InstallSnapshot):
            if self._group_config.snapshots is not None:
                self._group_config.snapshots.send(message, now_ns)
        elif not (self.has_forgotten and isinstance(message, _ELECTION)) and not self._group_config.post(
            PeerMessage(message.receiver, RaftMessage(message))
        ):
            self._core.report_unreachable(message.receiver)
            if isinstance(message, raft.ReadRequest):
                self._core.give_up_reads()

    def lose_link(self, node: str) -> None:
        """What went over the link may be lost, in either direction. The node may even have died: a job must not be
        claimed for whoever waited there."""
        self._core.report_unreachable(node)
        if node == self._core.leader_id:
            self._core.give_up_reads()
        self._refuse(self._forwarding.forget(node), LOST)
        self._admission.waiters.forget_peers(foreign_peer(node, b""))
        self._uncertain.add(node)

    def _lose_peer(self, peer: bytes) -> None:
        foreign = parse_foreign(peer)
        if foreign is not None:
            self._uncertain.add(foreign[0])

    # Calls

    def admit(self, peer: bytes, call: Call, now_ns: int) -> None:
        """Of a gateway or mirror of this node: served here, or passed on to the leader."""
        core = self._core
        if core.is_leader:
            self._admission.admit(peer, call, now_ns)
        elif not call.ask:
            self._admission.admit(peer, call, now_ns)
            self._forwarding.recall(peer, call.id, now_ns)
        elif tag_of(call.ask) in _ANSWERED_HERE:
            self._admission.admit(peer, call, now_ns)
        elif core.leader_id is None:
            self._admission.answer(peer, call.id, NO_LEADER)
        else:
            self.forward(core.leader_id, peer, call, now_ns)

    def forward(self, node: str, peer: bytes, call: Call, now_ns: int) -> None:
        if self._forwarding.is_full:
            self._admission.answer(peer, call.id, FULL)
        else:
            self._forwarding.forward(node, peer, call, now_ns)

    def forward_to(self, node: str, waiting: PendingCall, now_ns: int) -> bool:
        """A question to the replica of a certain node. False: it is for us, or was passed on once already."""
        if node in ("", self._core.id) or parse_foreign(waiting.peer) is not None:
            return False
        left_ms = max(waiting.deadline_ns - now_ns, 0) // 1_000_000
        self.forward(node, waiting.peer, Call(waiting.call_id, left_ms, waiting.raw), now_ns)
        return True

    def send_replies(self, replies: list[tuple[bytes, list[Reply]]]) -> list[tuple[bytes, list[Reply]]]:
        """Those for other nodes leave as letters; the others are returned."""
        if not self._group_config.address:
            return replies
        ours = []
        for peer, some in replies:
            foreign = parse_foreign(peer)
            if foreign is None:
                ours.append((peer, some))
            elif not self._group_config.post(PeerMessage(foreign[0], ForwardedReplies(foreign[1], some))):
                self._uncertain.add(foreign[0])
        return ours

    def _refuse(self, calls: list[CallKey], refused: Refused) -> None:
        for peer, call_id in calls:
            self._admission.answer(peer, call_id, refused)

    # Roles and members

    def change_role(self, now: raft.RoleChange, now_ns: int) -> None:
        before, self._told = self._told, now
        if now.role is raft.Role.LEADER and before.role is not raft.Role.LEADER:
            self._planner.begin(now_ns)
        if before.role is raft.Role.LEADER and now.role is not raft.Role.LEADER:
            for waiting, refused in self._planner.end():
                self._admission.answer(waiting.peer, waiting.call_id, refused)
        if (now.leader_id, now.term) != (before.leader_id, before.term):
            self._refuse(self._forwarding.forget(), LOST)
            if self._group_config.address:
                log.info("leader", leader=now.leader_id, term=now.term, role=now.role.value)
        self._tend_at_ns = 0

    def change_members(self, waiting: PendingCall) -> None:
        if not self._group_config.address:
            self._admission.answer(waiting.peer, waiting.call_id, ALONE)
        elif self._core.is_leader:
            self._planner.ask(waiting)
        else:
            self._admission.answer(waiting.peer, waiting.call_id, NO_LEADER)

    def lead(self, now_ns: int) -> list[Operation]:
        """Take the next step that the group needs; what is to be written in the log for it."""
        core, planner = self._core, self._planner
        if not self._group_config.address or not planner.is_due(now_ns):
            return []
        if self._tables.nodes.get(core.id) != self._group_config.address:
            planner.arrive(core.id, self._group_config.address, False)
        for waiting, answer in planner.answers(core.membership, now_ns):
            self._admission.answer(waiting.peer, waiting.call_id, answer)
        step = planner.look(core.membership, core.progress(), self._tables.nodes, now_ns)
        try:
            if step.change is not None:
                core.propose_membership(step.change, core.membership.config_id)
                log.info("members change", steps=[f"{each.kind.name} {each.replica}" for each in step.change.steps])
            elif step.successor is not None:
                core.transfer(step.successor)
                log.info("leadership moves", to=step.successor)
        except raft.RaftRefusal as refused:
            planner.stalled(str(refused))
        return list(step.names)

    def hand_over(self) -> bool:
        """This replica is about to end: the best of the others should lead at once, not after an election. False: there
        is nobody."""
        core = self._core
        able = [
            peer
            for peer in core.progress()
            if peer.replica in core.membership.voters and peer.replica != core.id and peer.mode == "replicate"
        ]
        for peer in sorted(able, key=lambda peer: -peer.match):
            try:
                core.transfer(peer.replica)
            except raft.RaftRefusal:
                continue
            return True
        return False

    # Time

    def tend(self, now_ns: int, is_there: Callable[[bytes], bool]) -> None:
        """At the end of a turn."""
        if now_ns >= self._tend_at_ns:
            self._tend_at_ns = now_ns + TEND_EVERY_NS
            self._forwarding.sweep(now_ns, is_there)
            if self._group_config.address:
                self._announce()
        for node in list(self._uncertain):
            if self._group_config.post(PeerMessage(node, RepliesMayBeLost())):
                self._uncertain.discard(node)
        self.flush_forwarded()

    def flush_forwarded(self) -> None:
        self._refuse(self._forwarding.flush(), NO_LEADER)  # what never left

    def heed_streams(self, now_ns: int) -> None:
        if self._group_config.snapshots is not None:
            for event in self._group_config.snapshots.tick(now_ns):
                self._heed(event, now_ns)

    def discard_unwanted(self) -> None:
        """A state that has come whole is installed in the turn that heard of it, or not at all."""
        if self._has_complete and self._group_config.snapshots is not None:
            self._has_complete = False
            self._group_config.snapshots.discard()

    def _announce(self) -> None:
        """Say where we are until the leader has it on record; without a leader, to everybody we know of."""
        core, group_config = self._core, self._group_config
        is_empty = self.has_forgotten or not core.membership.voters
        if core.is_leader or (not is_empty and self._tables.nodes.get(core.id) == group_config.address):
            return
        arrival = Announcement(group_config.address, is_empty)
        known = {*group_config.nodes, *self._tables.nodes, *core.membership.members()}
        for node in [core.leader_id] if core.leader_id is not None else sorted(known):
            if node != core.id:
                group_config.post(PeerMessage(node, arrival))

    def next_ns(self) -> int | None:
        """When `tend` wants to be called although nothing arrives."""
        moments = []
        if self._group_config.address:
            moments.append(self._tend_at_ns)
        if (
            self._group_config.snapshots is not None
            and (ticks := self._group_config.snapshots.next_tick_ns()) is not None
        ):
            moments.append(ticks)
        return min(moments, default=None)
