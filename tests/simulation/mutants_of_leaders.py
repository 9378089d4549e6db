"""Deliberate bugs of reads, leases, members, transfers and flow."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from shards.raft import quorum as quorum_module
from shards.raft import voting as voting_module
from shards.raft.core import Raft
from shards.raft.leader import Leader
from shards.raft.log import Log
from shards.raft.messages import TimeoutNow
from shards.raft.progress import Mode, Progress
from shards.raft.reads import Reads
from shards.raft.replication import Replication
from tests.simulation.admission import Admission
from tests.simulation.mutation import replaced

# --- reads and leases


def trap_21_reads_before_its_own_commit() -> AbstractContextManager[None]:
    original = Reads.add
    return replaced(Reads, add=lambda self, read, may_answer: original(self, read, True))


def trap_22_an_earlier_round_confirms_a_read() -> AbstractContextManager[None]:
    original = Replication.heartbeat_reply
    return replaced(Replication, heartbeat_reply=lambda self, peer, round_number: original(self, peer, self.own.round))


def trap_22_reads_without_a_quorum() -> AbstractContextManager[None]:
    def add(self: Reads, read: object, may_answer: bool) -> None:
        if may_answer:
            self._answer(read, self.raft.log.commit)
        else:
            self._early.append(read)

    return replaced(Reads, add=add)


def trap_23_reads_before_it_has_applied() -> AbstractContextManager[None]:
    return replaced(Raft, release_read=lambda self, context, index: self.outbox.reads.append((context, index)))


def trap_24_lease_counted_from_the_answer() -> AbstractContextManager[None]:
    original = Reads.confirm

    def confirm(self: Reads) -> None:
        before = self._lease_start_ns
        original(self)
        if self._lease_start_ns != before:
            self._lease_start_ns = self.raft.now_ns

    return replaced(Reads, confirm=confirm)


def trap_24_lease_checked_before_the_read() -> AbstractContextManager[None]:
    """Harmless for a read that came before the core looked at the clock: it may stand at that moment. A stop of the
    process between the core's tick and the taking of requests lets reads come after it."""
    return replaced(Admission, is_lease_over=lambda self, lease: False)


def trap_25_lease_survives_a_transfer() -> AbstractContextManager[None]:
    def lease_until_ns(self: Leader) -> int:
        return self.reads.lease_until_ns() if self.raft.options.lease_reads else 0

    return replaced(Leader, lease_until_ns=lease_until_ns)


def trap_26_votes_right_after_a_restart() -> AbstractContextManager[None]:
    original = Raft.__init__

    def init(self: Raft, *args: Any, **named: Any) -> None:
        original(self, *args, **named)
        self._started_until_ns = self.promise_until_ns = 0

    return replaced(Raft, __init__=init)


# --- members and transfer


def trap_27_changes_members_before_its_own_commit() -> AbstractContextManager[None]:
    original = Leader.propose_membership

    def propose(self: Leader, *args: Any) -> Any:
        before, self._has_committed = self._has_committed, True
        try:
            return original(self, *args)
        finally:
            self._has_committed = before

    return replaced(Leader, propose_membership=propose)


def trap_28_campaigns_over_unapplied_members() -> AbstractContextManager[None]:
    return replaced(Log, has_committed_unapplied_membership=lambda self: False)


def trap_29_two_changes_at_once() -> AbstractContextManager[None]:
    return replaced(Log, has_unapplied_membership=lambda self: False)


def trap_29_joint_phase_counts_one_majority() -> AbstractContextManager[None]:
    def agreed_match(self: Replication) -> int:
        return quorum_module.agreed([peer.match for peer in self._voters])

    return replaced(Replication, agreed_match=agreed_match)


def trap_31_a_removed_leader_leads_on() -> AbstractContextManager[None]:
    return replaced(Leader, _retire=lambda self: None)


def trap_32_promotes_a_newcomer_without_a_log() -> AbstractContextManager[None]:
    return replaced(Replication, is_caught_up=lambda self, peer: True)


def trap_34_hands_over_to_one_that_is_behind() -> AbstractContextManager[None]:
    def hand_over(self: Leader, peer: Progress) -> None:
        if peer.replica == self._successor:
            self._order_campaign(peer)

    return replaced(Leader, _maybe_hand_over=hand_over)


def trap_35_obeys_an_old_order_to_campaign() -> AbstractContextManager[None]:
    original = voting_module.answer_lower_term

    def answer(raft: Raft, message: Any) -> None:
        if isinstance(message, TimeoutNow):
            raft.start_election(is_transfer=True)
        else:
            original(raft, message)

    return replaced(voting_module, answer_lower_term=answer)


# --- progress: what only a group that never settles shows


def trap_39_waits_for_a_snapshot_for_ever() -> AbstractContextManager[None]:
    def tick(self: Replication) -> None:
        for peer in self.peers:
            peer.tick(self.raft.now_ns)

    return replaced(Replication, tick=tick)


def trap_40_a_compacted_probe_stalls() -> AbstractContextManager[None]:
    return replaced(Replication, _send_snapshot=lambda self, peer: setattr(peer, "paused", True))


def trap_41_a_full_window_never_drains() -> AbstractContextManager[None]:
    def heartbeat_reply(self: Replication, peer: Progress, round_number: int) -> None:
        peer.round = max(peer.round, min(round_number, self.own.round))
        if peer.mode is not Mode.REPLICATE:
            peer.paused = False
            peer.nudged = peer.match < self.raft.log.last_index

    return replaced(Replication, heartbeat_reply=heartbeat_reply)
