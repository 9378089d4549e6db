"""A disk that forgets at a crash everything that was not synced, but for a prefix that it had written by chance.

A write is atomic: of one that a crash tears nothing is left, because its checksum does not match. Writes complete in
order. The replicated state lies here as bytes, under the applied marker that is written with it.
"""

from __future__ import annotations

import random
from collections import deque

import msgspec

from corvo.state import keys
from corvo.state.kv import MemoryKV
from corvo.state.tables import decode_applied
from shards.raft import AnyMessage, HardState, LogEntry, Membership, Persist, Restored

State = dict[bytes, bytes]


class StateMap(MemoryKV):
    """An ordered map that can be copied."""

    def content(self) -> State:
        return dict(self._values)

    @classmethod
    def holding(cls, content: State) -> StateMap:
        state = cls()
        state._values = dict(content)
        state._keys = sorted(content)
        return state


class Write(msgspec.Struct):
    """One batch: log, hard state, membership, and the changes of what was applied since the last one."""

    persist: Persist | None
    send_after: list[AnyMessage]
    changes: dict[bytes, bytes | None]
    membership: Membership
    installs: State | None = None  # replaces everything
    compact_to: int = 0  # entries before it go

    @property
    def is_empty(self) -> bool:
        return (self.persist is None or self.persist.is_empty) and not self.changes and not self.compact_to


class Disk:
    def __init__(self, membership: Membership) -> None:
        self.incarnation = 0
        self.hard_state = HardState()
        self.membership = membership
        self.log: dict[int, LogEntry] = {}
        self.last_index = self.snapshot_index = self.snapshot_term = 0
        self.state = StateMap()
        self.applied_index = 0
        self.pending: deque[Write] = deque()
        self.torn: Write | None = None
        self.life = 0  # counts crashes: a sync that was under way then never comes

    # --- what `shards.raft.LogReader` asks

    def term(self, index: int) -> int | None:
        if index == self.snapshot_index:
            return self.snapshot_term
        entry = self.log.get(index)
        return entry.term if entry is not None else None

    def entries(self, low: int, high: int, bytes_max: int) -> list[LogEntry]:
        found = [self.log[low]]
        size = len(found[0].payload)
        for index in range(low + 1, high + 1):
            size += len(self.log[index].payload)
            if size > bytes_max:
                break
            found.append(self.log[index])
        return found

    # --- questions of the checkers

    def holds(self, index: int, term: int) -> bool:
        """Whether the entry is here, or was and is part of the state."""
        return index < self.snapshot_index or self.term(index) == term

    def reaches(self, index: int) -> bool:
        return index <= self.last_index

    # --- writing

    def sync_next(self) -> tuple[Write, list[LogEntry]]:
        """The oldest write becomes durable; returns it, and what it removed from the log."""
        write = self.pending.popleft()
        return write, self.apply(write)

    def apply(self, write: Write) -> list[LogEntry]:
        gone: list[LogEntry] = []
        persist = write.persist
        if persist is not None:
            if persist.snapshot is not None:
                gone = [entry for entry in self.log.values() if entry.index > persist.snapshot.index]
                self.log.clear()
                self.last_index = self.snapshot_index = persist.snapshot.index
                self.snapshot_term = persist.snapshot.term
            if persist.truncate_after is not None:
                for index in range(persist.truncate_after + 1, self.last_index + 1):
                    gone.append(self.log.pop(index))
                self.last_index = min(self.last_index, persist.truncate_after)
            for entry in persist.entries:
                assert entry.index == self.last_index + 1, "the log on disk has a hole or an overlap"
                self.log[entry.index] = entry
                self.last_index = entry.index
            if persist.hard_state is not None:
                self.hard_state = persist.hard_state
        self.write_state(write)
        if write.compact_to > self.snapshot_index + 1:
            self._compact(write.compact_to)
        return gone

    def write_state(self, write: Write) -> None:
        if write.installs is not None:
            self.state = StateMap.holding(write.installs)
        if write.changes:
            self.state.write(write.changes)
        self.membership = write.membership
        raw = self.state.get(keys.APPLIED)
        self.applied_index = decode_applied(raw).index if raw is not None else 0

    def _compact(self, first_index: int) -> None:
        term = self.term(first_index - 1)
        assert term is not None
        for index in range(self.snapshot_index + 1, first_index):
            del self.log[index]
        self.snapshot_index, self.snapshot_term = first_index - 1, term

    # --- crash and start

    def crash(self, dice: random.Random) -> int:
        """Power is gone; returns how many writes were lost."""
        self.life += 1
        kept = dice.randrange(len(self.pending) + 1) if dice.random() < 0.3 else 0
        for _ in range(kept):
            self.sync_next()
        lost = [write for write in self.pending if not write.is_empty]
        self.torn = lost[0] if lost else None
        self.pending.clear()
        return len(lost)

    def recover(self) -> None:
        """Read what is there. A torn write does not match its checksum: it never was."""
        self.torn = None
        self.incarnation += 1

    def restored(self) -> Restored:
        last_term = self.term(self.last_index)
        assert last_term is not None
        return Restored(
            hard_state=self.hard_state,
            membership=self.membership,
            first_index=self.snapshot_index + 1,
            last_index=self.last_index,
            last_term=last_term,
            snapshot_index=self.snapshot_index,
            snapshot_term=self.snapshot_term,
            applied=self.applied_index,
        )
