"""Who gets our vote, and whose higher term we believe (paper sections 5.2 and 5.4.1, thesis 4.2.3, 6.4.1 and 9.6).

The same in all roles, because it rests on promises that outlive them: a replica that heard a leader keeps its vote
for one election timeout, and so does one that has just started, because it may have promised before it crashed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shards.raft.messages import AnyMessage, AppendReply, PreVote, PreVoteReply, TimeoutNow, Vote, VoteReply

if TYPE_CHECKING:
    from shards.raft.core import Raft


def meet_higher_term(raft: Raft, message: AnyMessage) -> bool:
    """Adopt a later term where the message proves one; returns whether to go on with the message."""
    if isinstance(message, Vote | PreVote):
        # A transfer frees only replicas in the term of the leader that ordered it.
        is_transfer = isinstance(message, Vote) and message.is_transfer and message.term == raft.term + 1
        if _is_bound(raft, is_transfer):
            return False  # not even the term is adopted, else a lonely replica could depose a leader
        if isinstance(message, PreVote):
            return True
    elif isinstance(message, PreVoteReply) and message.granted:
        return True  # its term is the one that we asked about
    elif isinstance(message, TimeoutNow):
        return False  # a successor holds the leader's whole log, hence its term; this one is confused
    raft.become_follower(message.term, message.sender if message.from_leader else None)
    return True


def answer_lower_term(raft: Raft, message: AnyMessage) -> None:
    """Tell replicas that would otherwise stay behind for ever.

    A replica with a higher term and a shorter log is refused by all, and refuses the others without their
    learning why: with PreVote nothing else carries the term (etcd issue 8501).
    """
    sender = message.sender
    if message.from_leader:
        raft.outbox.send_after.append(AppendReply(*raft.header(sender), index=0))
    elif isinstance(message, PreVote):
        raft.outbox.send_after.append(PreVoteReply(*raft.header(sender), granted=False))
    elif isinstance(message, Vote):
        raft.outbox.send_after.append(VoteReply(*raft.header(sender), granted=False))


def consider(raft: Raft, message: Vote | PreVote) -> None:
    """Answer a request for our vote, or about it."""
    sender = message.sender
    is_up_to_date = raft.log.is_behind_or_equal(message.last_index, message.last_term)
    if isinstance(message, PreVote):
        # About a later term we are free; about our own, as free as for a vote.
        is_free = message.term > raft.term or _may_vote_for(raft, sender)
        granted = is_free and is_up_to_date and not _is_bound(raft, is_transfer=False)
        header = raft.header(sender, message.term if granted else raft.term)
        raft.outbox.send_after.append(PreVoteReply(*header, granted=granted))
        return
    granted = _may_vote_for(raft, sender) and is_up_to_date and not _is_bound(raft, message.is_transfer)
    if granted:
        raft.set_term_and_vote(raft.term, sender)
        raft.restart_election_timer()
    raft.outbox.send_after.append(VoteReply(*raft.header(sender), granted=granted))


def _may_vote_for(raft: Raft, candidate: str) -> bool:
    # Once more for the same one: the first answer may have been lost.
    return raft.vote == candidate or (raft.vote == "" and raft.leader_id is None)


def _is_bound(raft: Raft, is_transfer: bool) -> bool:
    """Whether a promise forbids a vote. A leader that hands over frees us from the one given to it."""
    return raft.has_just_started() if is_transfer else raft.has_promised()
