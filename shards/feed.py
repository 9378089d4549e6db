"""What changed, for the mirror: in order, at least once, without slowing the shard.

The mirror asks for changes after an index, which is also its receipt. Usually it has everything up to the last
answer, and gets the records gathered since, each job once however often it changed. A mirror that fell behind or
lost an answer is served from the outbox: for every entry that changed something, one small record of the keys, in
the same batch as the changes. An outbox that outgrows its bound is cut, and a mirror behind the cut must scan. So must
one that needs an entry which changed more than a message can carry: only scans can be cut anywhere.
"""

from collections import deque

import msgspec

from corvo.model.limits import MESSAGE_BYTES_MAX
from corvo.queries.feed import FeedBatch, ScanPiece
from corvo.state import keys
from corvo.state.kv import Overlay
from shards.storage.leveldb import Disk
from shards.storage.raft_log import Part, encode

FRESH_RECORDS_MAX = 20_000  # more than this waits in the outbox instead of memory
FRESH_BYTES_MAX = 8 * 1024 * 1024
OUTBOX_ENTRIES_MAX = 200_000
BATCH_BYTES_MAX = 8 * 1024 * 1024  # a batch or piece ends once it has this much; the mirror relies on 4 MiB at least
ENTRY_BYTES_MAX = MESSAGE_BYTES_MAX // 2  # of records that one entry changed; more is a gap
TRIM_PER_BATCH = 256

MIRRORED = (
    *(keys.JOBS, keys.JOB_ERRORS, keys.QUEUES, keys.WORKERS, keys.BATCHES, keys.SCHEDULES, keys.MINUTES),
    *(keys.UNIQUE, keys.CLAIMS, keys.AUDIT),
)
_decode_keys = msgspec.msgpack.Decoder(list[bytes]).decode
_decode_floor = msgspec.msgpack.Decoder(int).decode


class Feed:
    def __init__(self, disk: Disk, applied: int) -> None:
        raw = disk.get(keys.FEED_FLOOR)
        self.floor = 0 if raw is None else _decode_floor(raw)  # changes up to here are no longer known
        self._outbox = deque(
            keys.log_index(key) for key, _ in disk.scan(keys.feed_record(0), keys.prefix_end(keys.FEED))
        )
        self._disk = disk
        self._applied = applied
        self._fresh: dict[bytes, bytes | None] = {}
        self._fresh_bytes = 0  # at most; values that were replaced count too
        self._base = applied  # `_fresh` holds everything after this index
        self._is_fresh_whole = True
        self._unwritten: Part = {}
        self.receipt = self.floor  # the mirror has everything up to here

    @property
    def head(self) -> int:
        return self._applied

    def add(self, index: int, records: dict[bytes, bytes | None]) -> None:
        self._applied = index
        if not records:
            return
        self._outbox.append(index)
        self._unwritten[keys.feed_record(index)] = encode(list(records))
        if self._is_fresh_whole:
            self._fresh.update(records)
            self._fresh_bytes += sum(map(len, filter(None, records.values())))
            if len(self._fresh) > FRESH_RECORDS_MAX or self._fresh_bytes > FRESH_BYTES_MAX:
                self._fresh, self._fresh_bytes, self._is_fresh_whole = {}, 0, False

    def has_after(self, index: int) -> bool:
        """Whether a pull from here is answered at once. Entries that changed nothing count too: the mirror's cursor
        is compared with the applied index by readers that wait for it."""
        return index != self._applied

    def confirm(self, receipt: int) -> None:
        """The mirror has everything up to here."""
        if receipt <= self._applied:
            self.receipt = max(self.receipt, receipt)

    def pull(self, after: int, records_max: int, overlay: Overlay) -> FeedBatch:
        if after < self.floor or after > self._applied:
            return FeedBatch(self._applied, [], is_gap=True)
        if after == self._base and self._is_fresh_whole:
            batch = FeedBatch(self._applied, list(self._fresh.items()))
        else:
            batch = self._from_outbox(after, records_max, overlay)
        if batch.upto == self._applied and not batch.is_gap:
            self._fresh, self._fresh_bytes, self._base, self._is_fresh_whole = {}, 0, self._applied, True
        return batch

    def _from_outbox(self, after: int, records_max: int, overlay: Overlay) -> FeedBatch:
        """Keys from the outbox, values as they are now: newer than the index is fine, for records are idempotent."""
        changed: dict[bytes, bytes | None] = {}
        upto, size = after, 0
        for index in self._outbox:
            if index <= after:
                continue
            if len(changed) >= records_max or size >= BATCH_BYTES_MAX:
                return FeedBatch(upto, list(changed.items()))
            raw = self._unwritten.get(keys.feed_record(index)) or self._disk.get(keys.feed_record(index))
            assert raw is not None, f"outbox record {index} is gone"
            entry: dict[bytes, bytes | None] = {}
            entry_size = 0
            for key in _decode_keys(raw):
                if key not in changed:
                    entry[key] = value = overlay.get(key)
                    entry_size += len(value or b"")
                    if entry_size > ENTRY_BYTES_MAX:
                        if changed:
                            return FeedBatch(upto, list(changed.items()))
                        return FeedBatch(self._applied, [], is_gap=True)
            changed.update(entry)
            upto, size = index, size + entry_size
        return FeedBatch(self._applied, list(changed.items()))

    def scan(self, start: bytes, records_max: int, durable_index: int) -> ScanPiece:
        """A stretch of what is on disk: no older than the marker on disk, whatever is written meanwhile."""
        records: list[tuple[bytes, bytes]] = []
        size = 0
        for prefix in sorted(MIRRORED):
            if start >= keys.prefix_end(prefix):
                continue
            for key, value in self._disk.scan(max(start, prefix), keys.prefix_end(prefix)):
                if len(records) == records_max or size >= BATCH_BYTES_MAX:
                    return ScanPiece(durable_index, records, key)
                records.append((key, value))
                size += len(value)
        return ScanPiece(durable_index, records, b"")

    def take_part(self) -> Part:
        """What the next batch must hold: new outbox records, and the removal of those that are no longer needed."""
        part, self._unwritten = self._unwritten, {}
        outbox = self._outbox
        removed = 0
        while outbox and ((removed < TRIM_PER_BATCH and outbox[0] <= self.receipt) or len(outbox) > OUTBOX_ENTRIES_MAX):
            # Both move the floor: a mirror that lost what it had confirmed must scan, too.
            self.floor = outbox.popleft()
            part[keys.feed_record(self.floor)] = None
            removed += 1
        if removed:
            part[keys.FEED_FLOOR] = encode(self.floor)
        return part
