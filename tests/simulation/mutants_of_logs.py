"""Deliberate bugs of commitment, votes and the log."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import msgspec

from shards.raft import HardState
from shards.raft import quorum as quorum_module
from shards.raft import voting as voting_module
from shards.raft.candidate import Campaign, Candidate
from shards.raft.core import Raft
from shards.raft.follower import Follower
from shards.raft.incarnations import Incarnations, Verdict
from shards.raft.leader import Leader
from shards.raft.log import Log
from shards.raft.messages import AppendReply, LeaderHeartbeat, Vote, VoteReply
from shards.raft.progress import Progress
from shards.raft.quorum import VoteCount
from shards.raft.ready import ReadyBuilder, SnapshotMarker
from shards.raft.replication import Replication
from tests.simulation.disk import Disk
from tests.simulation.mutation import replaced, sends_now

# --- commitment and votes


def trap_01_commits_old_terms() -> AbstractContextManager[None]:
    def maybe_commit(self: Leader) -> None:
        index = self.replication.agreed_match()
        if index > self.raft.log.commit:
            self.raft.log.commit_up_to(index)
            if not self._has_committed:
                self._has_committed = True
                self.reads.term_committed()

    return replaced(Leader, _maybe_commit=maybe_commit)


def trap_02_votes_before_the_disk() -> AbstractContextManager[None]:
    return sends_now(voting_module, "consider", VoteReply)


def trap_03_forgets_its_term() -> AbstractContextManager[None]:
    original = Disk.restored

    def restored(self: Disk) -> Any:
        found = original(self)
        return msgspec.structs.replace(found, hard_state=HardState(found.last_term, "", found.hard_state.commit))

    return replaced(Disk, restored=restored)


def trap_03_forgets_its_vote() -> AbstractContextManager[None]:
    original = Disk.restored

    def restored(self: Disk) -> Any:
        found = original(self)
        return msgspec.structs.replace(found, hard_state=msgspec.structs.replace(found.hard_state, vote=""))

    return replaced(Disk, restored=restored)


def trap_04_acknowledges_before_the_disk() -> AbstractContextManager[None]:
    return sends_now(Follower, "_append", AppendReply)


def trap_05_asks_for_votes_before_the_disk() -> AbstractContextManager[None]:
    return sends_now(Candidate, "begin", Vote)


def trap_06_listens_to_former_lives() -> AbstractContextManager[None]:
    def judge(self: Incarnations, message: Any) -> Verdict:
        self._known[message.sender] = message.sender_incarnation
        return Verdict.ADMIT

    return replaced(Incarnations, judge=judge)


def trap_13_counts_votes_without_names() -> AbstractContextManager[None]:
    original = Campaign.record

    def record(self: Any, voter: str, granted: bool) -> None:
        if granted and self.votes.get(voter):
            others = [name for name in self.raft.membership.voters if name not in self.votes]
            voter = others[0] if others else voter
        original(self, voter, granted)

    return replaced(Campaign, record=record)


def trap_15_leader_votes_for_another() -> AbstractContextManager[None]:
    return replaced(voting_module, _may_vote_for=lambda raft, candidate: True)


def trap_16_half_is_a_majority() -> AbstractContextManager[None]:
    def tally(voters: Any, votes: Any) -> VoteCount:
        needed = max(len(voters) // 2, 1)
        granted = sum(1 for voter in voters if votes.get(voter) is True)
        return VoteCount.WON if not voters or granted >= needed else VoteCount.PENDING

    return replaced(quorum_module, tally=tally)


def trap_16_votes_for_shorter_logs() -> AbstractContextManager[None]:
    return replaced(Log, is_behind_or_equal=lambda self, last_index, last_term: True)


def trap_16_compares_length_before_term() -> AbstractContextManager[None]:
    def is_behind_or_equal(self: Log, last_index: int, last_term: int) -> bool:
        return last_index >= self.last_index

    return replaced(Log, is_behind_or_equal=is_behind_or_equal)


def trap_17_disturbs_a_living_leader() -> AbstractContextManager[None]:
    def is_bound(raft: Raft, is_transfer: bool) -> bool:
        return raft.has_just_started()

    return replaced(voting_module, _is_bound=is_bound)


def trap_19_leaves_lower_terms_unanswered() -> AbstractContextManager[None]:
    return replaced(voting_module, answer_lower_term=lambda raft, message: None)


# --- the log


def trap_07_truncates_what_matches() -> AbstractContextManager[None]:
    def accept(self: Log, entries: list[Any]) -> int | None:
        cut = None
        if entries and entries[0].index <= self.last_index:
            cut = entries[0].index - 1
            self._cut(cut)
        for entry in entries:
            self.append(entry)
        return cut

    return replaced(Log, accept=accept)


def trap_08_commits_an_unverified_tail() -> AbstractContextManager[None]:
    original = Follower._append

    def append(self: Follower, message: Any) -> None:
        original(self, message)
        self.raft.log.commit_up_to(min(message.commit, self.raft.log.last_index))

    return replaced(Follower, _append=append)


def trap_09_heartbeats_commit_beyond_the_match() -> AbstractContextManager[None]:
    def send_heartbeats(self: Replication, round_number: int) -> None:
        raft = self.raft
        self.own.round = round_number
        for peer in self.peers:
            header = raft.header(peer.replica)
            message = LeaderHeartbeat(*header, commit=raft.log.commit, round=round_number, point=raft.points.latest)
            raft.outbox.send_now.append(message)

    return replaced(Replication, send_heartbeats=send_heartbeats)


def trap_10_commit_index_goes_back() -> AbstractContextManager[None]:
    def commit_up_to(self: Log, index: int) -> None:
        self.commit = max(min(index, self.last_index), self.applying)

    return replaced(Log, commit_up_to=commit_up_to)


def trap_11_match_goes_back() -> AbstractContextManager[None]:
    def accepted(self: Progress, index: int) -> bool:
        is_news = index > self.match
        self.match, self.next = index, max(self.next, index + 1)
        return is_news

    return replaced(Progress, accepted=accepted)


def trap_37_accepts_an_old_snapshot() -> AbstractContextManager[None]:
    def install(self: Follower, message: Any) -> None:
        raft, log = self.raft, self.raft.log
        log.commit = log.applied = log.applying = min(log.commit, message.index - 1)
        log.restore(message.index, message.index_term)
        raft.outbox.cut(0)
        raft.outbox.snapshot = SnapshotMarker(message.index, message.index_term, message.membership)
        raft.restore_membership(message.membership)
        self.verified = message.index
        self._reply(message.sender, message.index)

    return replaced(Follower, _install=install)


def trap_42_old_writes_mark_new_entries_stable() -> AbstractContextManager[None]:
    return replaced(ReadyBuilder, cut=lambda self, after: None)
