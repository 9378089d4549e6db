"""The log as the core knows it: what exists, what is durable, committed, applied.

Four marks move through the log, each only forward except where a conflict cuts the end off:

    first ≤ applied + 1        applied ≤ applying ≤ commit ≤ last        stable ≤ handed ≤ last

`handed` entries were given to the host to write, `stable` ones are on its disk; `applying` ones were given to the
host to apply, `applied` ones are in its machine. Only the tail is in memory: everything not yet stable, and of the
rest what followers or the machine will want soon. The other entries are read back through `LogReader`.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from shards.raft.membership import Membership
from shards.raft.messages import EntryKind, HardState, LogEntry


class LogReader(Protocol):
    """Reads of entries that the host has made durable. Both calls are synchronous."""

    def term(self, index: int) -> int | None:
        """The term of a stored entry, or of the point just before the first one; None when it is gone."""

    def entries(self, low: int, high: int, bytes_max: int) -> list[LogEntry]:
        """Consecutive entries from `low`, at most to `high`; at least one, even above `bytes_max`."""


class Restored(msgspec.Struct, frozen=True):
    """What the host found on its disk at start. The defaults are those of a replica that never lived."""

    hard_state: HardState = HardState()
    membership: Membership = Membership()  # as of `applied`
    first_index: int = 1
    last_index: int = 0
    last_term: int = 0
    snapshot_index: int = 0  # the point just before first_index
    snapshot_term: int = 0
    applied: int = 0


class Log:
    __slots__ = (
        "_tail_bytes_max",
        "anchor_term",
        "applied",
        "applying",
        "applying_bytes",
        "commit",
        "cut_after",
        "handed",
        "last_index",
        "membership_indices",
        "reader",
        "snapshot_index",
        "snapshot_term",
        "stable",
        "tail",
        "tail_bytes",
        "tail_first",
    )

    def __init__(self, restored: Restored, reader: LogReader, tail_bytes_max: int) -> None:
        assert restored.first_index == restored.snapshot_index + 1, "the log must begin after its snapshot point"
        assert restored.last_index >= restored.snapshot_index, "the log ends before it begins"
        assert restored.snapshot_index <= restored.applied <= restored.last_index, "applied lies outside the log"
        assert restored.hard_state.commit <= restored.last_index, "committed entries are missing"
        self.reader = reader
        self._tail_bytes_max = tail_bytes_max
        self.snapshot_index = restored.snapshot_index
        self.snapshot_term = restored.snapshot_term
        self.last_index = restored.last_index
        self.stable = self.handed = restored.last_index
        self.applied = self.applying = restored.applied
        self.commit = max(restored.hard_state.commit, restored.applied)
        self.applying_bytes = 0
        self.tail: list[LogEntry] = []  # entries from tail_first to last_index
        self.tail_first = restored.last_index + 1
        self.tail_bytes = 0
        self.anchor_term = restored.last_term  # term at tail_first - 1: spares a disk read for every Append
        self.cut_after: int | None = None  # entries above it are on the host's disk and must go
        self.membership_indices = self._find_memberships(restored.applied + 1)

    # --- questions

    @property
    def first_index(self) -> int:
        return self.snapshot_index + 1

    @property
    def last_term(self) -> int:
        return self.tail[-1].term if self.tail else self.anchor_term

    def term(self, index: int) -> int | None:
        """The term at an index, None where the log has no entry (compacted or not written yet)."""
        if index >= self.tail_first:
            return self.tail[index - self.tail_first].term if index <= self.last_index else None
        if index == self.tail_first - 1:
            return self.anchor_term
        if index == self.snapshot_index:
            return self.snapshot_term
        return self.reader.term(index) if index > self.snapshot_index else None

    def matches(self, index: int, term: int) -> bool:
        return self.term(index) == term

    def is_behind_or_equal(self, last_index: int, last_term: int) -> bool:
        """Whether a log that ends there is at least as up to date as this one (paper section 5.4.1)."""
        return (last_term, last_index) >= (self.last_term, self.last_index)

    def find_not_above(self, index: int, term: int) -> tuple[int, int]:
        """The highest index up to `index` whose term is at most `term`, and that term.

        Terms never decrease along the log, so a binary search does: one probe of a follower then skips a whole
        term of conflicting entries (paper section 5.3, end), on either side. A compacted index ends the search.
        """
        high = min(index, self.last_index)
        low = min(self.snapshot_index, high)
        while low < high:
            middle = (low + high + 1) // 2
            found = self.term(middle)
            assert found is not None, "a term within the log is missing"
            if found <= term:
                low = middle
            else:
                high = middle - 1
        return low, self.term(low) or 0

    def entries(self, low: int, high: int, bytes_max: int) -> list[LogEntry]:
        """Consecutive entries from `low`; fewer than asked when bytes or the border to the disk say so."""
        assert self.snapshot_index < low <= high <= self.last_index, "entries outside the log asked for"
        if low < self.tail_first:
            high = min(high, self.tail_first - 1)
            found = self.reader.entries(low, high, bytes_max)
            assert found and found[0].index == low and found[-1].index == low + len(found) - 1 <= high
            return found
        start = low - self.tail_first
        end = high - self.tail_first + 1
        if end - start == 1:
            return [self.tail[start]]
        size = len(self.tail[start].payload)
        for position in range(start + 1, end):
            size += len(self.tail[position].payload)
            if size > bytes_max:
                end = position
                break
        return self.tail[start:end]

    def has_unapplied_membership(self) -> bool:
        """Whether a membership entry is in the log that has not taken effect here."""
        return bool(self.membership_indices)

    def has_committed_unapplied_membership(self) -> bool:
        return bool(self.membership_indices) and self.membership_indices[0] <= self.commit

    # --- growing and shrinking

    def append(self, entry: LogEntry) -> None:
        assert entry.index == self.last_index + 1, "a log has no holes"
        self.tail.append(entry)
        self.tail_bytes += len(entry.payload)
        self.last_index = entry.index
        if entry.kind == EntryKind.MEMBERSHIP:
            self.membership_indices.append(entry.index)

    def accept(self, entries: list[LogEntry]) -> int | None:
        """Take a leader's entries after a point that matched; returns where the log was cut, if it was.

        Only a conflict cuts: a late duplicate of an old Append must not remove what came after it
        (paper figure 13 and section 5.3).
        """
        for position, entry in enumerate(entries):
            if entry.index <= self.last_index and self.matches(entry.index, entry.term):
                continue
            cut = None
            if entry.index <= self.last_index:
                cut = entry.index - 1
                self._cut(cut)
            for new in entries[position:]:
                self.append(new)
            return cut
        return None

    def _cut(self, after: int) -> None:
        assert after >= self.commit, "a committed entry would be removed"
        term = self.term(after)
        assert term is not None
        if after >= self.tail_first - 1:
            keep = after - self.tail_first + 1
            self.tail_bytes -= sum(len(entry.payload) for entry in self.tail[keep:])
            del self.tail[keep:]
        else:
            self.tail.clear()
            self.tail_bytes = 0
            self.tail_first = after + 1
            self.anchor_term = term
        self.last_index = after
        self.stable = min(self.stable, after)
        if self.handed > after:
            self.cut_after = after if self.cut_after is None else min(self.cut_after, after)
            self.handed = after
        while self.membership_indices and self.membership_indices[-1] > after:
            self.membership_indices.pop()

    def restore(self, index: int, term: int) -> None:
        """Start again from a snapshot that replaces everything."""
        assert index > self.commit, "a snapshot would take back what is committed"
        self.snapshot_index, self.snapshot_term = index, term
        self.tail.clear()
        self.tail_bytes = self.applying_bytes = 0
        self.tail_first = index + 1
        self.anchor_term = term
        self.last_index = self.stable = self.handed = index
        self.commit = self.applying = self.applied = index
        self.cut_after = None
        self.membership_indices.clear()

    def compact(self, first_index: int) -> None:
        """Forget what lies before `first_index`; nothing that is not applied may go."""
        if first_index <= self.first_index:
            return
        assert first_index <= min(self.applied, self.stable) + 1, "compaction reached entries still needed"
        term = self.term(first_index - 1)
        assert term is not None, "the term before the first entry must stay readable"
        self.snapshot_index, self.snapshot_term = first_index - 1, term
        if self.tail_first < first_index:
            self._forget(first_index - 1)

    # --- the host's side

    def take_unhanded(self) -> list[LogEntry]:
        """The entries that the host has not been given yet."""
        start = self.handed + 1 - self.tail_first
        assert start >= 0, "an entry left memory before it was written"
        self.handed = self.last_index
        return self.tail[start:] if start else self.tail.copy()

    def persisted_up_to(self, index: int) -> None:
        if index > self.stable:
            assert index <= self.handed, "the disk has what it was never given"
            self.stable = index

    def commit_up_to(self, index: int) -> None:
        if index > self.commit:
            assert index <= self.last_index, "commitment ran ahead of the log"
            self.commit = index

    def take_committed(self, bytes_max: int) -> list[LogEntry]:
        """The next committed entries to apply, each exactly once; none while the host has enough to do."""
        if self.applying == self.commit or self.applying_bytes >= bytes_max:
            return []
        taken = self.entries(self.applying + 1, self.commit, bytes_max)
        self.applying = taken[-1].index
        for entry in taken:
            self.applying_bytes += len(entry.payload)
        return taken

    def applied_up_to(self, index: int) -> None:
        assert index <= self.applying, "applied what was never handed out"
        if index == self.applying:
            self.applying_bytes = 0
        self.applied = index
        while self.membership_indices and self.membership_indices[0] <= index:
            self.membership_indices.pop(0)

    def release(self, needed_after: int) -> None:
        """Let go of entries that are durable, applied, and held by every replica that counts (`needed_after`)."""
        limit = min(self.stable, self.applied, needed_after)
        if limit >= self.tail_first:
            self._forget(limit)
        if self.tail_bytes > self._tail_bytes_max and self.stable >= self.tail_first:
            excess, limit = self.tail_bytes - self._tail_bytes_max, self.tail_first - 1
            while excess > 0 and limit < self.stable:
                limit += 1
                excess -= len(self.tail[limit - self.tail_first].payload)
            self._forget(limit)

    def _forget(self, up_to: int) -> None:
        count = up_to - self.tail_first + 1
        gone = self.tail[:count]
        self.anchor_term = gone[-1].term
        for entry in gone:
            self.tail_bytes -= len(entry.payload)
        del self.tail[:count]
        self.tail_first = up_to + 1

    def _find_memberships(self, low: int) -> list[int]:
        found = []
        while low <= self.last_index:
            for entry in self.entries(low, self.last_index, 1 << 20):
                if entry.kind == EntryKind.MEMBERSHIP:
                    found.append(entry.index)
                low = entry.index + 1
        return found

    def check(self) -> None:
        """The invariants at the top; cheap enough to stay on."""
        assert self.snapshot_index <= self.applied <= self.applying <= self.commit <= self.last_index
        assert self.stable <= self.handed <= self.last_index
        assert self.tail_first <= self.stable + 1 and self.tail_first + len(self.tail) == self.last_index + 1
