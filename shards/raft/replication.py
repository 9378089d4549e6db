"""Bringing every replica's log to the leader's (paper section 5.3), pipelined (thesis 10.2.1).

Appends are composed once a turn, when the host asks for a Ready, so that all that a turn brought (proposals, a new
commit index, answers) leaves in as few messages as possible, before the leader's own disk has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shards.raft.membership import Membership
from shards.raft.messages import Append, AppendReply, InstallSnapshot, LeaderHeartbeat, LogEntry
from shards.raft.progress import Mode, PeerStatus, Progress
from shards.raft.quorum import UNBOUNDED, agreed_jointly

if TYPE_CHECKING:
    from shards.raft.core import Raft


class Replication:
    def __init__(self, raft: Raft) -> None:
        self.raft = raft
        self.progress: dict[str, Progress] = {}
        self.peers: list[Progress] = []  # all but ourselves
        self._voters: list[Progress] = []
        self._outgoing: list[Progress] = []
        self.follow(raft.membership)
        self.own = self.progress[raft.id]
        self.own.mode = Mode.REPLICATE
        self.own.match, self.own.next = raft.log.stable, raft.log.last_index + 1

    def follow(self, membership: Membership) -> None:
        """Begin to send to new members, and forget those that left."""
        raft, former = self.raft, self.progress
        self.progress = {}
        for replica in membership.members():
            known = former.get(replica)
            if known is None:
                known = Progress(replica, raft.log.last_index + 1, raft.now_ns)
            known.is_learner = not membership.is_voter(replica)
            self.progress[replica] = known
        self.peers = [known for replica, known in self.progress.items() if replica != raft.id]
        self._voters = [self.progress[replica] for replica in membership.voters]
        self._outgoing = [self.progress[replica] for replica in membership.outgoing]

    # --- what a quorum has

    def agreed_match(self) -> int:
        """The highest index on the disks of a quorum."""
        voters = self._voters
        if len(voters) == 1 and not self._outgoing:
            return voters[0].match
        return agreed_jointly([p.match for p in voters], [p.match for p in self._outgoing])

    def agreed_round(self) -> int:
        """The latest read round that a quorum has confirmed."""
        return agreed_jointly([p.round for p in self._voters], [p.round for p in self._outgoing])

    def quorum_heard_at_ns(self) -> int:
        """The latest moment since which a quorum, ourselves included, has been heard."""
        self.own.heard_at_ns = self.raft.now_ns
        return agreed_jointly([p.heard_at_ns for p in self._voters], [p.heard_at_ns for p in self._outgoing])

    # --- sending

    def flush(self) -> None:
        for peer in self.peers:
            self._send(peer)

    def _send(self, peer: Progress) -> None:
        if peer.paused or peer.mode is Mode.SNAPSHOT:
            return
        raft, log, options = self.raft, self.raft.log, self.raft.options
        messages_max, bytes_max = options.inflight_messages_max, options.inflight_bytes_max
        while not peer.paused:
            has_entries = peer.next <= log.last_index
            if not has_entries and not peer.nudged and peer.sent_commit >= min(log.commit, peer.next - 1):
                return
            prev_index = peer.next - 1
            prev_term = log.term(prev_index) if prev_index >= log.snapshot_index else None
            if prev_term is None:
                self._send_snapshot(peer)
                return
            entries: list[LogEntry] = []
            # Through a full window only an empty Append goes: its answer shows whether the window was lost.
            if has_entries and not peer.is_window_full(messages_max, bytes_max):
                entries = log.entries(peer.next, log.last_index, options.append_bytes_max)
            header = raft.header(peer.replica)
            raft.outbox.send_now.append(Append(*header, prev_index, prev_term, log.commit, entries))
            size = sum([len(entry.payload) for entry in entries])
            peer.sent(prev_index + len(entries), size, log.commit)
            if peer.is_window_full(messages_max, bytes_max):
                peer.paused = True

    def _send_snapshot(self, peer: Progress) -> None:
        """The entries it needs are compacted. The host streams its state and hands this over at the end."""
        raft, log = self.raft, self.raft.log
        if raft.now_ns - peer.heard_at_ns >= raft.options.election_ns and not peer.heard:
            peer.paused = True  # not to one that does not answer; a heartbeat's reply wakes it
            return
        term = log.term(log.applied)
        assert term is not None and log.applied >= log.snapshot_index
        message = InstallSnapshot(
            *raft.header(peer.replica), index=log.applied, index_term=term, membership=raft.membership
        )
        raft.outbox.send_now.append(message)
        peer.await_snapshot(log.applied, raft.now_ns + raft.options.snapshot_timeout_ns)

    def send_heartbeats(self, round_number: int) -> None:
        raft = self.raft
        self.own.round = round_number
        for peer in self.peers:
            # Never above its match: it cannot know by itself whether its tail is ours (etcd's rule).
            commit = min(peer.match, raft.log.commit)
            message = LeaderHeartbeat(
                *raft.header(peer.replica), commit=commit, round=round_number, point=raft.points.latest
            )
            raft.outbox.send_now.append(message)

    # --- answers and reports

    def append_reply(self, peer: Progress, message: AppendReply) -> bool:
        """Learn from an answer; returns whether the replica now holds more."""
        log = self.raft.log
        if message.rejected:
            hint = message.hint_index
            if message.hint_term:
                # Our entries above its term at the hint cannot be there either.
                hint, _ = log.find_not_above(hint, message.hint_term)
            peer.rejected(message.index, hint)
            return False
        if message.index > log.last_index:
            return False  # claims what we never had; nothing true can be learnt from it
        is_news = peer.accepted(message.index)
        if peer.mode is Mode.REPLICATE:
            peer.freed_up_to(message.index)
        elif peer.mode is Mode.PROBE:
            if is_news or message.index == peer.match:
                peer.replicate()
        elif peer.match >= log.snapshot_index:
            peer.replicate()  # however it got there, the log can go on from here
        if peer.is_learner:
            peer.measure_catch_up(log.last_index, self.raft.now_ns, self.raft.options.election_ns)
        peer.check()
        return is_news

    def heartbeat_reply(self, peer: Progress, round_number: int) -> None:
        peer.round = max(peer.round, min(round_number, self.own.round))
        peer.paused = False
        # If it lacks something although all is sent, perhaps an Append was lost: ask where it stands.
        peer.nudged = peer.match < self.raft.log.last_index

    def unreachable(self, replica: str) -> None:
        peer = self.progress.get(replica)
        if peer is not None and peer.mode is Mode.REPLICATE:
            peer.probe(peer.match + 1)

    def restarted(self, replica: str) -> None:
        """What was sent to its earlier incarnation is lost, and perhaps its disk: ask what it holds."""
        peer = self.progress.get(replica)
        if peer is not None:
            peer.match = 0
            self._ask_where(peer)

    def _ask_where(self, peer: Progress) -> None:
        """By the end of our log: its answer leads back to where the logs part. A guess below the beginning of our log
        would cost it a whole state instead."""
        peer.probe(self.raft.log.last_index + 1)

    def snapshot_ended(self, replica: str, ok: bool) -> None:
        peer = self.progress.get(replica)
        if peer is None or peer.mode is not Mode.SNAPSHOT:
            return
        if ok:
            peer.probe(max(peer.match, peer.snapshot_index) + 1)
        else:
            self._ask_where(peer)
        peer.paused = True  # until its own answer, or the next heartbeat's, says that it is there

    # --- time

    def tick(self) -> None:
        now_ns = self.raft.now_ns
        for peer in self.peers:
            peer.tick(now_ns)
            if peer.mode is Mode.SNAPSHOT and now_ns >= peer.snapshot_deadline_ns:
                self._ask_where(peer)

    def is_live(self, peer: Progress) -> bool:
        return peer.heard or self.raft.now_ns - peer.heard_at_ns < self.raft.options.election_ns

    def is_caught_up(self, peer: Progress) -> bool:
        return peer.caught_up and peer.mode is Mode.REPLICATE and self.is_live(peer)

    def slowest_live_match(self) -> int:
        """What every replica that answers has; the log before it is needed only by the dead."""
        if not self.peers:
            return UNBOUNDED
        return min((peer.match for peer in self.peers if self.is_live(peer)), default=UNBOUNDED)

    def best_successor(self) -> Progress | None:
        """The live voter that needs least to take over."""
        membership = self.raft.membership
        able = [
            peer
            for peer in self.peers
            if peer.replica in membership.voters and peer.mode is Mode.REPLICATE and self.is_live(peer)
        ]
        return max(able, key=lambda peer: peer.match, default=None)

    def status(self) -> list[PeerStatus]:
        return [
            PeerStatus(
                replica=peer.replica,
                match=peer.match,
                next=peer.next,
                mode=peer.mode.value,
                is_learner=peer.is_learner,
                is_caught_up=self.is_caught_up(peer),
                inflight_messages=len(peer.inflight),
                silent_ns=0 if peer is self.own else self.raft.now_ns - peer.heard_at_ns,
            )
            for peer in self.progress.values()
        ]
