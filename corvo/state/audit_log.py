"""The audit log in the state of shard 0: records in a chain of hashes, numbered from 1 without gaps.

Old records are removed from the front, a few at a time. The number and hash of the newest one that was removed stay, so
that the chain of the rest can still be verified. Records are never changed.

A gateway may send a record twice, when its shard died meanwhile. The ids of the newest requests are remembered, so the
second one adds nothing. What is remembered follows from the stored records alone: a replica that restarts remembers the
same.
"""

from collections.abc import Callable

import msgspec

from corvo.model.audit import stamped
from corvo.model.audit_chain import GENESIS, Anchor, link
from corvo.model.limits import (
    AUDIT_ASKS_REMEMBERED,
    AUDIT_RECORDS_DEFAULT,
    AUDIT_REMOVED_AT_ONCE,
    AUDIT_RETENTION_MS_DEFAULT,
)
from corvo.model.timestamps import to_rfc3339
from corvo.state import keys
from corvo.state.due import DueOrder
from corvo.state.kv import KV, Overlay

AUDIT_ALARM = "a"  # followed by nothing: the oldest record may be removed

encode = msgspec.msgpack.Encoder().encode


class AuditEntry(msgspec.Struct, array_like=True, frozen=True, gc=False):
    seq: int
    at: int
    ask_id: int  # of the request that sent it
    hash: bytes
    document: bytes  # JSON; these bytes are chained


class AuditEnds(msgspec.Struct, array_like=True, gc=False):
    last: int = 0
    last_hash: bytes = GENESIS
    removed: int = 0  # all records up to this one
    removed_hash: bytes = GENESIS


class AuditKept(msgspec.Struct, array_like=True, frozen=True):
    retention_ms: int = AUDIT_RETENTION_MS_DEFAULT  # 0: for ever
    records_max: int = AUDIT_RECORDS_DEFAULT


decode_entry = msgspec.msgpack.Decoder(AuditEntry).decode
decode_ends = msgspec.msgpack.Decoder(AuditEnds).decode


class AuditLog:
    def __init__(self, overlay: Overlay, put_record: Callable[[bytes, bytes | None], None], alarms: DueOrder) -> None:
        self._overlay = overlay
        self._put_record = put_record
        self._alarms = alarms
        self._ends = AuditEnds()
        self._asks: dict[int, int] = {}  # id of a request → its record
        self.kept = AuditKept()

    def recall(self, kv: KV) -> None:
        if (raw := kv.get(keys.AUDIT_KEPT)) is not None:
            self.kept = AuditKept(*keys.unpack_audit_kept(raw))
        if (raw := kv.get(keys.AUDIT_ENDS)) is None:
            return
        self._ends = ends = decode_ends(raw)
        oldest = max(ends.removed, ends.last - AUDIT_ASKS_REMEMBERED) + 1
        for _, value in kv.scan(keys.audit(oldest), keys.audit(ends.last + 1)):
            entry = decode_entry(value)
            self._asks[entry.ask_id] = entry.seq

    def __len__(self) -> int:
        return self._ends.last - self._ends.removed

    @property
    def first(self) -> Anchor:
        """The newest record that was removed: the chain begins after it."""
        return Anchor(self._ends.removed, self._ends.removed_hash)

    @property
    def last(self) -> Anchor:
        return Anchor(self._ends.last, self._ends.last_hash)

    def append(self, now: int, ask_id: int, document: bytes) -> int:
        """The number of the record, also of one that was appended before."""
        known = self._asks.get(ask_id)
        if known is not None:
            return known
        ends = self._ends
        if not len(self) and self.kept.retention_ms:
            self._alarms.add(now + self.kept.retention_ms * 1_000_000, AUDIT_ALARM)
        seq = ends.last + 1
        whole = stamped(seq, to_rfc3339(now), document)
        own = link(ends.last_hash, whole)
        self._put_record(keys.audit(seq), encode(AuditEntry(seq, now, ask_id, own, whole)))
        ends.last, ends.last_hash = seq, own
        self._remember(ask_id, seq)
        if len(self) > self.kept.records_max:
            self._remove_oldest(now, 2)  # one more than is added: a lowered bound is reached
        self._overlay.puts[keys.AUDIT_ENDS] = encode(ends)
        return seq

    def keep(self, now: int, kept: AuditKept) -> None:
        """From now on."""
        self.kept = kept
        self._overlay.puts[keys.AUDIT_KEPT] = keys.pack_audit_kept(kept.retention_ms, kept.records_max)
        self._alarms.add(now, AUDIT_ALARM)

    def trim(self, now: int) -> int:
        """Remove records that are too old or too many, and set the alarm for the rest. Returns how many were looked
        at."""
        removed = self._remove_oldest(now, AUDIT_REMOVED_AT_ONCE)
        if removed:
            self._overlay.puts[keys.AUDIT_ENDS] = encode(self._ends)
        if removed == AUDIT_REMOVED_AT_ONCE:
            self._alarms.add(now, AUDIT_ALARM)
        elif len(self) and self.kept.retention_ms:
            oldest = self.entry(self._ends.removed + 1)
            self._alarms.add(oldest.at + self.kept.retention_ms * 1_000_000, AUDIT_ALARM)
        return removed + 1

    def entry(self, seq: int) -> AuditEntry:
        raw = self._overlay.get(keys.audit(seq))
        assert raw is not None, f"record {seq} of the audit log is gone"
        return decode_entry(raw)

    def after(self, seq: int, records_max: int, bytes_max: int) -> tuple[Anchor, list[AuditEntry]]:
        """The place where it begins, and the records from there on; at least one, if there is one."""
        seq = max(seq, self._ends.removed)
        start = self.first if seq == self._ends.removed else Anchor(seq, self.entry(seq).hash)
        found: list[AuditEntry] = []
        size = 0
        for number in range(seq + 1, min(self._ends.last, seq + records_max) + 1):
            entry = self.entry(number)
            size += len(entry.document)
            if found and size > bytes_max:
                break
            found.append(entry)
        return start, found

    def _remove_oldest(self, now: int, at_most: int) -> int:
        ends, kept = self._ends, self.kept
        expired = now - kept.retention_ms * 1_000_000 if kept.retention_ms else -1
        for number in range(at_most):
            if not len(self):
                return number
            entry = self.entry(ends.removed + 1)
            if entry.at > expired and len(self) <= kept.records_max:
                return number
            self._put_record(keys.audit(entry.seq), None)
            self._asks.pop(entry.ask_id, None)
            ends.removed, ends.removed_hash = entry.seq, entry.hash
        return at_most

    def _remember(self, ask_id: int, seq: int) -> None:
        self._asks[ask_id] = seq
        if len(self._asks) > AUDIT_ASKS_REMEMBERED:
            del self._asks[next(iter(self._asks))]
