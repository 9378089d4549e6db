"""What waits for the disk, and when it must go there. This module decides; the replica writes.

Log and hard state are written as soon as Raft asks, because a caller waits for them. The applied state is in no hurry:
what a crash loses of it, the log repeats. So it is gathered for a moment and then written in the batch of an entry that
must be synced anyway. A job that is enqueued, claimed and acked meanwhile is stored once instead of three times, and
LevelDB has less to sort, write and merge.

State, its marker and the mirror's outbox go together or not at all (docs/explanation/storage.md).
"""

from collections.abc import Callable
from typing import NamedTuple

from corvo.state import keys
from corvo.state.tables import Tables
from shards import raft
from shards.storage.raft_log import KEPT_BYTES, Part, RaftLog

RIDE_AFTER_NS = 40_000_000  # state of this age goes with the next entry
RIDE_BYTES = 512 * 1024  # this much goes earlier: a scan looks at all of it, and a batch must not take long
FLUSH_AFTER_NS = 50_000_000  # state of this age is written even without a next entry
HELD_FOR_SLOW_BYTES = 4 * KEPT_BYTES  # of the log, for a slow follower; beyond it the follower gets a snapshot

_TIED_TO_STATE = (keys.MEMBERSHIP, keys.FORGETFUL)  # true of the state that they are written with, not of an older one


class WriteBatch(NamedTuple):
    """What to write in one batch. Later parts win over earlier ones."""

    parts: tuple[Part, ...]
    applied_index: int | None = None  # the state's marker; None: the batch holds no state


class WriteBatcher:
    def __init__(self, log: RaftLog, tables: Tables, core: raft.Raft, take_feed: Callable[[], Part]) -> None:
        self._log = log
        self._tables = tables
        self._core = core
        self._take_feed = take_feed
        self._log_part: Part = {}
        self._changed_ns = 0  # when the oldest state that is not on disk was applied; 0: all is on disk
        self.durable_index = tables.applied.index  # the marker on disk

    def add_to_log(self, part: Part) -> None:
        """For the next batch."""
        self._log_part.update(part)

    def state_changed(self, now_ns: int) -> None:
        self._changed_ns = self._changed_ns or now_ns

    def next_ns(self) -> int | None:
        """When all must be written at the latest."""
        return self._changed_ns + FLUSH_AFTER_NS if self._changed_ns else None

    def is_due(self, now_ns: int) -> bool:
        return self._changed_ns != 0 and now_ns >= self._changed_ns + FLUSH_AFTER_NS

    def log_batch(self, now_ns: int) -> WriteBatch:
        """What Raft waits for; with the state, if that has waited long enough."""
        is_old = self._changed_ns and now_ns >= self._changed_ns + RIDE_AFTER_NS
        if (
            is_old
            or self._tables.unwritten_bytes >= RIDE_BYTES
            or any(map(self._log_part.__contains__, _TIED_TO_STATE))
        ):
            return self.whole_batch()
        return WriteBatch((self._take_log_part(),))

    def whole_batch(self) -> WriteBatch:
        """All that is gathered and all that is applied."""
        is_alone = self._core.membership.members() == (self._core.id,)
        cut = self._log.compact_part(self._compactable_index(), is_alone)
        if cut:
            self._core.compacted(self._log.first_index)
        self._changed_ns = 0
        applied = self._tables.applied.index
        return WriteBatch((cut, self._take_log_part(), self._tables.take_writes(), self._take_feed()), applied)

    def written(self, batch: WriteBatch) -> None:
        """It is on disk."""
        if batch.applied_index is not None:
            self.durable_index = batch.applied_index

    def _take_log_part(self) -> Part:
        part, self._log_part = self._log_part, {}
        return part

    def _compactable_index(self) -> int:
        """The log is kept for a slow follower, but not for ever: one that needs too much gets a snapshot instead."""
        if self._log.bytes > HELD_FOR_SLOW_BYTES:
            return self.durable_index
        return min(self.durable_index, self._core.compactable_index())
