"""What must be true after every step, seen by one who sees all replicas and all disks.

The five properties of Raft's paper (figure 3), a commit index that only grows, and the promises behind them: what is
said to others is on disk first, a vote is given once, a leader has its quorum's votes, and what is committed is on
the disks of a quorum and stays there. Checkers read the core and change nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from shards.raft import AnyMessage, EntryKind, InstallSnapshot, LogEntry, Membership, MembershipChange, Ready, Role
from shards.raft.leader import Leader
from shards.raft.membership import ChangeKind
from shards.raft.messages import Append, AppendReply, LeaderHeartbeat, TimeoutNow, Vote, VoteReply, decode_membership
from tests.simulation.clock import T

if TYPE_CHECKING:
    from tests.simulation.cluster import Cluster
    from tests.simulation.host import Host

Line = tuple[EntryKind, bytes, int]  # kind, payload, term of the entry before


class Violation(AssertionError):
    """A promise was broken."""


def require(is_kept: bool, promise: str, *details: object) -> None:
    if not is_kept:
        raise Violation(": ".join([promise, *map(str, details)]))


class Commit(msgspec.Struct, frozen=True):
    entry: LogEntry
    leader_term: int  # term of the leader that committed it


class Seen(msgspec.Struct):
    """What a host looked like after its last step."""

    term: int
    commit: int
    last: tuple[int, int]
    stable: int
    terms: dict[int, int]  # of its log, by index
    led_term: int = 0
    role: Role = Role.FOLLOWER
    matches: dict[str, int] = {}  # what it believed of others while it led
    lives: dict[str, int] = {}  # and the incarnations of theirs that it knew


class Checkers:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.leaders: dict[int, str] = {}  # term → leader
        self.lines: dict[tuple[int, int], Line] = {}  # every entry that any log ever held
        self.committed: dict[int, Commit] = {}
        self.commit_index = 0
        self.hashes: dict[int, bytes] = {}  # of the machine's state after each entry
        self.first_applied_at: dict[int, int] = {}  # index → event number
        self.proposed_at: dict[tuple[int, int], int] = {}
        self.last_membership = Membership()
        self._seen: dict[str, Seen] = {}
        self._votes: dict[tuple[str, int], str] = {}  # (voter, term) → candidate, as it left the voter
        self._transfers: set[tuple[str, int]] = set()  # (successor, term) that a leader ordered to campaign
        self._transfer_votes: set[tuple[str, int]] = set()
        self._promises: dict[str, tuple[int, int]] = {}  # host → until (its clock), term of the leader it heard
        self._started_ns: dict[str, int] = {}
        self._covered = 0  # how far a log reached that covers the snapshot that arrives
        self._joined: dict[str, int] = {}  # newcomer → index of the entry that brought it in

    # --- steps

    def started(self, host: Host) -> None:
        core = host.raft
        former = self._seen.get(host.name)
        if former is not None:
            require(core.term >= host.disk.hard_state.term, "a term outlives a crash", host.name)
            self._cluster.coverage["restarts"] += 1
        self._seen[host.name] = Seen(core.term, 0, (0, 0), 0, {})
        self._started_ns[host.name] = host.clock.local_ns()
        self.observe(host)

    def installed(self, host: Host) -> None:
        self._cluster.coverage["snapshots installed"] += 1
        self._cluster.say(f"{host.name} installs a snapshot at {host.tables.applied.index}")
        self._check_hash(host)

    def observe(self, host: Host) -> None:
        core, seen = host.raft, self._seen[host.name]
        log = core.log
        if core.term != seen.term:
            require(core.term > seen.term, "a term only grows", host.name)
        if log.commit != seen.commit:
            require(log.commit > seen.commit, "the commit index only grows", host.name, seen.commit, log.commit)
        last = (log.last_index, log.last_term)
        if last != seen.last:
            self._log_changed(host, seen, last)
        role = core.role
        if role is Role.LEADER and seen.led_term != core.term:
            self._elected(host)
            seen.led_term, seen.matches = core.term, {}
        if role is not seen.role:
            self._role_changed(host, role)
            seen.role = role
        if log.commit > seen.commit:
            self._commit_grew(host, seen.commit)
            seen.commit = log.commit
        if log.stable != seen.stable:
            term = log.term(log.stable)
            is_durable = core.outbox.is_installing or host.disk.holds(log.stable, term or 0)
            require(is_durable, "what is called stable is on disk", host.name, log.stable)
            seen.stable = log.stable
        if isinstance(core.stance, Leader):
            self._check_progress(host, core.stance, seen)
        seen.term = core.term

    def _log_changed(self, host: Host, seen: Seen, last: tuple[int, int]) -> None:
        log, terms = host.raft.log, seen.terms
        for index in range(last[0] + 1, seen.last[0] + 1):
            terms.pop(index, None)
        is_same_reign = seen.led_term == host.raft.term and host.raft.is_leader
        require(not is_same_reign or last[0] >= seen.last[0], "a leader's log only grows", host.name)
        index = last[0]
        while index > log.snapshot_index:
            term = log.term(index)
            known = terms.get(index)
            if known == term:
                break
            require(known is None or not is_same_reign, "a leader overwrites nothing of its own", host.name, index)
            (entry,) = log.entries(index, index, 1)
            line = (entry.kind, entry.payload, log.term(index - 1) or 0)
            former = self.lines.setdefault((index, entry.term), line)
            require(former == line, "logs that agree at an entry agree before it", host.name, index, entry.term)
            terms[index] = entry.term
            index -= 1
        seen.last = last

    def _elected(self, host: Host) -> None:
        core = host.raft
        known = self.leaders.setdefault(core.term, host.name)
        require(known == host.name, "one leader in a term", core.term, known, host.name)
        self._cluster.coverage["elections"] += 1
        self._cluster.say(f"{host.name} leads term {core.term}")
        for index, commit in self.committed.items():
            if commit.leader_term < core.term and index > core.log.snapshot_index:
                has = core.log.term(index) == commit.entry.term
                require(has, "a leader has all that was committed before it", host.name, index)
        votes = {voter for (voter, term), choice in self._votes.items() if term == core.term and choice == host.name}
        if (host.disk.hard_state.term, host.disk.hard_state.vote) == (core.term, host.name):
            votes.add(host.name)
        members = core.membership
        require(self._is_quorum(members, votes), "a leader was voted for by a quorum", host.name, sorted(votes))
        for other in self._cluster.hosts.values():
            if other is not host and other.is_up and other.raft.is_leader and other.raft.term < core.term:
                is_over = other.raft.lease_until_ns() <= other.clock.local_ns()
                require(is_over, "nobody is elected while a lease runs", host.name, other.name)
        self._cluster.elected(host)

    def _role_changed(self, host: Host, role: Role) -> None:
        core = host.raft
        if role in (Role.PRE_CANDIDATE, Role.CANDIDATE):
            for index in range(core.log.applied + 1, core.log.commit + 1):
                line = self.lines.get((index, core.log.term(index) or 0))
                is_members = line is not None and line[0] == EntryKind.MEMBERSHIP
                require(not is_members, "nobody campaigns over members it has not adopted", host.name, index)
            self._cluster.coverage["campaigns"] += role is Role.CANDIDATE

    def _commit_grew(self, host: Host, former: int) -> None:
        core, log = host.raft, host.raft.log
        for index in range(max(former, log.snapshot_index) + 1, log.commit + 1):
            (entry,) = log.entries(index, index, 1)
            known = self.committed.get(index)
            if known is None:
                require(core.is_leader, "only a leader decides what is committed", host.name, index)
                self.committed[index] = Commit(entry, core.term)
                if entry.kind == EntryKind.MEMBERSHIP:
                    self._members_committed(decode_membership(entry.payload))
            else:
                require(known.entry == entry, "what is committed at an index is one entry", host.name, index)
        if log.commit > self.commit_index:
            require(core.is_leader and log.commit in self.committed, "commitment begins with a leader", host.name)
            self.commit_index = log.commit
            term = log.term(log.commit) or 0
            require(term == core.term, "only entries of the own term are committed by counting", host.name, log.commit)
            hosts = self._cluster.hosts
            holders = {name for name, other in hosts.items() if other.disk.holds(log.commit, term)}
            is_safe = self._is_quorum(core.membership, holders)
            require(is_safe, "what is committed is on a quorum's disks", log.commit, sorted(holders))
        if isinstance(core.stance, Leader):
            self._check_leads(host)

    def _check_leads(self, host: Host) -> None:
        members = host.raft.membership
        require(members.is_voter(host.name), "who is removed does not lead", host.name)

    def _members_committed(self, members: Membership) -> None:
        former, self.last_membership = self.last_membership, members
        for replica in members.members():
            self._joined.setdefault(replica, members.config_id)
        self._cluster.coverage["config changes"] += 1
        self._cluster.say(f"members: {members}")
        if not former.voters:
            former = self._cluster.founders
        moved = sorted(members.voters) != sorted(former.voters)
        require(not moved or members.outgoing == former.voters, "voters change through a joint phase", members)
        changed = msgspec.structs.replace(members, config_id=0) != msgspec.structs.replace(former, config_id=0)
        require(changed, "a joint phase is left once", members)

    def _check_progress(self, host: Host, leader: Leader, seen: Seen) -> None:
        for peer in leader.replication.progress.values():
            match = peer.match
            if match == seen.matches.get(peer.replica):
                continue
            life = host.raft.incarnations.of(peer.replica)
            if seen.lives.get(peer.replica) != life:
                seen.lives[peer.replica] = life
                seen.matches.pop(peer.replica, None)  # who has restarted may be asked anew
            require(
                match >= seen.matches.get(peer.replica, 0),
                "a match only grows while the replica lives",
                host.name,
                peer.replica,
            )
            require(
                peer.next > match or peer is leader.replication.own, "the next entry is beyond the match", host.name
            )
            other = self._cluster.hosts.get(peer.replica)
            # A newer leader may have cut what an older one rightly remembers.
            is_current = other is not None and other.disk.hard_state.term <= host.raft.term
            if other is not None and is_current and match > host.raft.log.snapshot_index:
                has = other.disk.holds(match, host.raft.log.term(match) or 0)
                require(has, "a match is on the replica's disk", host.name, peer.replica, match)
            seen.matches[peer.replica] = match

    def _is_quorum(self, members: Membership, names: set[str]) -> bool:
        halves = [members.voters, members.outgoing] if members.outgoing else [members.voters]
        return all(2 * sum(name in names for name in half) > len(half) for half in halves)

    # --- messages

    def arrives(self, host: Host, message: AnyMessage) -> None:
        if isinstance(message, Vote) and message.is_transfer:
            self._transfer_votes.add((message.sender, message.term))
        elif isinstance(message, InstallSnapshot):
            log = host.raft.log
            self._covered = log.last_index if log.matches(message.index, message.index_term) else 0

    def arrived(self, host: Host, message: AnyMessage, was_dropped: bool) -> None:
        own, meant = host.disk.incarnation, message.receiver_incarnation
        if meant != own and (meant or message.must_be_exact):
            require(was_dropped, "what was meant for a former life is dropped", host.name, type(message).__name__)
            self._cluster.coverage["messages for a former life"] += 1
        elif message.from_leader and not was_dropped and message.term == host.raft.term:
            until_ns = host.clock.local_ns() + T
            self._promises[host.name] = (until_ns, message.term)
        if isinstance(message, InstallSnapshot):
            is_kept = host.raft.log.last_index >= self._covered
            require(is_kept, "a snapshot takes nothing from a log that covers it", host.name, message.index)
        stance = host.raft.stance
        if isinstance(message, AppendReply) and isinstance(stance, Leader) and message.term < host.raft.term:
            peer = stance.replication.progress.get(message.sender)
            known = self._seen[host.name].matches.get(message.sender, 0)
            is_no_wiser = peer is None or peer.match <= known
            require(is_no_wiser, "an answer of another term teaches nothing", host.name, message.sender)

    def sent(self, host: Host, message: AnyMessage) -> None:
        disk = host.disk
        hard = disk.hard_state
        if isinstance(message, VoteReply) and message.granted:
            self._vote_sent(host, message)
        elif isinstance(message, AppendReply) and not message.rejected and hard.term <= message.term:
            require(disk.reaches(message.index), "what is acknowledged is on disk", host.name, message.index)
            require(not message.index or hard.term == message.term, "a term is on disk before its answers", host.name)
        elif isinstance(message, Vote):
            if host.raft.role is Role.CANDIDATE and host.raft.term == message.term:  # else it changes nothing any more
                has_voted = (hard.term, hard.vote) == (message.term, host.name)
                has_log = disk.holds(message.last_index, message.last_term)
                require(has_voted and has_log, "who asks for votes is on disk with what it claims", host.name)
            was_ordered = not message.is_transfer or (host.name, message.term - 1) in self._transfers
            require(was_ordered, "a transfer is ordered by the leader of the term before", host.name, message.term)
        elif isinstance(message, LeaderHeartbeat) and message.commit:
            self._heartbeat_sent(host, message)
        elif isinstance(message, TimeoutNow):
            self._transfers.add((message.receiver, message.term))
            self._cluster.coverage["transfers ordered"] += 1
            # Not what is proposed in the same turn: a transfer that was given up a moment ago lets it in.
            disk = self._cluster.hosts[message.receiver].disk
            has_all = disk.hard_state.term > message.term or disk.holds(*host.end_before_requests)
            require(has_all, "a successor has the leader's whole log", message.receiver)
        elif isinstance(message, InstallSnapshot):
            require(message.index <= self.commit_index, "a snapshot holds what is committed", host.name)
        elif isinstance(message, Append):
            require(message.commit <= self.commit_index, "nobody tells of more than is committed", host.name)

    def _heartbeat_sent(self, host: Host, message: LeaderHeartbeat) -> None:
        other, commit = self._cluster.hosts.get(message.receiver), self.committed.get(message.commit)
        if other is not None and commit is not None:
            has = other.disk.holds(message.commit, commit.entry.term)
            require(has, "a heartbeat commits only what its receiver has", host.name, message.receiver)

    def _vote_sent(self, host: Host, message: VoteReply) -> None:
        hard, candidate, term = host.disk.hard_state, message.receiver, message.term
        is_durable = hard.term > term or (hard.term, hard.vote) == (term, candidate)
        require(is_durable, "a vote is on disk before it leaves", host.name, term)
        known = self._votes.setdefault((host.name, term), candidate)
        require(known == candidate, "one vote in a term", host.name, term, known, candidate)
        now_ns = host.clock.local_ns()
        is_new = now_ns < self._started_ns[host.name] + T
        require(not is_new, "who has just started may have promised and does not vote", host.name)
        until_ns, promised_term = self._promises.get(host.name, (0, 0))
        is_bound = now_ns < until_ns and promised_term < term and (candidate, term) not in self._transfer_votes
        require(not is_bound, "who hears a leader keeps its vote", host.name, term)

    # --- the host's work

    def ready(self, host: Host, ready: Ready) -> None:
        require(not ready.diverged, "equal logs make equal states", host.name, ready.diverged)
        require(not ready.is_rolled_back, "no disk went back in time", host.name)

    def disk_changed(self, host: Host, gone: list[LogEntry]) -> None:
        for entry in gone:
            known = self.committed.get(entry.index)
            is_kept = known is None or known.entry.term != entry.term or host.disk.holds(entry.index, entry.term)
            require(is_kept, "what is committed stays on disk", host.name, entry.index)
        has_commit = host.disk.applied_index <= self.commit_index
        require(has_commit, "only what is committed is in the state", host.name)

    def applied(self, host: Host, entry: LogEntry) -> None:
        known = self.committed.get(entry.index)
        is_same = known is not None and known.entry == entry
        require(is_same, "every machine applies the same entry at an index", host.name, entry.index)
        self.first_applied_at.setdefault(entry.index, self._cluster.events.count)
        self._check_hash(host)

    def _check_hash(self, host: Host) -> None:
        applied = host.tables.applied
        known = self.hashes.setdefault(applied.index, applied.hash)
        require(known == applied.hash, "equal entries make equal states", host.name, applied.index)

    def read(self, host: Host, least: int, index: int) -> None:
        require(index >= least, "a read sees all that was committed before it began", host.name, index, least)
        has_come = host.tables.applied.index >= index
        require(has_come, "a read waits for the machine", host.name, index)

    def change_accepted(self, host: Host, change: MembershipChange) -> None:
        """A leader took a change of members."""
        term = host.raft.term
        has_committed = any(commit.entry.term == term for commit in self.committed.values())
        require(has_committed, "a leader commits in its term before it changes members", host.name)
        for step in change.steps:
            if step.kind is ChangeKind.PROMOTE:
                is_there = self._cluster.hosts[step.replica].disk.reaches(self._joined[step.replica])
                require(is_there, "who becomes a voter has the log", step.replica)
