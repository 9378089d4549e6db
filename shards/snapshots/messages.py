"""What the two ends of a snapshot stream say to each other. `group/messages.py` carries them."""

import msgspec

from shards import raft


class SnapshotOffer(msgspec.Struct, array_like=True, frozen=True, tag=4):
    """A stream begins: what it will hold. The receiver asks for the pieces."""

    session: int
    install: raft.InstallSnapshot  # to be stepped when all pieces are there
    applied: bytes  # the marker that belongs to the state


class SnapshotWant(msgspec.Struct, array_like=True, frozen=True, tag=5):
    """Asks for the piece after this key. Empty: the first."""

    session: int
    after: bytes


class SnapshotPiece(msgspec.Struct, array_like=True, frozen=True, tag=6):
    session: int
    after: bytes  # the key that was asked for: a piece that comes twice is written once
    records: list[tuple[bytes, bytes]]
    is_last: bool
    digest: bytes  # of everything up to and with this piece


class SnapshotEnded(msgspec.Struct, array_like=True, frozen=True, tag=7):
    """The receiver has everything, or gives up."""

    session: int
    ok: bool


SnapshotMessage = SnapshotOffer | SnapshotWant | SnapshotPiece | SnapshotEnded
