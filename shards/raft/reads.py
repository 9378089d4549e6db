"""Linearizable reads without log entries (thesis 6.4), and lease reads (6.4.1).

The leader numbers its heartbeat broadcasts. A read remembers the commit index of the moment it came, and waits for a
broadcast that began *after* it; followers return the number they answer, and the quorum function over these
numbers, the same that finds the commit index, tells which reads are confirmed. An answer to an earlier broadcast can
therefore never confirm a later read, whatever was delayed or repeated.

A lease is what a confirmed broadcast gives for nothing: each follower of the quorum keeps its vote for an election
timeout from when it heard the broadcast, which is after the broadcast was *sent*; so from the sending time, less the
drift of clocks, no other leader can exist.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import msgspec

from shards.raft.messages import ReadReply, ReadRequest
from shards.raft.ready import LeaseRead

if TYPE_CHECKING:
    from shards.raft.core import Raft
    from shards.raft.replication import Replication


class RemoteRead(msgspec.Struct, frozen=True):
    """A read that a follower forwarded."""

    peer: str
    incarnation: int  # of the asker: its next incarnation numbers from the start again, and must not get this answer
    number: int


class Reads:
    def __init__(self, raft: Raft, replication: Replication) -> None:
        self.raft = raft
        self._replication = replication
        self.round = 0  # number of the latest broadcast
        self._sent: deque[tuple[int, int]] = deque()  # (round, sent at) of rounds not confirmed
        self._lease_start_ns = 0
        self._early: list[object] = []  # came before an entry of this term was committed
        self._fresh: list[tuple[object, int]] = []  # (read, index) waiting for a broadcast to begin
        self._waiting: deque[tuple[int, object, int]] = deque()  # (round, read, index)

    def add(self, read: object, may_answer: bool) -> None:
        """Take a read. Until our term has committed, our commit index may be older than what was answered."""
        raft = self.raft
        if not may_answer:
            self._early.append(read)
        elif raft.membership.is_alone(raft.id):
            self._answer(read, raft.log.commit)
        else:
            self._fresh.append((read, raft.log.commit))

    def add_lease(self, context: object, until_ns: int) -> bool:
        """Answer by lease, if there is one and the machine is not behind."""
        log = self.raft.log
        if self.raft.now_ns >= until_ns or log.applied < log.commit:
            return False
        self.raft.outbox.lease_reads.append(LeaseRead(context, log.commit, until_ns))
        return True

    def request(self, message: ReadRequest, may_answer: bool) -> None:
        self.add(RemoteRead(message.sender, message.sender_incarnation, message.number), may_answer)

    def term_committed(self) -> None:
        """An entry of our term is committed: the early reads can begin."""
        early, self._early = self._early, []
        for read in early:
            self.add(read, True)

    def needs_broadcast(self) -> bool:
        return bool(self._fresh)

    def begin_round(self) -> None:
        """Broadcast once for all reads of this turn."""
        self.round += 1
        self._sent.append((self.round, self.raft.now_ns))
        for read, index in self._fresh:
            self._waiting.append((self.round, read, index))
        self._fresh.clear()
        self._replication.send_heartbeats(self.round)

    def confirm(self) -> None:
        """Answers came in: serve what a quorum has confirmed."""
        confirmed = self._replication.agreed_round()
        while self._sent and self._sent[0][0] <= confirmed:
            self._lease_start_ns = self._sent.popleft()[1]
        while self._waiting and self._waiting[0][0] <= confirmed:
            _, read, index = self._waiting.popleft()
            self._answer(read, index)

    def lease_until_ns(self) -> int:
        if not self._lease_start_ns:
            return 0
        return self._lease_start_ns + self.raft.options.election_ns - self.raft.options.lease_margin_ns

    def _answer(self, read: object, index: int) -> None:
        if isinstance(read, RemoteRead):
            self._reply(read, index, refused=False)
        else:
            self.raft.release_read(read, index)

    def _reply(self, read: RemoteRead, index: int, refused: bool) -> None:
        raft = self.raft
        if raft.incarnations.of(read.peer) == read.incarnation:
            reply = ReadReply(*raft.header(read.peer), number=read.number, index=index, refused=refused)
            raft.outbox.send_now.append(reply)

    def refuse_all(self) -> None:
        """Leadership is lost: these reads may not be fresh."""
        reads = self._early + [read for read, _ in self._fresh] + [read for _, read, _ in self._waiting]
        for read in reads:
            if isinstance(read, RemoteRead):
                self._reply(read, 0, refused=True)
            else:
                self.raft.outbox.reads_refused.append(read)
        self._early, self._fresh = [], []
        self._waiting.clear()
