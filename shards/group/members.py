"""A replica and the others of its group: letters in, calls passed on and served for others, members looked after.

What changes the state or the log stays in `replica.py`; here is everything that a replica without others has no use
for. A replica that lost its memory (`corvo node reset`) takes no part in elections until the group has taken it in
anew: under the old membership it might vote a second time in one term, or for somebody who lacks what it had confirmed.
"""

from collections.abc import Callable

import structlog

from corvo.model.errors import Refused
from corvo.ops.operation import Operation
from corvo.queries.cluster import GetIndex, GetStatus
from corvo.queries.events import GetEvents
from corvo.queries.feed import Pull, Scan
from corvo.queries.members import AddNode, MoveLeader, RemoveNode
from corvo.runtime.addresses import is_reachable
from corvo.state.tables import Tables
from corvo.wire import Call, Reply, tag_of
from shards import raft
from shards.group.config import Company
from shards.group.forwarding import CallKey, Passing, foreign_peer, parse_foreign
from shards.group.member_changes import Steward
from shards.group.messages import Arrival, Consensus, MayBeLost, PassedBack, PassedOn, Posted
from shards.intake.admission import Door
from shards.intake.waiters import Waiting
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


class Relations:
    def __init__(
        self, company: Company, shard: int, core: raft.Raft, door: Door, tables: Tables, has_forgotten: bool
    ) -> None:
        self.has_forgotten = has_forgotten
        self._company = company
        self._core = core
        self._door = door
        self._tables = tables
        self._passing = Passing(company.post)
        self._steward = Steward(core.id, shard)
        self._told = raft.RoleChange(raft.Role.FOLLOWER, 0, None, 0)
        self._tend_at_ns = 0
        self._has_complete = False
        self._uncertain: set[str] = set()  # nodes that must be told that answers for them may be lost
        door.on_gone = self._lose_peer

    # Letters

    def receive(self, posted: Posted, now_ns: int) -> None:
        node, letter = posted
        if isinstance(letter, Consensus):
            is_muted = self.has_forgotten and isinstance(letter.message, _ELECTION)
            if not is_muted and not isinstance(letter.message, raft.InstallSnapshot):  # that comes with its state
                self._core.step(letter.message, now_ns)
        elif isinstance(letter, PassedOn):
            peer = foreign_peer(node, letter.peer)
            for call in letter.calls:
                if self._core.is_leader or not call.ask or tag_of(call.ask) in _ANSWERED_HERE:
                    self._door.admit(peer, call, now_ns)
                else:
                    self._door.answer(peer, call.id, NO_LEADER)
        elif isinstance(letter, PassedBack):
            for reply in self._passing.take_back(letter):
                self._door.reply(letter.peer, reply)
        elif isinstance(letter, MayBeLost):
            self._refuse(self._passing.forget(node), LOST)
        elif isinstance(letter, Arrival):
            if self._core.is_leader and is_reachable(letter.address):
                self._steward.arrive(node, letter.address, letter.is_empty)
        elif self._company.snapshots is not None:
            self._heed(self._company.snapshots.receive(posted, now_ns), now_ns)

    def _heed(self, event: Sent | Complete | None, now_ns: int) -> None:
        if isinstance(event, Sent):
            self._core.report_snapshot(event.peer, event.ok)
        elif isinstance(event, Complete):
            self._has_complete = True
            self._core.step(event.install, now_ns)

    def post(self, message: raft.AnyMessage, now_ns: int) -> None:
        if isinstance(message, raft.InstallSnapshot):
            if self._company.snapshots is not None:
                self._company.snapshots.send(message, now_ns)
        elif not (self.has_forgotten and isinstance(message, _ELECTION)) and not self._company.post(
            Posted(message.receiver, Consensus(message))
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
        self._refuse(self._passing.forget(node), LOST)
        self._door.parking.forget_peers(foreign_peer(node, b""))
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
            self._door.admit(peer, call, now_ns)
        elif not call.ask:
            self._door.admit(peer, call, now_ns)
            self._passing.recall(peer, call.id, now_ns)
        elif tag_of(call.ask) in _ANSWERED_HERE:
            self._door.admit(peer, call, now_ns)
        elif core.leader_id is None:
            self._door.answer(peer, call.id, NO_LEADER)
        else:
            self.pass_on(core.leader_id, peer, call, now_ns)

    def pass_on(self, node: str, peer: bytes, call: Call, now_ns: int) -> None:
        if self._passing.is_full:
            self._door.answer(peer, call.id, FULL)
        else:
            self._passing.pass_on(node, peer, call, now_ns)

    def pass_to(self, node: str, waiting: Waiting, now_ns: int) -> bool:
        """A question to the replica of a certain node. False: it is for us, or was passed on once already."""
        if node in ("", self._core.id) or parse_foreign(waiting.peer) is not None:
            return False
        left_ms = max(waiting.deadline_ns - now_ns, 0) // 1_000_000
        self.pass_on(node, waiting.peer, Call(waiting.call_id, left_ms, waiting.raw), now_ns)
        return True

    def send_replies(self, replies: list[tuple[bytes, list[Reply]]]) -> list[tuple[bytes, list[Reply]]]:
        """Those for other nodes leave as letters; the others are returned."""
        if not self._company.address:
            return replies
        ours = []
        for peer, some in replies:
            foreign = parse_foreign(peer)
            if foreign is None:
                ours.append((peer, some))
            elif not self._company.post(Posted(foreign[0], PassedBack(foreign[1], some))):
                self._uncertain.add(foreign[0])
        return ours

    def _refuse(self, calls: list[CallKey], refused: Refused) -> None:
        for peer, call_id in calls:
            self._door.answer(peer, call_id, refused)

    # Roles and members

    def change_role(self, now: raft.RoleChange, now_ns: int) -> None:
        before, self._told = self._told, now
        if now.role is raft.Role.LEADER and before.role is not raft.Role.LEADER:
            self._steward.begin(now_ns)
        if before.role is raft.Role.LEADER and now.role is not raft.Role.LEADER:
            for waiting, refused in self._steward.end():
                self._door.answer(waiting.peer, waiting.call_id, refused)
        if (now.leader_id, now.term) != (before.leader_id, before.term):
            self._refuse(self._passing.forget(), LOST)
            if self._company.address:
                log.info("leader", leader=now.leader_id, term=now.term, role=now.role.value)
        self._tend_at_ns = 0

    def ask_of_members(self, waiting: Waiting) -> None:
        if not self._company.address:
            self._door.answer(waiting.peer, waiting.call_id, ALONE)
        elif self._core.is_leader:
            self._steward.ask(waiting)
        else:
            self._door.answer(waiting.peer, waiting.call_id, NO_LEADER)

    def lead(self, now_ns: int) -> list[Operation]:
        """Take the next step that the group needs; what is to be written in the log for it."""
        core, steward = self._core, self._steward
        if not self._company.address or not steward.is_due(now_ns):
            return []
        if self._tables.nodes.get(core.id) != self._company.address:
            steward.arrive(core.id, self._company.address, False)
        for waiting, answer in steward.answers(core.membership, now_ns):
            self._door.answer(waiting.peer, waiting.call_id, answer)
        step = steward.look(core.membership, core.progress(), self._tables.nodes, now_ns)
        try:
            if step.change is not None:
                core.propose_membership(step.change, core.membership.config_id)
                log.info("members change", steps=[f"{each.kind.name} {each.replica}" for each in step.change.steps])
            elif step.successor is not None:
                core.transfer(step.successor)
                log.info("leadership moves", to=step.successor)
        except raft.Refused as refused:
            steward.stalled(str(refused))
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
            except raft.Refused:
                continue
            return True
        return False

    # Time

    def tend(self, now_ns: int, is_there: Callable[[bytes], bool]) -> None:
        """At the end of a turn."""
        if now_ns >= self._tend_at_ns:
            self._tend_at_ns = now_ns + TEND_EVERY_NS
            self._passing.sweep(now_ns, is_there)
            if self._company.address:
                self._announce()
        for node in list(self._uncertain):
            if self._company.post(Posted(node, MayBeLost())):
                self._uncertain.discard(node)
        self.pass_all_on()

    def pass_all_on(self) -> None:
        self._refuse(self._passing.flush(), NO_LEADER)  # what never left

    def heed_streams(self, now_ns: int) -> None:
        if self._company.snapshots is not None:
            for event in self._company.snapshots.tick(now_ns):
                self._heed(event, now_ns)

    def discard_unwanted(self) -> None:
        """A state that has come whole is installed in the turn that heard of it, or not at all."""
        if self._has_complete and self._company.snapshots is not None:
            self._has_complete = False
            self._company.snapshots.discard()

    def _announce(self) -> None:
        """Say where we are until the leader has it on record; without a leader, to everybody we know of."""
        core, company = self._core, self._company
        is_empty = self.has_forgotten or not core.membership.voters
        if core.is_leader or (not is_empty and self._tables.nodes.get(core.id) == company.address):
            return
        arrival = Arrival(company.address, is_empty)
        known = {*company.nodes, *self._tables.nodes, *core.membership.members()}
        for node in [core.leader_id] if core.leader_id is not None else sorted(known):
            if node != core.id:
                company.post(Posted(node, arrival))

    def next_ns(self) -> int | None:
        """When `tend` wants to be called although nothing arrives."""
        moments = []
        if self._company.address:
            moments.append(self._tend_at_ns)
        if self._company.snapshots is not None and (ticks := self._company.snapshots.next_tick_ns()) is not None:
            moments.append(ticks)
        return min(moments, default=None)
