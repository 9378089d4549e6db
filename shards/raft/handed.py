"""Composing a Ready: what the host has been handed already, and what is new since."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shards.raft.leader import Leader
from shards.raft.log import Restored
from shards.raft.messages import HardState
from shards.raft.ready import Persist, Ready, RoleChange

if TYPE_CHECKING:
    from shards.raft.core import Raft


class Handed:
    def __init__(self, raft: Raft, restored: Restored) -> None:
        self._raft = raft
        self._hard_state = restored.hard_state
        self.membership = restored.membership
        self._role: RoleChange | None = None
        self._is_rolled_back = False

    def take(self) -> Ready | None:
        """Everything that is new, or None."""
        raft, outbox = self._raft, self._raft.outbox
        raft.stance.flush()
        send_now, send_after = outbox.send_now, outbox.send_after
        persist = self._take_persist()
        apply = raft.log.take_committed(raft.options.apply_bytes_max) if not outbox.is_installing else []
        role = self._take_role()
        is_rolled_back = raft.is_rolled_back and not self._is_rolled_back
        if not (send_now or persist or apply or role or is_rolled_back or outbox.has_answers()):
            return None
        if apply and isinstance(raft.stance, Leader):
            raft.stance.handed_out(apply)
        self._is_rolled_back = raft.is_rolled_back
        raft.log.check()
        ready = Ready(
            send_now,
            persist,
            send_after,
            apply,
            outbox.reads,
            outbox.lease_reads,
            outbox.reads_refused,
            role,
            outbox.diverged,
            is_rolled_back,
        )
        outbox.clear()
        return ready

    def _take_persist(self) -> Persist | None:
        """One write for all that changed. A new commit index alone is worth none: it rides with the next."""
        raft, log, outbox = self._raft, self._raft.log, self._raft.outbox
        handed = self._hard_state
        has_entries = log.handed < log.last_index
        has_voted = raft.term != handed.term or raft.vote != handed.vote
        has_members = raft.membership is not self.membership
        must_sync = has_entries or has_voted or has_members or log.cut_after is not None or outbox.snapshot is not None
        if not must_sync and not outbox.send_after:
            return None
        hard_state = membership = None
        if must_sync and (has_voted or log.commit != handed.commit):
            hard_state = self._hard_state = HardState(raft.term, raft.vote, log.commit)
        if has_members:
            membership = self.membership = raft.membership
        snapshot, cut_after, log.cut_after = outbox.snapshot, log.cut_after, None
        entries = log.take_unhanded() if has_entries else []
        token = outbox.open_persist(log.handed, raft.now_ns)
        return Persist(token, snapshot, cut_after, entries, hard_state, membership, must_sync)

    def _take_role(self) -> RoleChange | None:
        raft, told = self._raft, self._role
        if (
            told is not None
            and told.role is raft.stance.role
            and told.term == raft.term
            and told.leader_id == raft.leader_id
            and told.config_id == raft.membership.config_id
        ):
            return None
        self._role = RoleChange(raft.role, raft.term, raft.leader_id, raft.membership.config_id)
        return self._role
