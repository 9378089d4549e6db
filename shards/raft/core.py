"""Raft: the three entrances `step`, `tick` and `ready`, and what all stances share.

A replica's stance (follower, pre-candidate, candidate, leader) is an object of its own, in the module of that name; it
holds what is meaningful only in that stance and answers messages and timers. This class holds what outlives a change
of stance: identity, term and vote, log, membership, the outbox. It alone changes term, vote and stance.

Time. `tick(now_ns)` is the only clock. Messages are stepped before the tick of the same turn, so the moment they
came is known only as "since the last tick"; what they restart is therefore counted from the *next* tick. That is
the safe side for every promise a replica gives (it is kept a little longer), and a process that was stopped finds
its queued heartbeats before it looks at its timers.
"""

from __future__ import annotations

import random

from shards.raft import voting
from shards.raft.candidate import Candidate, PreCandidate
from shards.raft.divergence import StatePoints
from shards.raft.follower import Follower
from shards.raft.handed import Handed
from shards.raft.incarnations import Incarnations, Verdict
from shards.raft.leader import Leader
from shards.raft.log import Log, LogReader, Restored
from shards.raft.membership import Membership, MembershipChange, is_consistent
from shards.raft.messages import (
    AnyMessage,
    Hello,
    PreVote,
    ReadReply,
    ReadRequest,
    StatePoint,
    Vote,
    decode_membership,
)
from shards.raft.options import Options
from shards.raft.progress import PeerStatus
from shards.raft.ready import Divergence, Ready, ReadyBuilder, Role
from shards.raft.refusals import NotLeader

Stance = Follower | PreCandidate | Candidate | Leader
REQUESTS_FOR_VOTES = (Vote, PreVote)
_LEADER = Role.LEADER  # to look up an enum's member is a call, and it is asked several times in every turn


class Raft:
    """One replica of one group."""

    def __init__(
        self,
        node_id: str,
        incarnation: int,
        restored: Restored,
        log_reader: LogReader,
        options: Options,
        seed: int,
        now_ns: int,
    ) -> None:
        options.check()
        assert node_id, "a replica needs a name"
        assert is_consistent(restored.membership), "the stored membership is contradictory"
        assert restored.membership.config_id <= restored.applied, "the membership is from the future"
        self.id = node_id
        self.options = options
        self.incarnations = Incarnations(incarnation)
        self.random = random.Random(seed)
        self.now_ns = now_ns
        self.term = restored.hard_state.term
        self.vote = restored.hard_state.vote
        self.membership = restored.membership
        self.log = Log(restored, log_reader, options.tail_bytes_max)
        assert self.term >= self.log.last_term, "the log holds an entry of a later term than the hard state"
        self.heard_commit = 0  # how far a leader said that it has committed
        self.points = StatePoints(options.points_max)
        self.outbox = ReadyBuilder()
        self.leader_id: str | None = None
        # A lease that we confirmed before a restart may still be running: no candidate gets our vote before it is over.
        self._started_until_ns = now_ns + options.election_ns
        self.promise_until_ns = self._started_until_ns
        self._leader_heard = False
        self._timer_restarted = False
        self.election_timeout_ns = self.election_deadline_ns = 0
        self.draw_election_timeout()
        self._handed = Handed(self, restored)
        self._reads_awaiting_apply: list[tuple[object, int]] = []
        self.read_number = 0  # of the latest read forwarded in this incarnation
        self.is_rolled_back = False
        self.dropped_count = 0  # malformed, misaddressed, or of another incarnation
        self.stance: Stance = Follower(self)
        for peer in self.membership.members():
            if peer != node_id:
                self.outbox.send_now.append(Hello(*self.header(peer)))

    # --- questions

    @property
    def role(self) -> Role:
        return self.stance.role

    @property
    def is_leader(self) -> bool:
        return self.stance.role is _LEADER

    @property
    def commit_index(self) -> int:
        return self.log.commit

    @property
    def entries_behind(self) -> int:
        """Entries that the group has committed, as far as a leader has told, and this replica has not applied."""
        return max(self.log.commit, self.heard_commit) - self.log.applied

    @property
    def last_index(self) -> int:
        return self.log.last_index

    @property
    def applied_index(self) -> int:
        return self.log.applied

    def progress(self) -> list[PeerStatus]:
        """What a leader believes about every replica; empty for others."""
        return self.stance.replication.status() if isinstance(self.stance, Leader) else []

    def compactable_index(self) -> int:
        """The highest index that no live follower and no unapplied entry needs any more."""
        if isinstance(self.stance, Leader):
            return min(self.log.applied, self.log.stable, self.stance.replication.slowest_live_match())
        return min(self.log.applied, self.log.stable)

    def lease_until_ns(self) -> int:
        """Until when no other leader can exist; 0 when there is no lease."""
        return self.stance.lease_until_ns() if isinstance(self.stance, Leader) else 0

    def deadline_ns(self) -> int | None:
        """When `tick` must be called at the latest; None when only messages or requests can change anything."""
        return self.stance.deadline_ns()

    # --- requests of the host

    def propose(self, payloads: list[bytes]) -> list[tuple[int, int]]:
        """Append entries; returns the (index, term) of each. Whether they survive, `Ready.apply` tells."""
        if not isinstance(self.stance, Leader):
            raise NotLeader(self.leader_id)
        return self.stance.propose(payloads)

    def propose_membership(self, change: MembershipChange, expected_config_id: int) -> tuple[int, int]:
        """Begin a change of members, if the membership is still the one that the caller saw."""
        if not isinstance(self.stance, Leader):
            raise NotLeader(self.leader_id)
        return self.stance.propose_membership(change, expected_config_id)

    def read_index(self, context: object) -> None:
        """Ask for a moment at which a read is linearizable; the answer comes in `Ready.reads`."""
        if not isinstance(self.stance, Leader | Follower):
            raise NotLeader(self.leader_id)
        self.stance.read_index(context)

    def transfer(self, target: str) -> None:
        """Hand leadership to a voter; proposals are refused until it is over or given up."""
        if not isinstance(self.stance, Leader):
            raise NotLeader(self.leader_id)
        self.stance.transfer(target)

    def campaign(self) -> None:
        """Stand for election now. With lease reads, not against a promise that is still running."""
        if self.options.lease_reads and self.has_promised() and not self.membership.is_alone(self.id):
            return
        self.start_election()

    def give_up_reads(self) -> None:
        """Messages to or from the leader were lost: reads that were forwarded to it may wait in vain."""
        if not self.is_leader:
            self.stance.refuse_reads()

    def report_unreachable(self, peer: str) -> None:
        """Messages to this peer were lost; stop sending ahead of its answers."""
        if isinstance(self.stance, Leader):
            self.stance.replication.unreachable(peer)

    def report_snapshot(self, peer: str, ok: bool) -> None:
        """The stream to this peer ended: whole (its core will answer), or not."""
        if isinstance(self.stance, Leader):
            self.stance.replication.snapshot_ended(peer, ok)

    def compacted(self, first_index: int) -> None:
        """The host is about to delete what lies before; `LogReader.term(first_index - 1)` must answer."""
        self.log.compact(first_index)
        self.log.check()

    def persisted(self, token: int) -> None:
        """The persist of this token, and all before it, are durable."""
        done = self.outbox.close_persist(token)
        self.log.persisted_up_to(done.stable_index)
        self.stance.persisted(done.self_vote_term)
        self.log.release(self.stance.needed_after())
        if self._reads_awaiting_apply:
            self._release_reads()
        self.log.check()

    def applied(self, index: int, state_hash: bytes | None = None) -> None:
        """The machine has applied everything up to `index`; `state_hash` is its state's, for comparison.

        Call it after every entry if hashes shall be comparable under load, at least once for each Ready.
        """
        log = self.log
        if index <= log.applied:
            return  # a snapshot has overtaken the machine
        while log.membership_indices and log.membership_indices[0] <= index:
            self._adopt_membership(log.membership_indices[0])
        log.applied_up_to(index)
        if state_hash is not None:
            self.points.add(index, state_hash)
        if self._reads_awaiting_apply:
            self._release_reads()
        self.stance.applied()
        log.release(self.stance.needed_after())
        log.check()

    # --- step

    def step(self, message: AnyMessage, now_ns: int | None = None) -> None:
        """Take one message of another replica.

        With the time, a promise that is over is known to be over; without it, only at the next tick. No timer
        fires here.
        """
        if now_ns is not None and now_ns > self.now_ns:
            self.now_ns = now_ns
        if message.receiver != self.id or not message.is_well_formed() or self.is_rolled_back:
            self.dropped_count += 1
            return
        verdict = self.incarnations.judge(message)
        if verdict is not Verdict.ADMIT and not self._admit(message, verdict):
            self.dropped_count += 1
            return
        if isinstance(message, Hello):
            return
        if message.must_be_exact and not self._knows(message.sender):
            return  # answers and orders of non-members; a removed replica must not disturb
        if message.term > self.term:
            if not voting.meet_higher_term(self, message):
                return
        elif message.term < self.term:
            voting.answer_lower_term(self, message)
            return
        if isinstance(message, REQUESTS_FOR_VOTES):
            voting.consider(self, message)
        else:
            self.stance.step(message)
        self.log.check()

    def _knows(self, sender: str) -> bool:
        # A leader that was removed by its own last entry still names its successor.
        return self.membership.is_member(sender) or sender == self.leader_id

    def _admit(self, message: AnyMessage, verdict: Verdict) -> bool:
        if verdict is Verdict.RESTARTED:
            if isinstance(self.stance, Leader):
                self.stance.replication.restarted(message.sender)
            return True
        if verdict is Verdict.ROLLED_BACK:
            self.is_rolled_back = True
        elif verdict is Verdict.STALE:
            self.outbox.send_now.append(Hello(*self.header(message.sender)))
        return False

    # --- tick

    def tick(self, now_ns: int) -> None:
        """Let time pass; one large step after a pause is as good as many small ones."""
        assert now_ns >= self.now_ns, "a monotonic clock does not go back"
        self.now_ns = now_ns
        if self._leader_heard:
            self._leader_heard = False
            self.promise_until_ns = max(self.promise_until_ns, now_ns + self.options.election_ns)
            self._timer_restarted = True
        if self._timer_restarted:
            self._timer_restarted = False
            self.election_deadline_ns = now_ns + self.election_timeout_ns
        self.stance.tick()

    def hear_leader(self, leader_id: str) -> None:
        assert self.leader_id in (None, leader_id), "two leaders in one term"
        self.leader_id = leader_id
        self._leader_heard = True

    def draw_election_timeout(self) -> None:
        """Random, so that two replicas seldom campaign together (paper section 5.2)."""
        shortest = self.options.election_ns
        self.election_timeout_ns = self.random.randrange(shortest, 2 * shortest)
        self.restart_election_timer()

    def restart_election_timer(self) -> None:
        self.election_deadline_ns = self.now_ns + self.election_timeout_ns
        self._timer_restarted = True

    def has_promised(self) -> bool:
        """Whether a leader, perhaps ourselves, counts on our not voting for another."""
        return self.is_leader or self._leader_heard or self.now_ns < self.promise_until_ns

    def has_just_started(self) -> bool:
        return self.now_ns < self._started_until_ns

    # --- changes of stance

    def may_campaign(self) -> bool:
        """Learners and non-members may not; nor a replica that does not know the voters, or has lost its memory."""
        return (
            self.membership.is_voter(self.id)
            and not self.log.has_committed_unapplied_membership()
            and not self.outbox.is_installing
            and not self.is_rolled_back
        )

    def start_election(self, is_transfer: bool = False) -> None:
        if self.is_leader:
            return
        if not self.may_campaign():
            if self.now_ns >= self.election_deadline_ns:
                # It cannot stand, but it must not send people to a leader that is gone.
                self.stance.refuse_reads()
                self.leader_id = None
            self.restart_election_timer()
        elif is_transfer or self.membership.is_alone(self.id):
            self.become_candidate(is_transfer)
        else:
            self.stance.refuse_reads()
            self.leader_id = None  # else we would refuse others for a leader that we gave up
            self.stance = PreCandidate(self)
            self.draw_election_timeout()
            self.stance.begin()

    def become_follower(self, term: int, leader_id: str | None) -> None:
        former = self.stance
        if term != self.term:
            self.set_term_and_vote(term, "")
        self.leader_id = leader_id
        self.stance = Follower(self)
        former.refuse_reads()
        self.draw_election_timeout()

    def become_candidate(self, is_transfer: bool) -> None:
        assert not self.is_leader, "a leader does not stand against itself"
        self.stance.refuse_reads()
        self.set_term_and_vote(self.term + 1, self.id)
        self.leader_id = None
        candidate = Candidate(self)
        self.stance = candidate
        self.draw_election_timeout()
        candidate.begin(is_transfer)

    def become_leader(self) -> None:
        assert self.role is Role.CANDIDATE and self.vote == self.id
        self.leader_id = self.id
        leader = Leader(self)
        self.stance = leader
        leader.begin()

    def set_term_and_vote(self, term: int, vote: str) -> None:
        """The only place where either changes; both are on disk before anything said in that term leaves."""
        assert term > self.term or (term == self.term and self.vote in ("", vote)), "a vote was taken back"
        self.term = term
        self.vote = vote

    # --- members

    def _adopt_membership(self, index: int) -> None:
        (entry,) = self.log.entries(index, index, 1)
        membership = decode_membership(entry.payload)
        assert membership.config_id == index and is_consistent(membership), "a membership entry is damaged"
        self.log.membership_indices.pop(0)
        self.membership = membership
        self.stance.membership_changed()

    def restore_membership(self, membership: Membership) -> None:
        """A snapshot brought its own; the marker that installs it carries it to the disk."""
        assert is_consistent(membership)
        self.membership = self._handed.membership = membership

    # --- what stances say

    def header(self, peer: str, term: int | None = None) -> tuple[str, str, int, int, int]:
        incarnations = self.incarnations
        return self.id, peer, incarnations.own, incarnations.of(peer), self.term if term is None else term

    def release_read(self, context: object, index: int) -> None:
        """A read index is confirmed; the read may happen once the machine has reached it (thesis 6.4)."""
        if index <= self.log.applied and not self.outbox.is_installing:
            self.outbox.reads.append((context, index))
        else:
            self._reads_awaiting_apply.append((context, index))

    def _release_reads(self) -> None:
        waiting, self._reads_awaiting_apply = self._reads_awaiting_apply, []
        for context, index in waiting:
            self.release_read(context, index)

    def refuse_read_request(self, message: ReadRequest) -> None:
        reply = ReadReply(*self.header(message.sender), number=message.number, index=0, refused=True)
        self.outbox.send_now.append(reply)

    def compare_states(self, peer: str, point: StatePoint) -> None:
        ours = self.points.find_conflict(point) if point.index else None
        if ours is not None:
            self.outbox.diverged.append(Divergence(peer, point.index, ours, point.hash))

    # --- ready

    def ready(self) -> Ready | None:
        """Take all that is to be done now; None when there is nothing."""
        return self._handed.take()
