"""Calls that change nothing: reads of the state, the mirror's pulls and scans, and how the replica is."""

from collections.abc import Callable

from corvo.endpoint import Read
from corvo.model.errors import Refusal
from corvo.queries.access.follow_access import FollowAccess
from corvo.queries.cluster import GetStatus, ShardStatus
from corvo.queries.feed import FeedBatch, Pull, Scan
from corvo.queries.members import AddNode, MoveLeader, RemoveNode
from corvo.queries.why import Demand, Why
from corvo.state.tables import Tables
from shards import raft
from shards.feed import Feed
from shards.intake.admission import Admission
from shards.intake.presence import Presence
from shards.intake.refusals import NO_LEADER
from shards.intake.waiters import PendingCall
from shards.storage.write_batcher import WriteBatcher

BEHIND_MAX = 100  # entries; a follower under load is always a few behind, and still current
_MEMBER_CHANGES = (AddNode, RemoveNode, MoveLeader)


class Queries:
    def __init__(
        self,
        admission: Admission,
        tables: Tables,
        feed: Feed,
        presence: Presence,
        core: raft.Raft,
        batcher: WriteBatcher,
        status: Callable[[], ShardStatus],
        forward_to: Callable[[str, PendingCall, int], bool],
        change_members: Callable[[PendingCall], None],
        monotonic_ns: Callable[[], int],
    ) -> None:
        """`forward_to` passes a call on to the replica of a node, unless it is for this one. `change_members` takes a
        change of members and sees to its answer."""
        self._admission = admission
        self._tables = tables
        self._feed = feed
        self._presence = presence
        self._core = core
        self._batcher = batcher
        self._status = status
        self._forward_to = forward_to
        self._change_members = change_members
        self._monotonic_ns = monotonic_ns

    def turn(self, now_ns: int) -> None:
        """All that were admitted. Reads are put to Raft, which says when they may happen (`answer_reads`)."""
        queries, self._admission.queries = self._admission.queries, []
        reads = []
        for waiting in queries:
            if isinstance(waiting.ask, Read):
                reads.append(waiting)
            elif isinstance(waiting.ask, GetStatus):
                if not self._forward_to(waiting.ask.node_id, waiting, now_ns):
                    self._admission.answer(waiting.peer, waiting.call_id, self._status())
            elif isinstance(waiting.ask, Scan):
                piece = self._feed.scan(waiting.ask.start, waiting.ask.records_max, self._batcher.durable_index)
                self._admission.answer(waiting.peer, waiting.call_id, piece)
            elif isinstance(waiting.ask, FollowAccess):
                news = self._tables.access.news(waiting.ask.after, self._is_current())
                self._admission.answer(waiting.peer, waiting.call_id, news)
            elif isinstance(waiting.ask, _MEMBER_CHANGES):
                self._change_members(waiting)
        if reads:
            try:
                self._core.read_index(reads)
            except raft.NotLeader:
                self._admission.refuse(reads, NO_LEADER)
        self._answer_pulls(now_ns)

    def next_ns(self) -> int | None:
        pulls = self._admission.pulls
        return min(pull.wait_until_ns for pull in pulls) if pulls else None

    def answer_reads(self, context: object) -> None:
        assert isinstance(context, list)
        for waiting in context:
            try:
                answer = self._read(waiting.ask)
            except Refusal as refusal:
                answer = refusal.to_refused()
            self._admission.answer(waiting.peer, waiting.call_id, answer)

    def _read(self, read: Read) -> object:
        """Some answers need more than the tables: fetches that wait are in no log."""
        if isinstance(read, Why):
            return read.explain(self._tables, self._demand)
        return read.read(self._tables)

    def _is_current(self) -> bool:
        """Whether this replica knows what the group has decided, but for a moment."""
        return self._core.leader_id is not None and self._core.entries_behind <= BEHIND_MAX

    def _demand(self, queue: str) -> Demand:
        return self._presence.demand(queue, self._monotonic_ns(), self._admission.waiters.waits_for(queue))

    def _answer_pulls(self, now_ns: int) -> None:
        """A pull is answered when there is news, or when its time is over."""
        pulls = self._admission.pulls
        for _ in range(len(pulls)):
            waiting = pulls.popleft()
            pull = waiting.ask
            assert isinstance(pull, Pull)
            self._feed.confirm(pull.after)
            # After a kill the mirror may have seen what we have yet to repeat from our log.
            is_repeating = self._tables.applied.index < pull.after <= self._core.last_index
            has_news = (self._feed.has_after(pull.after) and not is_repeating) or self._presence.has_news()
            if not has_news and waiting.wait_until_ns > now_ns:
                pulls.append(waiting)
                continue
            if is_repeating:
                batch = FeedBatch(pull.after, [])
            else:
                batch = self._feed.pull(pull.after, pull.records_max, self._tables.overlay)
            batch.presence = self._presence.take_news()
            self._admission.answer(waiting.peer, waiting.call_id, batch)
