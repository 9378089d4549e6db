"""The Raft log and what Raft must remember, in the replica's LevelDB.

    r|{index:8}     {term:8}{kind:1}{crc:4}{payload}        crc over index, term, kind and payload
    \\0log           first index, term of the entry before it
    \\0hard          term, vote, commit
    \\0members       the membership in force at the applied index
    \\0incarnation   number of starts of this replica

Everything is handed out as parts of one batch, never written here: log, hard state and the machine's changes reach
the disk together (`replica.py`). On start the whole log is read and checked: a hole or a bad sum cannot be told from
lost acknowledged entries, so either stops the replica.
"""

import struct
from collections import deque
from zlib import crc32

import msgspec

from corvo.model.errors import Corrupt
from corvo.state import keys
from shards.raft import EntryKind, HardState, LogEntry, Membership, Persist, Restored
from shards.storage.leveldb import Disk

_HEAD = struct.Struct(">QBI")
_SUMMED = struct.Struct(">QQB")

encode = msgspec.msgpack.Encoder().encode
_decode_hard_state = msgspec.msgpack.Decoder(HardState).decode
_decode_membership = msgspec.msgpack.Decoder(Membership).decode
_decode_meta = msgspec.msgpack.Decoder(tuple[int, int]).decode
_decode_number = msgspec.msgpack.Decoder(int).decode

Part = dict[bytes, bytes | None]


KEPT_ENTRIES = 10_000  # behind the applied index, for followers that were away for a little while
KEPT_BYTES = 32 * 1024 * 1024  # and no more than this, so that a start need not read for long
# Where there are no followers. What goes while it is young is never merged into LevelDB's lower levels, and would be
# half of what is.
KEPT_ENTRIES_ALONE, KEPT_BYTES_ALONE = 256, 1024 * 1024
COMPACT_PER_BATCH = 512  # more than come between two batches that cut


class RaftLog:
    """Knows where the log begins and ends; the host of `shards.raft` reads through it."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._sizes: deque[int] = deque()  # payload bytes of the entries from first to last
        self.bytes = 0
        self.first_index, self._anchor_term = 1, 0
        meta = disk.get(keys.LOG_META)
        if meta is not None:
            self.first_index, self._anchor_term = _decode_meta(meta)
        self.last_index, self._last_term = self.first_index - 1, self._anchor_term
        self._check()

    # What `shards.raft.LogReader` asks

    def term(self, index: int) -> int | None:
        if index == self.first_index - 1:
            return self._anchor_term
        raw = self._disk.get(keys.log_entry(index))
        return None if raw is None else int(_HEAD.unpack_from(raw)[0])

    def entries(self, low: int, high: int, bytes_max: int) -> list[LogEntry]:
        found: list[LogEntry] = []
        size = 0
        for key, raw in self._disk.scan(keys.log_entry(low), keys.log_entry(high + 1)):
            entry = _read(keys.log_index(key), raw)
            size += len(entry.payload)
            if found and size > bytes_max:
                break
            found.append(entry)
        if not found or found[0].index != low:
            raise Corrupt(f"the log has no entry {low}")
        return found

    # Start

    def restored(self, applied_index: int, founders: Membership) -> Restored:
        hard_state = self._disk.get(keys.HARD_STATE)
        membership = self._disk.get(keys.MEMBERSHIP)
        if not self.first_index - 1 <= applied_index <= self.last_index:
            raise Corrupt(f"applied {applied_index} lies outside the log {self.first_index}..{self.last_index}")
        return Restored(
            hard_state=HardState() if hard_state is None else _decode_hard_state(hard_state),
            membership=founders if membership is None else _decode_membership(membership),
            first_index=self.first_index,
            last_index=self.last_index,
            last_term=self._last_term,
            snapshot_index=self.first_index - 1,
            snapshot_term=self._anchor_term,
            applied=applied_index,
        )

    def next_incarnation(self) -> int:
        """Counted and on disk before the first message leaves."""
        raw = self._disk.get(keys.INCARNATION)
        number = 1 + (0 if raw is None else _decode_number(raw))
        self._disk.write({keys.INCARNATION: encode(number)})
        return number

    # Parts of the turn's batch

    def persist_part(self, persist: Persist) -> Part:
        part: Part = {}
        if persist.truncate_after is not None:
            for index in range(persist.truncate_after + 1, self.last_index + 1):
                part[keys.log_entry(index)] = None
                self.bytes -= self._sizes.pop()
            self.last_index = min(self.last_index, persist.truncate_after)
        for entry in persist.entries:
            part[keys.log_entry(entry.index)] = _written(entry)
            self._extend(entry)
        if persist.hard_state is not None:
            part[keys.HARD_STATE] = encode(persist.hard_state)
        if persist.membership is not None:
            part[keys.MEMBERSHIP] = encode(persist.membership)
        return part

    def compact_part(self, applied_on_disk: int, is_alone: bool = False) -> Part:
        """Forget the oldest entries, a slice at a time, once they are applied on disk and more than enough are kept."""
        kept_entries = KEPT_ENTRIES_ALONE if is_alone else KEPT_ENTRIES
        kept_bytes = KEPT_BYTES_ALONE if is_alone else KEPT_BYTES
        first, bytes_left = self.first_index, self.bytes
        if applied_on_disk - first + 1 < kept_entries + COMPACT_PER_BATCH and bytes_left <= kept_bytes:
            return {}
        last = first - 1
        while last < applied_on_disk and last - first + 1 < COMPACT_PER_BATCH:
            if applied_on_disk - last <= kept_entries and bytes_left <= kept_bytes:
                break
            last += 1
            bytes_left -= self._sizes[last - first]
        count = last - first + 1
        if not count or (count < COMPACT_PER_BATCH and self.bytes <= kept_bytes):
            return {}  # a few entries are not worth a write of the mark, unless they are large
        term = self.term(last)
        assert term is not None
        part: Part = {}
        for index in range(first, last + 1):
            part[keys.log_entry(index)] = None
            self.bytes -= self._sizes.popleft()
        self.first_index, self._anchor_term = last + 1, term
        part[keys.LOG_META] = encode((self.first_index, term))
        return part

    def _extend(self, entry: LogEntry) -> None:
        self.last_index = entry.index
        self._sizes.append(len(entry.payload))
        self.bytes += len(entry.payload)

    def _check(self) -> None:
        for key, raw in self._disk.scan(keys.log_entry(self.first_index), keys.log_entry(2**56)):
            index = keys.log_index(key)
            if index != self.last_index + 1:
                raise Corrupt(f"the log jumps from {self.last_index} to {index}")
            entry = _read(index, raw)
            if entry.term < self._last_term:
                raise Corrupt(f"the term falls from {self._last_term} to {entry.term} at {index}")
            self._extend(entry)
            self._last_term = entry.term


def _written(entry: LogEntry) -> bytes:
    return _HEAD.pack(entry.term, entry.kind, _sum(entry.index, entry.term, entry.kind, entry.payload)) + entry.payload


def _read(index: int, raw: bytes) -> LogEntry:
    if len(raw) < _HEAD.size:
        raise Corrupt(f"entry {index} of the log is cut short")
    term, kind, expected = _HEAD.unpack_from(raw)
    payload = raw[_HEAD.size :]
    if _sum(index, term, kind, payload) != expected:
        raise Corrupt(f"entry {index} of the log does not match its checksum")
    return LogEntry(index, term, EntryKind(kind), payload)


def _sum(index: int, term: int, kind: int, payload: bytes) -> int:
    return crc32(payload, crc32(_SUMMED.pack(index, term, kind)))
