"""The chain of the audit log: each record's hash covers its bytes and the hash before it. Pure.

    hash of record n = SHA-256(hash of record n-1, 32 bytes ‖ bytes of record n)

The hash before the first record is 32 zero bytes. An export is NDJSON: a head with the place where it begins, a line
for each record, an end with the place where it stops.

    {"export":{"version":1,"after":0,"hash":"00…","namespace":""}}
    {"seq":1,"prev":"00…","hash":"5f…","record":{"seq":1,"at":"2026-01-31T09:00:00.000000000Z","kind":"intent",…}}
    {"end":{"seq":2,"hash":"c4…","records":2}}

`ChainCheck` reads such lines. Each must be byte for byte what the writer would write, so nothing in a line can be
changed unnoticed. Who can write the whole file can also compute a whole new chain: against that, keep the number and
hash of some record elsewhere, and compare (`Anchor`).

An export of one namespace leaves out the records of others. Then each record is checked with the hash before it that
its line gives, but not that these hashes follow one another.
"""

import re
from hashlib import sha256
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from corvo.model.audit import decode_record

HASH_BYTES = 32
GENESIS = bytes(HASH_BYTES)
VERSION = 1

Hex = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
Number = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class Anchor(NamedTuple):
    """A record by its number, and its hash."""

    seq: int
    hash: bytes


class Begin(msgspec.Struct, forbid_unknown_fields=True):
    version: int
    after: Number
    hash: Hex
    namespace: str  # empty: all


class End(msgspec.Struct, forbid_unknown_fields=True):
    seq: Number
    hash: Hex
    records: Number


class ExportHead(msgspec.Struct, forbid_unknown_fields=True):
    export: Begin


class ExportLine(msgspec.Struct, forbid_unknown_fields=True):
    seq: Number
    prev: Hex
    hash: Hex
    record: msgspec.Raw


class ExportEnd(msgspec.Struct, forbid_unknown_fields=True):
    end: End


_ANCHOR = re.compile(r"([0-9]{1,18}):([0-9a-f]{64})", re.ASCII)
_UNREADABLE = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
_encode = msgspec.json.Encoder().encode
_decode_head = msgspec.json.Decoder(ExportHead).decode
_decode_line = msgspec.json.Decoder(ExportLine).decode
_decode_end = msgspec.json.Decoder(ExportEnd).decode


def link(previous: bytes, document: bytes) -> bytes:
    return sha256(previous + document).digest()


def head_line(start: Anchor, namespace: str = "") -> bytes:
    return _encode(ExportHead(Begin(VERSION, start.seq, start.hash.hex(), namespace)))


def record_line(seq: int, previous: bytes, own: bytes, document: bytes) -> bytes:
    return _encode(ExportLine(seq, previous.hex(), own.hex(), msgspec.Raw(document)))


def end_line(end: Anchor, records: int) -> bytes:
    return _encode(ExportEnd(End(end.seq, end.hash.hex(), records)))


class BrokenChain(Exception):
    """Says where the export is not what the server wrote. `seq` is the first record that is wrong or missing."""

    def __init__(self, line: int, seq: int, reason: str) -> None:
        super().__init__(f"line {line}, record {seq}: {reason}")
        self.line = line
        self.seq = seq
        self.reason = reason


class ChainCheck:
    """Takes the lines of an export in order; `finish` after the last. Raises `BrokenChain`."""

    def __init__(self, expected: Anchor | None = None) -> None:
        self._expected = expected
        self._lines = 0
        self._end: End | None = None
        self.begin: Begin | None = None
        self.last = Anchor(0, GENESIS)  # the newest record that was checked
        self.records = 0

    @property
    def is_partial(self) -> bool:
        """Whether records of other namespaces are left out."""
        return self.begin is not None and self.begin.namespace != ""

    def take(self, line: bytes) -> None:
        self._lines += 1
        if self._end is not None:
            raise self._broken("something follows the end of the export")
        if self.begin is None:
            self._take_head(line)
        elif line.startswith(b'{"end":'):
            self._take_end(line)
        else:
            self._take_record(line)

    def finish(self) -> Anchor:
        """The newest record."""
        if self._end is None:
            raise self._broken("the export has no end: it was cut off")
        if self._expected is not None:
            raise self._unseen(self._expected)
        return Anchor(self._end.seq, bytes.fromhex(self._end.hash))

    def _take_head(self, line: bytes) -> None:
        try:
            head = _decode_head(line)
        except _UNREADABLE:
            raise self._broken("this is no head of an export of the audit log") from None
        if head.export.version != VERSION:
            raise self._broken(f"the export has version {head.export.version}; this program reads {VERSION}")
        if _encode(head) != line:
            raise self._broken("the head was changed")
        self.begin = head.export
        self.last = Anchor(self.begin.after, bytes.fromhex(self.begin.hash))
        if self.last.seq == 0 and self.last.hash != GENESIS:
            raise self._broken("the head was changed")
        self._compare(self.last)

    def _take_record(self, line: bytes) -> None:
        try:
            found = _decode_line(line)
        except _UNREADABLE:
            raise self._broken("the line is no record") from None
        document = bytes(found.record)
        if record_line(found.seq, bytes.fromhex(found.prev), bytes.fromhex(found.hash), document) != line:
            raise self._broken("the line was changed")
        if found.seq != self.last.seq + 1 and not (self.is_partial and found.seq > self.last.seq):
            raise self._broken(f"record {found.seq} stands here: records are missing, added or exchanged")
        previous = bytes.fromhex(found.prev)
        if found.seq == self.last.seq + 1 and previous != self.last.hash:
            raise self._broken("it does not follow from the record before it")
        if link(previous, document) != bytes.fromhex(found.hash):
            raise self._broken("its hash does not match: the record was changed")
        if _seq_of(document) != found.seq:
            raise self._broken("the record has another number inside")
        self.last = Anchor(found.seq, bytes.fromhex(found.hash))
        self.records += 1
        self._compare(self.last)

    def _take_end(self, line: bytes) -> None:
        try:
            end = _decode_end(line).end
        except _UNREADABLE:
            raise self._broken("the end was changed") from None
        stop = Anchor(end.seq, bytes.fromhex(end.hash))
        if end_line(stop, end.records) != line or end.records != self.records:
            raise self._broken("the end was changed, or records are missing")
        is_right = stop.seq >= self.last.seq if self.is_partial else stop == self.last
        if not is_right or (stop.seq == self.last.seq and stop != self.last):
            raise self._broken("records are missing at the end")
        self._end = end
        self._compare(stop)

    def _compare(self, found: Anchor) -> None:
        if self._expected is not None and found.seq == self._expected.seq:
            if found.hash != self._expected.hash:
                raise BrokenChain(self._lines, found.seq, "its hash is another than the expected one")
            self._expected = None

    def _unseen(self, expected: Anchor) -> BrokenChain:
        assert self.begin is not None
        if expected.seq > self.last.seq:
            reason = f"it is expected, but the log ends with {self.last.seq}"
        elif expected.seq < self.begin.after:
            reason = f"it is expected, but the export begins after {self.begin.after}"
        else:
            reason = "it is expected, but the export of one namespace leaves it out"
        return BrokenChain(self._lines, expected.seq, reason)

    def _broken(self, reason: str) -> BrokenChain:
        return BrokenChain(self._lines, self.last.seq + 1, reason)


def _seq_of(document: bytes) -> int:
    try:
        return decode_record(document).seq
    except _UNREADABLE:
        return -1


def parse_anchor(text: str) -> Anchor:
    """`SEQ:HASH`; ValueError with a sentence otherwise."""
    match = _ANCHOR.fullmatch(text)
    if match is None:
        raise ValueError("expected the number of a record, a colon and its hash of 64 hexadecimal digits")
    return Anchor(int(match[1]), bytes.fromhex(match[2]))
