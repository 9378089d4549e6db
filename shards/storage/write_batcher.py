"""What waits for the disk, and when it goes there: one batch at a time, and nothing beside it.

Log and hard state are written as soon as Raft asks, because somebody waits for them. The applied state is in no hurry:
what a crash loses of it, the log repeats. So it is gathered for a moment and then rides in the batch of an entry that
must be synced anyway. A job that is enqueued, claimed and acked meanwhile is stored once instead of three times, and
LevelDB has so much less to sort, write and merge.

State, its marker and the mirror's outbox go together or not at all (docs/explanation/storage.md).
"""

from collections.abc import Callable
from time import perf_counter

from corvo.state import keys
from corvo.state.tables import Tables
from shards import raft
from shards.feed import Feed
from shards.metrics import ShardMetrics
from shards.storage.leveldb import Disk
from shards.storage.raft_log import KEPT_BYTES, Part, RaftLog
from shards.storage.sync_thread import Action

RIDE_AFTER_NS = 40_000_000  # state that is so old goes with the next entry
RIDE_BYTES = 512 * 1024  # so much goes earlier: whoever scans looks at all of it, and a batch must not take long
FLUSH_AFTER_NS = 50_000_000  # and when there is no next entry, it waits no longer than this
HELD_FOR_SLOW_BYTES = 4 * KEPT_BYTES  # of the log, for a follower that is slow; beyond it a state is sent to it

_TIED_TO_STATE = (keys.MEMBERSHIP, keys.FORGETFUL)  # true of the state that they are written with, not of an older one


class WriteBatcher:
    def __init__(
        self,
        disk: Disk,
        log: RaftLog,
        tables: Tables,
        feed: Feed,
        core: raft.Raft,
        metrics: ShardMetrics,
        carry_out: Callable[[Action], None],
    ) -> None:
        """`carry_out` returns when the write that it is given is done."""
        self._disk = disk
        self._log = log
        self._tables = tables
        self._feed = feed
        self._core = core
        self._metrics = metrics
        self._carry_out = carry_out
        self._log_part: Part = {}
        self._changed_ns = 0  # when the oldest state that is not on disk was applied; 0: all is on disk
        self.durable_index = tables.applied.index  # the marker on disk

    def add_to_log(self, part: Part) -> None:
        """For the next batch."""
        self._log_part.update(part)

    def state_changed(self, now_ns: int) -> None:
        self._changed_ns = self._changed_ns or now_ns

    def due_ns(self) -> int:
        """When all must be written at the latest; 0: nothing waits."""
        return self._changed_ns + FLUSH_AFTER_NS if self._changed_ns else 0

    def write_log(self, now_ns: int) -> None:
        """What Raft waits for; with the state, if that has waited long enough."""
        is_old = self._changed_ns and now_ns >= self._changed_ns + RIDE_AFTER_NS
        if (
            is_old
            or self._tables.unwritten_bytes >= RIDE_BYTES
            or any(map(self._log_part.__contains__, _TIED_TO_STATE))
        ):
            self.write_all()
        else:
            self._write(self._take_log_part())

    def write_all(self) -> None:
        applied = self._tables.applied.index
        is_alone = self._core.membership.members() == (self._core.id,)
        cut = self._log.compact_part(self._compactable_index(), is_alone)
        if cut:
            self._core.compacted(self._log.first_index)
        self._changed_ns = 0
        self._write(cut, self._take_log_part(), self._tables.take_writes(), self._feed.take_part())
        self.durable_index = applied

    def _take_log_part(self) -> Part:
        part, self._log_part = self._log_part, {}
        return part

    def _compactable_index(self) -> int:
        """A follower that is slow is waited for, but not for ever: one that needs too much gets a state instead."""
        if self._log.bytes > HELD_FOR_SLOW_BYTES:
            return self.durable_index
        return min(self.durable_index, self._core.compactable_index())

    def _write(self, *parts: Part) -> None:
        started = perf_counter()
        self._carry_out(lambda: self._disk.write(*parts))
        self._metrics.sync_time.observe(perf_counter() - started)
