"""What the leader does for the members of its group: nodes that join or leave, who should lead, addresses.

Decisions only; `Replica` calls `look` once a turn and proposes what comes back. All of it can be asked again at any
time: the request is compared with the membership as it is, one step is taken, and the next look does the rest. So a
leader that is lost in the middle leaves nothing behind but a request that is repeated.
"""

import msgspec

from corvo.model.errors import Refused
from corvo.ops.upkeep.name_node import NameNode
from corvo.queries.members import AddNode, GroupMembers, MoveLeader, RemoveNode
from shards import raft
from shards.intake.waiters import PendingCall

LOOK_EVERY_NS = 100_000_000
ALIVE_NS = 1_000_000_000  # a replica heard within this is alive
ENTRIES_BEHIND_MAX = 100  # of a successor: while it catches up, nothing can be written
SETTLED_NS = 3_000_000_000  # how long a leader stays before it may hand over to the preferred one
TOLD_BEFORE_NS = 500_000_000  # an answer must arrive before the asker's own clock ends the wait
MOVED_NS = 600_000_000_000  # how long a leader that an operator moved stays where it is
ASKED_AGAIN_NS = 5_000_000_000  # during a transfer nothing can be written: not again and again
TRANSFER_AGAIN_NS = 10_000_000_000  # and how long after a transfer that failed

_MOVED = Refused("NOT_LEADER", "the shard's leader changed while its members did; retry", 200)


class NodeArrived(msgspec.Struct):
    """A node that said where it is reached."""

    address: str
    is_empty: bool


class MemberStep(msgspec.Struct):
    """What to do next: name nodes in the log, change the membership, hand over. Each may be nothing."""

    names: list[NameNode]
    change: raft.MembershipChange | None = None
    successor: str | None = None


class MemberPlanner:
    def __init__(self, node_id: str, shard: int) -> None:
        self._node_id = node_id
        self._shard = shard
        self._arrived: dict[str, NodeArrived] = {}
        self._asked: list[PendingCall] = []
        self._leads_since_ns = 0
        self._transferred_ns = 0
        self._stays_until_ns = 0
        self._look_at_ns = 0
        self._reason = ""  # why the last step was not taken

    # What comes in

    def arrive(self, node: str, address: str, is_empty: bool) -> None:
        self._arrived[node] = NodeArrived(address, is_empty)
        self._look_at_ns = 0

    def ask(self, waiting: PendingCall) -> None:
        if isinstance(waiting.ask, AddNode):
            self.arrive(waiting.ask.node_id, waiting.ask.address, False)
        self._asked.append(waiting)
        self._look_at_ns = 0

    def begin(self, now_ns: int) -> None:
        """We lead from now on."""
        self._leads_since_ns = now_ns
        self._transferred_ns = self._stays_until_ns = 0
        self._arrived.clear()

    def end(self) -> list[tuple[PendingCall, Refused]]:
        asked, self._asked = self._asked, []
        return [(waiting, _MOVED) for waiting in asked]

    # What comes out

    def is_due(self, now_ns: int) -> bool:
        return now_ns >= self._look_at_ns

    def look(
        self, membership: raft.Membership, progress: list[raft.PeerStatus], nodes: dict[str, str], now_ns: int
    ) -> MemberStep:
        """The next step, while we lead."""
        self._look_at_ns = now_ns + LOOK_EVERY_NS
        self._reason = ""
        leaving = {waiting.ask.node_id for waiting in self._asked if isinstance(waiting.ask, RemoveNode)}
        requested = {waiting.ask.node_id for waiting in self._asked if isinstance(waiting.ask, AddNode)}
        for node, arrived in list(self._arrived.items()):
            is_unknown = not (membership.is_member(node) or arrived.is_empty or node in requested)
            if node in leaving or is_unknown:  # one that was removed does not come back by itself
                del self._arrived[node]
        step = MemberStep(
            [NameNode(node, each.address) for node, each in self._arrived.items() if nodes.get(node) != each.address]
        )
        if not membership.is_joint:
            step.names += [
                NameNode(node, "") for node in nodes if not membership.is_member(node) and node not in self._arrived
            ]
            step.change = self._next_change(membership, progress, nodes, leaving)
            if step.change is None:
                step.successor = self._next_leader(membership, progress, now_ns)
        return step

    def _next_change(
        self, membership: raft.Membership, progress: list[raft.PeerStatus], nodes: dict[str, str], leaving: set[str]
    ) -> raft.MembershipChange | None:
        for node in sorted(leaving):
            if membership.is_member(node):
                return raft.remove(node)
        for node, arrived in sorted(self._arrived.items()):
            if nodes.get(node) != arrived.address:
                continue  # its address comes first: a member must be reachable
            if arrived.is_empty and membership.is_voter(node):
                # It remembers no vote that it gave, so it may not go on voting under the old membership. Until enough
                # of the others are there, its copy of the log is needed to write anything.
                if _can_do_without(node, membership, progress):
                    return raft.remove(node)
                continue
            if not membership.is_member(node):
                return raft.add_learner(node)
            del self._arrived[node]
            break
        ready = [peer.replica for peer in progress if peer.is_learner and peer.is_caught_up]
        return raft.promote(ready[0]) if ready else None

    def _next_leader(self, membership: raft.Membership, progress: list[raft.PeerStatus], now_ns: int) -> str | None:
        asked = [waiting.ask.node_id for waiting in self._asked if isinstance(waiting.ask, MoveLeader)]
        preferred = asked[0] if asked else preferred_leader(membership, self._shard)
        pause_ns = ASKED_AGAIN_NS if asked else TRANSFER_AGAIN_NS
        last_ns = self._transferred_ns + pause_ns if self._transferred_ns else 0
        settled_ns = 0 if asked else max(self._leads_since_ns + SETTLED_NS, self._stays_until_ns)
        if preferred in (None, self._node_id) or now_ns < max(settled_ns, last_ns):
            return None
        own = max((peer.match for peer in progress), default=0)
        for peer in progress:
            if peer.replica == preferred and peer.mode == "replicate" and own - peer.match <= ENTRIES_BEHIND_MAX:
                self._transferred_ns = now_ns
                return preferred
        self._reason = f"{preferred} is away, or has not caught up"
        return None

    def stalled(self, reason: str) -> None:
        """Raft would not take the step now. It is tried again; a caller that waits too long is told the reason."""
        self._reason = reason

    def answers(self, membership: raft.Membership, now_ns: int) -> list[tuple[PendingCall, object]]:
        """For callers whose request is done, or whose time is over."""
        done: list[tuple[PendingCall, object]] = []
        for waiting in list(self._asked):
            if self._is_true(waiting, membership):
                answer: object = members_of(membership)
                if isinstance(waiting.ask, MoveLeader):
                    self._stays_until_ns = now_ns + MOVED_NS
            elif (never := _why_never(waiting, membership)) is not None:
                answer = Refused("MEMBERSHIP_REFUSED", never)
            elif waiting.deadline_ns - TOLD_BEFORE_NS <= now_ns:
                reason = self._reason or "the change is under way"
                answer = Refused("MEMBERSHIP_REFUSED", f"not finished in time: {reason}; it may still go on")
            else:
                continue
            self._asked.remove(waiting)
            done.append((waiting, answer))
        return done

    def _is_true(self, waiting: PendingCall, membership: raft.Membership) -> bool:
        ask = waiting.ask
        if isinstance(ask, AddNode):
            return membership.is_member(ask.node_id)
        if isinstance(ask, RemoveNode):
            return not membership.is_member(ask.node_id) and not membership.is_joint
        assert isinstance(ask, MoveLeader)
        return ask.node_id == self._node_id


def _can_do_without(node: str, membership: raft.Membership, progress: list[raft.PeerStatus]) -> bool:
    rest = [peer for peer in progress if peer.replica in membership.voters and peer.replica != node]
    return sum(peer.silent_ns < ALIVE_NS for peer in rest) >= len(rest) // 2 + 1


def _why_never(waiting: PendingCall, membership: raft.Membership) -> str | None:
    ask = waiting.ask
    if isinstance(ask, RemoveNode) and membership.voters == (ask.node_id,):
        return f"{ask.node_id} is the last voter of its group; add another node first"
    if isinstance(ask, MoveLeader) and ask.node_id not in membership.voters:
        return f"{ask.node_id} is no voter of this group; the voters are {', '.join(sorted(membership.voters))}"
    return None


def preferred_leader(membership: raft.Membership, shard: int) -> str | None:
    """Shards prefer the voters in turn, so that leaders spread over the nodes."""
    voters = sorted(membership.voters)
    return voters[shard % len(voters)] if voters else None


def members_of(membership: raft.Membership) -> GroupMembers:
    return GroupMembers(
        membership.config_id, list(membership.voters), list(membership.outgoing), list(membership.learners)
    )
