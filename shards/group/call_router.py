"""Where a call is served: here, or by the leader; and how the answer finds its way back.

A gateway speaks to the shards of its own node only. A replica that does not lead passes calls on to the leader
(`forwarding.py` remembers them) and serves those that leaders and followers can both answer.
"""

from collections.abc import Callable

from corvo.model.errors import Refused
from corvo.queries.access.follow_access import FollowAccess
from corvo.queries.cluster import GetIndex, GetStatus
from corvo.queries.events import GetEvents
from corvo.queries.feed import Pull, Scan
from corvo.wire import Call, tag_of
from shards import raft
from shards.group.config import GroupConfig
from shards.group.forwarding import CallKey, Forwarding, foreign_peer, parse_foreign
from shards.group.messages import ForwardedCalls, ForwardedReplies, RepliesMayBeLost
from shards.intake.admission import Admission
from shards.intake.callers import Replies
from shards.intake.refusals import FULL, LOST, NO_LEADER
from shards.intake.waiters import PendingCall

SWEEP_EVERY_NS = 1_000_000_000
_ANSWERED_HERE = frozenset(
    ask.__struct_config__.tag for ask in (GetStatus, GetIndex, GetEvents, FollowAccess, Pull, Scan)
)


class CallRouter:
    def __init__(
        self, group_config: GroupConfig, core: raft.Raft, admission: Admission, is_there: Callable[[bytes], bool]
    ) -> None:
        self._links = group_config.links
        self._has_links = bool(group_config.address)
        self._core = core
        self._admission = admission
        self._is_there = is_there
        self._forwarding = Forwarding(self._links.send)
        self._sweep_at_ns = 0
        self._uncertain: set[str] = set()  # nodes that must be told that answers for them may be lost

    # Calls in

    def admit(self, peer: bytes, call: Call, now_ns: int) -> None:
        """Of a gateway, mirror or courier of this node."""
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
            self._forward(core.leader_id, peer, call, now_ns)

    def admit_forwarded(self, node: str, body: ForwardedCalls, now_ns: int) -> None:
        """Passed on by another replica."""
        peer = foreign_peer(node, body.peer)
        for call in body.calls:
            if self._core.is_leader or not call.ask or tag_of(call.ask) in _ANSWERED_HERE:
                self._admission.admit(peer, call, now_ns)
            else:
                self._admission.answer(peer, call.id, NO_LEADER)

    def forward_to(self, node: str, waiting: PendingCall, now_ns: int) -> bool:
        """A query for the replica of one node. False: it is for this replica, or was passed on once already."""
        if node in ("", self._core.id) or parse_foreign(waiting.peer) is not None:
            return False
        left_ms = max(waiting.deadline_ns - now_ns, 0) // 1_000_000
        self._forward(node, waiting.peer, Call(waiting.call_id, left_ms, waiting.raw), now_ns)
        return True

    def _forward(self, node: str, peer: bytes, call: Call, now_ns: int) -> None:
        if self._forwarding.is_full:
            self._admission.answer(peer, call.id, FULL)
        else:
            self._forwarding.forward(node, peer, call, now_ns)

    # Replies out

    def take_back(self, body: ForwardedReplies) -> None:
        for reply in self._forwarding.take_back(body):
            self._admission.reply(body.peer, reply)

    def send_replies(self, replies: Replies) -> Replies:
        """Send those for other nodes; return the rest."""
        if not self._has_links:
            return replies
        ours = []
        for peer, some in replies:
            foreign = parse_foreign(peer)
            if foreign is None:
                ours.append((peer, some))
            elif not self._links.send(foreign[0], ForwardedReplies(foreign[1], some)):
                self._uncertain.add(foreign[0])
        return ours

    def flush(self) -> None:
        """Send the calls that were passed on; refuse those that could not be sent."""
        if self._forwarding.has_waiting:
            self._refuse(self._forwarding.flush(), NO_LEADER)

    # What is lost

    def lose_link(self, node: str) -> None:
        """What went over the link may be lost, in either direction. The node may even have died: no job must be claimed
        for a caller that waited there."""
        self.lose_replies(node)
        self._admission.waiters.forget_peers(foreign_peer(node, b""))
        self._uncertain.add(node)

    def lose_replies(self, node: str) -> None:
        """The node says, or its broken link does, that answers of it may be lost."""
        self._refuse(self._forwarding.forget(node), LOST)

    def lose_leader(self) -> None:
        self._refuse(self._forwarding.forget(), LOST)

    def _refuse(self, calls: list[CallKey], refused: Refused) -> None:
        for peer, call_id in calls:
            self._admission.answer(peer, call_id, refused)

    # Time

    def turn(self, now_ns: int) -> None:
        if now_ns >= self._sweep_at_ns:
            self._sweep_at_ns = now_ns + SWEEP_EVERY_NS
            self._forwarding.sweep(now_ns, self._is_there)
        for peer in self._admission.take_gone():
            foreign = parse_foreign(peer)
            if foreign is not None:
                self._uncertain.add(foreign[0])
        if self._uncertain:
            self._uncertain = {node for node in self._uncertain if not self._links.send(node, RepliesMayBeLost())}
        self.flush()

    def next_ns(self) -> int | None:
        return self._sweep_at_ns if self._has_links else None
