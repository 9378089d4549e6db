"""How a replica canvasses: first whether it could win (thesis 9.6), then for real (paper section 5.2).

A pre-candidate has changed neither its term nor its vote; it only asks. A candidate has, and its own vote
counts, like everybody's, when it is on disk. Requests leave after the disk too: they state the end of our log, and a
log that a crash could shorten would collect votes that it does not deserve.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shards.raft.messages import AnyMessage, PreVote, PreVoteReply, ReadRequest, Vote, VoteReply
from shards.raft.quorum import UNBOUNDED, VoteCount, tally_jointly
from shards.raft.ready import Role

if TYPE_CHECKING:
    from shards.raft.core import Raft


class Campaign:
    """What both kinds of candidate share: counting, giving way to a leader, trying again."""

    role: Role

    def __init__(self, raft: Raft) -> None:
        self.raft = raft
        self.votes: dict[str, bool] = {}

    def record(self, voter: str, granted: bool) -> None:
        """Count an answer; the first of each voter stands, so that a duplicate adds nothing."""
        self.votes.setdefault(voter, granted)
        membership = self.raft.membership
        result = tally_jointly(membership.voters, membership.outgoing, self.votes)
        if result is VoteCount.WON:
            self.won()
        elif result is VoteCount.LOST:
            self.raft.become_follower(self.raft.term, None)

    def won(self) -> None:
        raise NotImplementedError

    def electors(self) -> list[str]:
        membership = self.raft.membership
        return [peer for peer in membership.members() if membership.is_voter(peer) and peer != self.raft.id]

    def step(self, message: AnyMessage) -> None:
        if message.from_leader:
            # Another replica won this term (paper section 5.2), or the old leader of it is alive after all.
            self.raft.become_follower(self.raft.term, message.sender)
            self.raft.stance.step(message)
        elif isinstance(message, ReadRequest):
            self.raft.refuse_read_request(message)

    def tick(self) -> None:
        if self.raft.now_ns >= self.raft.election_deadline_ns and not self._waits_for_disk_only():
            self.raft.start_election()

    def deadline_ns(self) -> int | None:
        return None if self._waits_for_disk_only() else self.raft.election_deadline_ns

    def _waits_for_disk_only(self) -> bool:
        return self.raft.membership.is_alone(self.raft.id)

    def persisted(self, self_vote_term: int) -> None:
        pass

    def flush(self) -> None:
        pass

    def applied(self) -> None:
        pass

    def membership_changed(self) -> None:
        # Unreachable while no replica campaigns over an unapplied membership entry, and a candidate commits nothing.
        self.raft.become_follower(self.raft.term, None)

    def refuse_reads(self) -> None:
        pass

    def needed_after(self) -> int:
        return UNBOUNDED


class PreCandidate(Campaign):
    role = Role.PRE_CANDIDATE

    def begin(self) -> None:
        raft, log = self.raft, self.raft.log
        for peer in self.electors():
            header = raft.header(peer, raft.term + 1)
            request = PreVote(*header, last_index=log.last_index, last_term=log.last_term)
            raft.outbox.send_after.append(request)
        self.record(raft.id, True)

    def won(self) -> None:
        self.raft.become_candidate(is_transfer=False)

    def step(self, message: AnyMessage) -> None:
        if isinstance(message, PreVoteReply):
            if not message.granted or message.term == self.raft.term + 1:
                self.record(message.sender, message.granted)
        else:
            Campaign.step(self, message)


class Candidate(Campaign):
    role = Role.CANDIDATE

    def begin(self, is_transfer: bool) -> None:
        raft, log = self.raft, self.raft.log
        raft.outbox.self_vote_term = raft.term
        for peer in self.electors():
            request = Vote(
                *raft.header(peer),
                last_index=log.last_index,
                last_term=log.last_term,
                is_transfer=is_transfer,
            )
            raft.outbox.send_after.append(request)

    def persisted(self, self_vote_term: int) -> None:
        if self_vote_term == self.raft.term:
            self.record(self.raft.id, True)

    def won(self) -> None:
        self.raft.become_leader()

    def step(self, message: AnyMessage) -> None:
        if isinstance(message, VoteReply):
            self.record(message.sender, message.granted)
        else:
            Campaign.step(self, message)
