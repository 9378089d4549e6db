"""What replicas of one shard say to each other: Raft's messages, calls passed on to the leader and back, snapshots.

Each frame names cluster, shard and version, because an address can be given to the wrong node: a frame of another
cluster, shard count or version is refused and counted, never understood half-way. Tags are for ever.
"""

from typing import NamedTuple

import msgspec

from corvo.wire import Call
from shards import raft

VERSION = 1


class Consensus(msgspec.Struct, array_like=True, frozen=True, tag=1):
    message: bytes  # one of `shards.raft`'s


class PassedOn(msgspec.Struct, array_like=True, frozen=True, tag=2):
    """Calls that reached a follower, for the leader. `peer` is who asked the follower."""

    peer: bytes
    calls: list[Call]


class PassedBack(msgspec.Struct, array_like=True, frozen=True, tag=3):
    peer: bytes
    frame: bytes  # replies, as `corvo.wire` encodes them


class SnapshotOffer(msgspec.Struct, array_like=True, frozen=True, tag=4):
    """A stream begins: what it will hold. The receiver asks for the pieces."""

    session: int
    install: bytes  # Raft's message, to be stepped when all pieces are there
    applied: bytes  # the marker that belongs to the state


class SnapshotWant(msgspec.Struct, array_like=True, frozen=True, tag=5):
    """The next piece, please: the one after this key. Empty: the first."""

    session: int
    after: bytes


class SnapshotPiece(msgspec.Struct, array_like=True, frozen=True, tag=6):
    session: int
    after: bytes  # the key that was asked for: a piece that comes twice is written once
    records: list[tuple[bytes, bytes]]
    checksum: int
    is_last: bool
    total: int  # records of the whole stream, with the last piece
    digest: bytes  # of the whole stream, with the last piece


class SnapshotEnded(msgspec.Struct, array_like=True, frozen=True, tag=7):
    """The receiver has everything, or gives up."""

    session: int
    ok: bool


Letter = Consensus | PassedOn | PassedBack | SnapshotOffer | SnapshotWant | SnapshotPiece | SnapshotEnded


class Posted(NamedTuple):
    """A letter and the replica it goes to or came from."""

    node: str
    letter: Letter


class Envelope(msgspec.Struct, array_like=True, frozen=True):
    version: int
    group: str  # cluster id, shard and shard count: what the two ends must share
    sender: str
    letter: Letter


class Misaddressed(ValueError):
    """The frame is not for us, or not from a replica of ours."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Envelope).decode


def seal(group: str, sender: str, letter: Letter) -> bytes:
    return _encode(Envelope(VERSION, group, sender, letter))


def unseal(group: str, frame: bytes) -> Posted:
    try:
        envelope = _decode(frame)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise Misaddressed(f"not a letter: {error}") from None
    if envelope.version != VERSION:
        raise Misaddressed(f"{envelope.sender} speaks version {envelope.version} between nodes, this node {VERSION}")
    if envelope.group != group:
        raise Misaddressed(f"{envelope.sender} belongs to {envelope.group}, this replica to {group}")
    return Posted(envelope.sender, envelope.letter)


def consensus(message: raft.AnyMessage) -> Posted:
    return Posted(message.receiver, Consensus(raft.encode(message)))
