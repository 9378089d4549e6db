"""Looking after the members of a group: who is where, who joins, leaves and leads.

What to do next is decided in `member_changes.py`; here it is done. A replica without others has no use for any of it.

A replica that lost its memory (`corvo node reset`) takes no part in elections until the group has taken it in again
(`has_forgotten`): under the old membership it might vote twice in one term, or for a candidate that lacks what it had
confirmed.
"""

import structlog

from corvo.endpoint import Operation
from corvo.model.errors import Refused
from corvo.runtime.addresses import is_reachable
from corvo.state.tables import Tables
from shards import raft
from shards.group.config import GroupConfig
from shards.group.member_changes import MemberPlanner
from shards.group.messages import Announcement
from shards.intake.admission import Admission
from shards.intake.refusals import NO_LEADER
from shards.intake.waiters import PendingCall

ANNOUNCE_EVERY_NS = 1_000_000_000

ALONE = Refused(
    "MEMBERSHIP_REFUSED",
    "this node does not listen for others; restart it with --bootstrap, or with --peers, to let others join",
)

log = structlog.get_logger()


class MemberUpkeep:
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
        self._links = group_config.links
        self._address = group_config.address
        self._known = group_config.nodes
        self._core = core
        self._admission = admission
        self._tables = tables
        self._planner = MemberPlanner(core.id, shard)
        self._announce_at_ns = 0

    def announced(self, node: str, body: Announcement) -> None:
        if self._core.is_leader and is_reachable(body.address):
            self._planner.arrive(node, body.address, body.is_empty)

    def change_role(self, before: raft.RoleChange, now: raft.RoleChange, now_ns: int) -> None:
        if now.role is raft.Role.LEADER and before.role is not raft.Role.LEADER:
            self._planner.begin(now_ns)
        if before.role is raft.Role.LEADER and now.role is not raft.Role.LEADER:
            for waiting, refused in self._planner.end():
                self._admission.answer(waiting.peer, waiting.call_id, refused)
        if self._address and (now.leader_id, now.term) != (before.leader_id, before.term):
            log.info("leader", leader=now.leader_id, term=now.term, role=now.role.value)
        self._announce_at_ns = 0

    def change_members(self, waiting: PendingCall) -> None:
        if not self._address:
            self._admission.answer(waiting.peer, waiting.call_id, ALONE)
        elif self._core.is_leader:
            self._planner.ask(waiting)
        else:
            self._admission.answer(waiting.peer, waiting.call_id, NO_LEADER)

    def lead(self, now_ns: int) -> list[Operation]:
        """Take the next step that the group needs; return what must be written in the log for it."""
        core, planner = self._core, self._planner
        if not self._address or not planner.is_due(now_ns):
            return []
        if self._tables.nodes.get(core.id) != self._address:
            planner.arrive(core.id, self._address, False)
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
        """This replica is about to end: the follower with the longest log should lead now, not after an election.
        False: there is none."""
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

    def turn(self, now_ns: int) -> None:
        if self._address and now_ns >= self._announce_at_ns:
            self._announce_at_ns = now_ns + ANNOUNCE_EVERY_NS
            self._announce()

    def next_ns(self) -> int | None:
        return self._announce_at_ns if self._address else None

    def _announce(self) -> None:
        """Say where this node is until the leader has it on record; without a leader, to every node we know of."""
        core = self._core
        is_empty = self.has_forgotten or not core.membership.voters
        if core.is_leader or (not is_empty and self._tables.nodes.get(core.id) == self._address):
            return
        announcement = Announcement(self._address, is_empty)
        known = {*self._known, *self._tables.nodes, *core.membership.members()}
        for node in [core.leader_id] if core.leader_id is not None else sorted(known):
            if node != core.id:
                self._links.send(node, announcement)
