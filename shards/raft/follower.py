"""How a follower answers each message (paper sections 5.2 and 5.3, thesis 3.10 and 6.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shards.raft.messages import (
    AnyMessage,
    Append,
    AppendReply,
    HeartbeatReply,
    InstallSnapshot,
    LeaderHeartbeat,
    ReadReply,
    ReadRequest,
    TimeoutNow,
)
from shards.raft.quorum import UNBOUNDED
from shards.raft.ready import Role, SnapshotMarker
from shards.raft.refusals import NotLeader

if TYPE_CHECKING:
    from shards.raft.core import Raft


class Follower:
    role = Role.FOLLOWER

    def __init__(self, raft: Raft) -> None:
        self.raft = raft
        # Up to here our log is known to equal that of this term's leader. Beyond it may lie a tail of another
        # term, so no commit index that we are told may reach further.
        self.verified = raft.log.commit
        self._reads: dict[int, object] = {}  # forwarded and not answered, by number
        self._campaigns_when_applied = False

    # --- messages

    def step(self, message: AnyMessage) -> None:
        if message.from_leader:
            self.raft.hear_leader(message.sender)
        if isinstance(message, Append):
            self._append(message)
        elif isinstance(message, LeaderHeartbeat):
            self._heartbeat(message)
        elif isinstance(message, InstallSnapshot):
            self._install(message)
        elif isinstance(message, TimeoutNow):
            self._take_over(message)
        elif isinstance(message, ReadReply):
            self._read_reply(message)
        elif isinstance(message, ReadRequest):
            self.raft.refuse_read_request(message)

    def _append(self, message: Append) -> None:
        log = self.raft.log
        self.raft.heard_commit = max(self.raft.heard_commit, message.commit)
        if message.prev_index < log.commit:
            # A late one: what is committed equals the leader's log, so there is nothing to compare.
            self._reply(message.sender, log.commit)
            return
        if not log.matches(message.prev_index, message.prev_term):
            self._reject(message)
            return
        cut = log.accept(message.entries)
        if cut is not None:
            self.raft.outbox.cut(cut)
        index = message.prev_index + len(message.entries)
        self.verified = max(self.verified, index)
        log.commit_up_to(min(message.commit, index))
        self._reply(message.sender, index)

    def _reply(self, leader: str, index: int) -> None:
        raft = self.raft
        reply = AppendReply(*raft.header(leader), index=index, point=raft.points.latest)
        raft.outbox.send_after.append(reply)

    def _reject(self, message: Append) -> None:
        """Say where agreement is possible: not above the leader's term at the place where it looked."""
        log = self.raft.log
        hint_index, hint_term = log.find_not_above(message.prev_index, message.prev_term)
        if hint_index < log.commit:
            hint_index, hint_term = log.commit, log.term(log.commit) or 0
        self.raft.outbox.send_after.append(
            AppendReply(
                *self.raft.header(message.sender),
                index=message.prev_index,
                rejected=True,
                hint_index=hint_index,
                hint_term=hint_term,
                point=self.raft.points.latest,
            )
        )

    def _heartbeat(self, message: LeaderHeartbeat) -> None:
        raft = self.raft
        raft.log.commit_up_to(min(message.commit, self.verified))
        raft.compare_states(message.sender, message.point)
        # Not after the disk: it promises nothing that a crash could undo (a restarted replica does not vote for a
        # while), and a slow disk must not look like a dead replica.
        reply = HeartbeatReply(*raft.header(message.sender), round=message.round, point=raft.points.latest)
        raft.outbox.send_now.append(reply)

    def _install(self, message: InstallSnapshot) -> None:
        raft, log = self.raft, self.raft.log
        if message.index <= log.commit:
            self._reply(message.sender, log.commit)
            return
        if log.matches(message.index, message.index_term):
            # Our log covers it (paper figure 13, step 6): only commitment is news.
            log.commit_up_to(message.index)
            self.verified = max(self.verified, message.index)
            self._reply(message.sender, message.index)
            return
        log.restore(message.index, message.index_term)
        raft.outbox.cut(0)
        raft.outbox.snapshot = SnapshotMarker(message.index, message.index_term, message.membership)
        raft.restore_membership(message.membership)
        self.verified = message.index
        self._reply(message.sender, message.index)

    def _take_over(self, message: TimeoutNow) -> None:
        raft = self.raft
        if message.sender != raft.leader_id:
            return
        if raft.may_campaign():
            raft.start_election(is_transfer=True)
        else:
            self._campaigns_when_applied = raft.log.has_committed_unapplied_membership()

    # --- reads

    def read_index(self, context: object) -> None:
        """Forward to the leader, which answers with its commit index once a quorum has confirmed it."""
        raft = self.raft
        if raft.leader_id is None:
            raise NotLeader(None)
        # Fresh for every try, also of the same context: an answer to an earlier try proves less (etcd 20418).
        raft.read_number += 1
        self._reads[raft.read_number] = context
        raft.outbox.send_now.append(ReadRequest(*raft.header(raft.leader_id), number=raft.read_number))

    def _read_reply(self, message: ReadReply) -> None:
        if message.number not in self._reads:
            return
        context = self._reads.pop(message.number)
        if message.refused:
            self.raft.outbox.reads_refused.append(context)
        else:
            self.raft.release_read(context, message.index)

    def refuse_reads(self) -> None:
        self.raft.outbox.reads_refused.extend(self._reads.values())
        self._reads.clear()

    # --- time and disk

    def tick(self) -> None:
        raft = self.raft
        if raft.membership.is_alone(raft.id):
            # No lease and no other voter to wait for: a group of one starts without a pause.
            if raft.may_campaign():
                raft.start_election()
        elif raft.now_ns >= raft.election_deadline_ns:
            raft.start_election()

    def deadline_ns(self) -> int | None:
        raft = self.raft
        if not raft.may_campaign():
            return None if raft.leader_id is None else raft.election_deadline_ns
        return raft.now_ns if raft.membership.is_alone(raft.id) else raft.election_deadline_ns

    def flush(self) -> None:
        pass

    def persisted(self, self_vote_term: int) -> None:
        pass

    def applied(self) -> None:
        if self._campaigns_when_applied and self.raft.may_campaign():
            self._campaigns_when_applied = False
            self.raft.start_election(is_transfer=True)

    def membership_changed(self) -> None:
        pass

    def needed_after(self) -> int:
        return UNBOUNDED
