"""The two ends of a stream that carries a whole state: the view that is read, and the database that is filled.

Neither knows about time, sockets or what Raft wants: `transfer.py` does. Pieces end at the same keys whenever they
are asked for, because the view does not change; so each boundary has one digest, which both ends compute as they go.
"""

from collections.abc import Iterator
from hashlib import blake2b

import msgspec

from corvo.state import keys
from corvo.state.tables import decode_applied
from shards import raft
from shards.snapshots.messages import SnapshotOffer, SnapshotPiece
from shards.storage.leveldb import Disk, Frozen
from shards.storage.raft_log import encode

PIECE_BYTES = 1024 * 1024  # a piece ends once it has this much; one record may be more

Record = tuple[bytes, bytes]

_decode_membership = msgspec.msgpack.Decoder(raft.Membership).decode


class StreamPosition(msgspec.Struct, frozen=True, array_like=True):
    """A boundary between two pieces: what everything before it comes to."""

    digest: bytes
    records: int = 0
    bytes: int = 0

    def beyond(self, records: list[Record], is_last: bool) -> "StreamPosition":
        digest = blake2b(self.digest + encode((records, is_last)), digest_size=16).digest()
        size = sum(len(key) + len(value) for key, value in records)
        return StreamPosition(digest, self.records + len(records), self.bytes + size)


def first_place(applied: bytes) -> StreamPosition:
    return StreamPosition(blake2b(applied, digest_size=16).digest())


class Outgoing:
    """One stream to one follower, of a state that does not change meanwhile."""

    def __init__(
        self, session: int, view: Frozen, install: raft.InstallSnapshot, applied: bytes, asked_ns: int
    ) -> None:
        self.session = session
        self.install = install
        self.asked_ns = asked_ns
        self.latest = first_place(applied)
        self._view = view
        self._applied = applied
        # By the key before it. All are kept, about a hundred bytes for a MiB sent: a question that comes late or
        # twice, or from a receiver whose disk went back a little, is answered like any other.
        self._places = {b"": self.latest}

    def renew(self, install: raft.InstallSnapshot) -> None:
        """The same state, with the current term and the current incarnations."""
        sent = self.install
        self.install = msgspec.structs.replace(
            install, index=sent.index, index_term=sent.index_term, membership=sent.membership
        )

    def offer(self) -> SnapshotOffer:
        return SnapshotOffer(self.session, self.install, self._applied)

    def piece(self, after: bytes) -> SnapshotPiece | None:
        """None: no piece ever ended there."""
        place = self._places.get(after)
        if place is None:
            return None
        records, is_last = self._read(after)
        self.latest = end = place.beyond(records, is_last)
        if not is_last:
            self._places[records[-1][0]] = end
        return SnapshotPiece(self.session, after, records, is_last, end.digest)

    def _read(self, after: bytes) -> tuple[list[Record], bool]:
        records: list[Record] = []
        size = 0
        for key, value in _state_after(self._view, after):
            if size >= PIECE_BYTES:
                return records, False
            records.append((key, value))
            size += len(key) + len(value)
        return records, True

    def close(self) -> None:
        self._view.close()


class StreamArrived(msgspec.Struct, array_like=True):
    """How far a state has come, as it is written beside its records."""

    sender: str
    session: int
    install: raft.InstallSnapshot
    applied: bytes
    after: bytes
    place: StreamPosition
    is_complete: bool = False


decode_arrived = msgspec.msgpack.Decoder(StreamArrived).decode


class Incoming:
    """A state on its way here, in a database of its own."""

    def __init__(self, disk: Disk, arrived: StreamArrived) -> None:
        self.disk = disk
        self.arrived = arrived

    def is_of(self, sender: str, session: int) -> bool:
        return self.arrived.sender == sender and self.arrived.session == session

    def yields_to(self, sender: str, offer: SnapshotOffer) -> bool:
        """To a later leader, or to a later stream of the same one. Sessions of a sender only grow."""
        term, arrived = offer.install.term, self.arrived
        is_later = sender == arrived.sender and offer.session > arrived.session
        return term > arrived.install.term or (term == arrived.install.term and is_later)

    def renew(self, install: raft.InstallSnapshot) -> None:
        """The leader offers the same state in a later term."""
        self.arrived.install = install
        self._write([])

    def take(self, piece: SnapshotPiece) -> bool:
        """Write it down. False: it is damaged."""
        arrived = self.arrived
        end = arrived.place.beyond(piece.records, piece.is_last)
        if end.digest != piece.digest or not (piece.records or piece.is_last):
            return False
        arrived.place, arrived.is_complete = end, piece.is_last
        if piece.records:
            arrived.after = piece.records[-1][0]
        self._write(piece.records)
        return True

    def _write(self, records: list[Record]) -> None:
        self.disk.write(dict(records), {keys.INCOMING: encode(self.arrived)})


def described(install: raft.InstallSnapshot, view: Frozen) -> tuple[raft.InstallSnapshot, bytes] | None:
    """The message and the marker for the state in the view; None if there is no state to send."""
    applied, members = view.get(keys.APPLIED), view.get(keys.MEMBERSHIP)
    if applied is None:
        return None
    # The one that the group was born with is in no entry, and so on no disk.
    membership = raft.Membership() if members is None else _decode_membership(members)
    if membership.config_id != install.membership.config_id:
        return None  # a change of members is applied but not on disk yet: in a moment it is
    membership = install.membership
    marker = decode_applied(applied)
    if not marker.index:
        return None
    message = msgspec.structs.replace(install, index=marker.index, index_term=marker.term, membership=membership)
    return message, applied


def _state_after(view: Frozen, key: bytes) -> Iterator[Record]:
    for start, stop in keys.state_ranges():
        if key < stop:
            yield from view.scan(max(start, keys.after(key)), stop)
