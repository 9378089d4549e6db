"""What replicas of one shard send to each other: Raft's messages, forwarded calls, snapshots, introductions.

Each message travels in an envelope that names cluster, shard and version, because an address can point to the wrong
node: a message of another group or version is refused and counted. Tags never change.
"""

from typing import NamedTuple

import msgspec

from corvo.wire import UNREADABLE, Call, Reply
from shards import raft
from shards.snapshots.messages import SnapshotEnded, SnapshotOffer, SnapshotPiece, SnapshotWant

VERSION = 1


class RaftMessage(msgspec.Struct, array_like=True, frozen=True, tag=1):
    message: raft.AnyMessage


class ForwardedCalls(msgspec.Struct, array_like=True, frozen=True, tag=2):
    """Calls for the receiver that reached the sender. `peer` is the sender's caller."""

    peer: bytes
    calls: list[Call]


class ForwardedReplies(msgspec.Struct, array_like=True, frozen=True, tag=3):
    peer: bytes
    replies: list[Reply]


class Announcement(msgspec.Struct, array_like=True, frozen=True, tag=8):
    """To the leader: this is where the sender is reached."""

    address: str
    is_empty: bool  # it holds nothing and remembers no vote: it asks to become a member, even if it was one


class Introduction(msgspec.Struct, array_like=True, frozen=True, tag=9):
    """Of a node that has no data yet, before it knows a group: asked of shard 0 alone, answered by a `Welcome`."""

    node_id: str
    address: str
    shards: int


class Welcome(msgspec.Struct, array_like=True, frozen=True, tag=10):
    """The answer to an introduction. `cluster_id` is empty while the node has no data itself."""

    node_id: str
    address: str
    shards: int
    cluster_id: str = ""
    founders: tuple[str, ...] = ()
    nodes: dict[str, str] = {}  # addresses of all nodes by name
    knows_you: bool = False  # a node of this name has been a member: it must not start with empty data


class RepliesMayBeLost(msgspec.Struct, array_like=True, frozen=True, tag=11):
    """Answers to calls that the receiver forwarded to the sender may be lost; calls that waited there are forgotten."""


MessageBody = (
    RaftMessage
    | ForwardedCalls
    | ForwardedReplies
    | SnapshotOffer
    | SnapshotWant
    | SnapshotPiece
    | SnapshotEnded
    | Announcement
    | Introduction
    | Welcome
    | RepliesMayBeLost
)


class PeerMessage(NamedTuple):
    """A message and the node it goes to or came from."""

    node: str
    body: MessageBody


class Envelope(msgspec.Struct, array_like=True, frozen=True):
    version: int
    group: str  # cluster id, shard and shard count: what the two ends must share; empty in introductions
    sender: str
    body: MessageBody


class Misaddressed(ValueError):
    """The frame is not for us, or not from a replica of ours."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Envelope).decode


def group_of(cluster_id: str, shard: int, shards: int) -> str:
    return f"{cluster_id}/{shard}/{shards}"


def seal(group: str, sender: str, body: MessageBody) -> bytes:
    return _encode(Envelope(VERSION, group, sender, body))


def unseal(group: str, frame: bytes) -> PeerMessage:
    try:
        envelope = _decode(frame)
    except UNREADABLE as error:
        raise Misaddressed(f"not a message: {error}") from None
    if envelope.version != VERSION:
        raise Misaddressed(f"{envelope.sender} speaks version {envelope.version} between nodes, this node {VERSION}")
    if envelope.group != group and not isinstance(envelope.body, Introduction | Welcome):
        raise Misaddressed(f"{envelope.sender} belongs to {envelope.group}, this replica to {group}")
    return PeerMessage(envelope.sender, envelope.body)
