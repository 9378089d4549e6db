"""Messages between the replicas of a group: in, to the part that they are for; out, as Raft asks.

While the disk is slow, a replica changes nothing. It only reads messages, lets time pass and sends what need not wait
for a disk: heartbeats and the answers to them. All else that Raft wants done meanwhile is put off, and done in one
write when the disk is back.
"""

from collections import deque

import msgspec

from shards import raft
from shards.group.call_router import CallRouter
from shards.group.config import Links
from shards.group.members import MemberUpkeep
from shards.group.messages import (
    Announcement,
    ForwardedCalls,
    ForwardedReplies,
    PeerMessage,
    RaftMessage,
    RepliesMayBeLost,
)
from shards.group.state_streams import StateStreams
from shards.snapshots.messages import SnapshotMessage

HEARD_MAX = 1_024  # messages of other kinds that are kept meanwhile; more wait in the sockets
_ELECTION = (raft.Vote, raft.PreVote)


class RaftDriver:
    def __init__(
        self, core: raft.Raft, links: Links, router: CallRouter, members: MemberUpkeep, streams: StateStreams
    ) -> None:
        self._core = core
        self._links = links
        self._router = router
        self._members = members
        self._streams = streams
        self._heard: deque[PeerMessage] = deque()
        self._put_off: list[raft.Ready] = []

    # In

    def turn(self, now_ns: int) -> None:
        while self._heard:
            self._receive(self._heard.popleft(), now_ns)
        messages = self._links.receive()
        for node in self._links.lost():
            self._lose_link(node)
        for message in messages:
            self._receive(message, now_ns)

    def next_ns(self) -> int | None:
        return 0 if self._heard or self._put_off else None

    def _receive(self, message: PeerMessage, now_ns: int) -> None:
        node, body = message
        if isinstance(body, RaftMessage):
            is_muted = self._members.has_forgotten and isinstance(body.message, _ELECTION)
            if not is_muted and not isinstance(body.message, raft.InstallSnapshot):  # that comes with its state
                self._core.step(body.message, now_ns)
        elif isinstance(body, ForwardedCalls):
            self._router.admit_forwarded(node, body, now_ns)
        elif isinstance(body, ForwardedReplies):
            self._router.take_back(body)
        elif isinstance(body, RepliesMayBeLost):
            self._router.lose_replies(node)
        elif isinstance(body, Announcement):
            self._members.announced(node, body)
        elif isinstance(body, SnapshotMessage):
            self._streams.receive(node, body, now_ns)

    def _lose_link(self, node: str) -> None:
        self._core.report_unreachable(node)
        if node == self._core.leader_id:
            self._core.give_up_reads()
        self._router.lose_link(node)

    # Out

    def take(self) -> list[raft.Ready]:
        """What was put off comes first, and alone. Empty when Raft wants nothing."""
        if self._put_off:
            readies, self._put_off = self._put_off, []
            return readies
        ready = self._core.ready()
        return [] if ready is None else [ready]

    def send_now(self, ready: raft.Ready, now_ns: int) -> list[raft.InstallSnapshot]:
        """Send what need not wait. Returned: snapshots, which are read from the disk and therefore wait for it."""
        states = []
        for message in ready.send_now:
            if isinstance(message, raft.InstallSnapshot):
                states.append(message)
            else:
                self.send(message, now_ns)
        return states

    def send(self, message: raft.AnyMessage, now_ns: int) -> None:
        if isinstance(message, raft.InstallSnapshot):
            self._streams.send(message, now_ns)
        elif not (self._members.has_forgotten and isinstance(message, _ELECTION)) and not self._links.send(
            message.receiver, RaftMessage(message)
        ):
            self._core.report_unreachable(message.receiver)
            if isinstance(message, raft.ReadRequest):
                self._core.give_up_reads()

    # While the disk is slow

    def keep_up(self, now_ns: int) -> None:
        """Called now and then during a long write or a long turn."""
        if len(self._heard) < HEARD_MAX:
            for message in self._links.receive():
                if isinstance(message.body, RaftMessage):
                    self._receive(message, now_ns)
                else:
                    self._heard.append(message)
        self._core.tick(now_ns)
        while (ready := self._core.ready()) is not None:
            states: list[raft.AnyMessage] = [*self.send_now(ready, now_ns)]
            self._put_off.append(msgspec.structs.replace(ready, send_now=states))
