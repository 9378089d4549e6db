"""How a leader leads: proposals, commitment, staying leader only with a quorum, and handing over.

Replication and reads have modules of their own; what is here ties them to the term.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shards.raft.membership import ChangeKind, ImpossibleChange, MembershipChange, enter, leave
from shards.raft.messages import (
    AnyMessage,
    AppendReply,
    EntryKind,
    HeartbeatReply,
    LogEntry,
    ReadRequest,
    TimeoutNow,
    encode_membership,
)
from shards.raft.progress import Mode, Progress
from shards.raft.reads import Reads
from shards.raft.ready import Role
from shards.raft.refusals import MembershipRefused, TooMuchUncommitted, TransferRefused, Transferring
from shards.raft.replication import Replication

if TYPE_CHECKING:
    from shards.raft.core import Raft


class Leader:
    role = Role.LEADER

    def __init__(self, raft: Raft) -> None:
        self.raft = raft
        self.replication = Replication(raft)
        self.reads = Reads(raft, self.replication)
        self.term_start = raft.log.last_index + 1  # index of the entry that begins our term
        self._has_committed = False  # an entry of our term
        self._uncommitted_bytes = 0  # proposed by us and not handed out to apply
        self._heartbeat_deadline_ns = raft.now_ns
        self._successor: str | None = None
        self._transfer_deadline_ns = 0
        self._has_sent_timeout_now = False

    def begin(self) -> None:
        """Open the term with an empty entry: only by committing it is what we inherited committed (5.4.2)."""
        self._append(EntryKind.NOOP, b"")

    # --- proposals

    def propose(self, payloads: list[bytes]) -> list[tuple[int, int]]:
        if self._successor is not None:
            raise Transferring(self._successor)
        size = sum(map(len, payloads))
        # One batch larger than the whole allowance must still be possible, else it could never be written.
        if self._uncommitted_bytes and self._uncommitted_bytes + size > self.raft.options.uncommitted_bytes_max:
            raise TooMuchUncommitted(self._uncommitted_bytes)
        self._uncommitted_bytes += size
        return [self._append(EntryKind.NORMAL, payload) for payload in payloads]

    def _append(self, kind: EntryKind, payload: bytes) -> tuple[int, int]:
        log, term = self.raft.log, self.raft.term
        index = log.last_index + 1
        log.append(LogEntry(index, term, kind, payload))
        return index, term

    def handed_out(self, entries: list[LogEntry]) -> None:
        """These are committed: they no longer weigh on the allowance."""
        for entry in entries:
            self._uncommitted_bytes -= len(entry.payload)
        if self._uncommitted_bytes < 0:
            self._uncommitted_bytes = 0  # entries of former leaders and of members were never added

    # --- commitment

    def persisted(self, self_vote_term: int) -> None:
        own = self.replication.own
        own.match = self.raft.log.stable
        own.next = self.raft.log.last_index + 1
        self._maybe_commit()

    def _maybe_commit(self) -> None:
        """Commit by counting, but only up to an entry of our own term (paper section 5.4.2, figure 8)."""
        index = self.replication.agreed_match()
        if index <= self.raft.log.commit or index < self.term_start:
            return
        self.raft.log.commit_up_to(index)
        if not self._has_committed:
            self._has_committed = True
            self.reads.term_committed()

    # --- messages

    def step(self, message: AnyMessage) -> None:
        assert not message.from_leader, "two leaders in one term"
        peer = self.replication.progress.get(message.sender)
        if peer is None:
            return
        peer.heard = True
        if isinstance(message, AppendReply):
            if message.point.index:
                self.raft.compare_states(message.sender, message.point)
            if self.replication.append_reply(peer, message):
                self._maybe_commit()
            if self._successor is not None:
                self._maybe_hand_over(peer)
        elif isinstance(message, HeartbeatReply):
            self.raft.compare_states(message.sender, message.point)
            self.replication.heartbeat_reply(peer, message.round)
            self.reads.confirm()
        elif isinstance(message, ReadRequest):
            self.reads.request(message, self._has_committed)

    def read_index(self, context: object) -> None:
        if self._has_committed and self.reads.add_lease(context, self.lease_until_ns()):
            return
        self.reads.add(context, self._has_committed)

    def lease_until_ns(self) -> int:
        """Voided for the whole term by a TimeoutNow: its receiver may campaign at any time (thesis 6.4.1)."""
        if not self.raft.options.lease_reads or self._has_sent_timeout_now or self._successor is not None:
            return 0
        return self.reads.lease_until_ns()

    def refuse_reads(self) -> None:
        self.reads.refuse_all()

    # --- time

    def tick(self) -> None:
        raft, now_ns = self.raft, self.raft.now_ns
        if not self.replication.peers:
            return
        self.replication.tick()
        if now_ns - self.replication.quorum_heard_at_ns() >= raft.options.quorum_silence_ns:
            # CheckQuorum: a leader that is cut off must not keep clients waiting (thesis 6.2).
            raft.become_follower(raft.term, None)
            return
        if self._successor is not None and now_ns >= self._transfer_deadline_ns:
            self._successor = None
        if self._successor is None and raft.outbox.stalled_ns(now_ns) >= raft.options.disk_stall_ns:
            self._flee_from_disk()
        if now_ns >= self._heartbeat_deadline_ns:
            self._broadcast()

    def deadline_ns(self) -> int | None:
        return self._heartbeat_deadline_ns if self.replication.peers else None

    def flush(self) -> None:
        if self.reads.needs_broadcast():
            self._broadcast()
            if not self.replication.peers:
                self.reads.confirm()  # the last other member has just left: our own word is enough
        if self.replication.peers:
            self.replication.flush()

    def _broadcast(self) -> None:
        self.reads.begin_round()
        self._heartbeat_deadline_ns = self.raft.now_ns + self.raft.options.heartbeat_ns

    def needed_after(self) -> int:
        return self.replication.slowest_live_match()

    # --- handing over (thesis 3.10)

    def transfer(self, target: str) -> None:
        peer = self.replication.progress.get(target)
        if target == self.raft.id:
            raise TransferRefused("we lead already")
        if peer is None or target not in self.raft.membership.voters:
            raise TransferRefused(f"{target} is no voter that stays")
        if peer.mode is Mode.SNAPSHOT or not self.replication.is_live(peer):
            raise TransferRefused(f"{target} cannot catch up in time")
        if self.raft.log.has_unapplied_membership() or self.raft.membership.is_joint:
            raise TransferRefused("a change of members is under way")
        if self._successor is not None and self._successor != target:
            raise Transferring(self._successor)
        self._successor = target
        self._transfer_deadline_ns = self.raft.now_ns + self.raft.options.election_ns
        self._maybe_hand_over(peer)

    def _maybe_hand_over(self, peer: Progress) -> None:
        """Order the successor to campaign as soon as it holds our whole log; proposals are stopped meanwhile."""
        if peer.replica != self._successor or peer.match < self.raft.log.last_index:
            return
        self._order_campaign(peer)

    def _order_campaign(self, peer: Progress) -> None:
        self._has_sent_timeout_now = True
        self.raft.outbox.send_now.append(TimeoutNow(*self.raft.header(peer.replica)))

    def _flee_from_disk(self) -> None:
        """Our disk is silent: we would heartbeat for ever and commit little. Another replica should lead."""
        peer = self.replication.best_successor()
        if peer is not None and not self.raft.log.has_unapplied_membership():
            self._successor = peer.replica
            self._transfer_deadline_ns = self.raft.now_ns + self.raft.options.election_ns
            self._maybe_hand_over(peer)

    # --- members

    def propose_membership(self, change: MembershipChange, expected_config_id: int) -> tuple[int, int]:
        raft, log = self.raft, self.raft.log
        if self._successor is not None:
            raise Transferring(self._successor)
        if expected_config_id != raft.membership.config_id:
            raise MembershipRefused(f"the membership is {raft.membership.config_id} by now")
        if log.has_unapplied_membership() or raft.membership.is_joint:
            raise MembershipRefused("another change is under way")
        if not self._has_committed:
            # Ongaro's erratum (raft-dev, 2015): else two leaders could change the same membership apart.
            raise MembershipRefused("no entry of this term is committed yet")
        try:
            following = enter(raft.membership, change, log.last_index + 1)
        except ImpossibleChange as impossible:
            raise MembershipRefused(str(impossible)) from None
        for step in change.steps:
            peer = self.replication.progress.get(step.replica)
            if step.kind is ChangeKind.PROMOTE and not (peer and self.replication.is_caught_up(peer)):
                raise MembershipRefused(f"{step.replica} has not caught up")
        return self._append(EntryKind.MEMBERSHIP, encode_membership(following))

    def membership_changed(self) -> None:
        """Our machine has applied a membership entry."""
        raft, replication = self.raft, self.replication
        replication.flush()  # a replica that leaves should learn that it is committed
        if raft.id not in raft.membership.voters and not raft.membership.is_joint:
            self._retire()
            return
        replication.follow(raft.membership)
        if self._successor is not None and self._successor not in raft.membership.voters:
            self._successor = None
        self._maybe_commit()  # a smaller quorum may have what a larger one had not
        self.reads.confirm()

    def _retire(self) -> None:
        """We are no voter any more: name a successor, then step down (thesis 4.2.2)."""
        peer = self.replication.best_successor()
        if peer is not None and peer.match == self.raft.log.last_index:
            self._order_campaign(peer)
        self.raft.become_follower(self.raft.term, None)

    def applied(self) -> None:
        """End the joint phase as soon as it is in force; also if a former leader began it."""
        raft = self.raft
        if raft.membership.is_joint and self._has_committed and not raft.log.has_unapplied_membership():
            following = leave(raft.membership, raft.log.last_index + 1)
            self._append(EntryKind.MEMBERSHIP, encode_membership(following))
