"""Letters: what is sealed is unsealed, and nothing else is."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.wire import Reply
from shards import raft
from shards.group import messages
from shards.group.messages import (
    Announcement,
    ForwardedCalls,
    ForwardedReplies,
    Introduction,
    MessageBody,
    Misaddressed,
    PeerMessage,
    RaftMessage,
    RepliesMayBeLost,
    Welcome,
    group_of,
    seal,
    unseal,
)
from shards.raft.messages import LeaderHeartbeat
from shards.snapshots.messages import SnapshotEnded, SnapshotOffer, SnapshotPiece, SnapshotWant

GROUP = group_of("c1", 2, 4)
HEARTBEAT = LeaderHeartbeat("a", "b", 1, 2, 3, commit=9, round=4)
INSTALL = raft.InstallSnapshot("a", "b", 1, 2, 3, index=9, index_term=2, membership=raft.Membership(1, ("a", "b")))
EVERY_KIND: list[MessageBody] = [
    RaftMessage(HEARTBEAT),
    ForwardedCalls(b"peer", []),
    ForwardedReplies(b"peer", [Reply(7, False, b"result")]),
    SnapshotOffer(1, INSTALL, b"marker"),
    SnapshotWant(1, b"key"),
    SnapshotPiece(1, b"key", [(b"key", b"value")], True, b"digest"),
    SnapshotEnded(1, True),
    Announcement("host:9400", True),
    Introduction("a", "host:9400", 4),
    Welcome("a", "host:9400", 4, "c1", ("a", "b"), {"a": "host:9400"}, True),
    RepliesMayBeLost(),
]


def test_every_kind_of_letter_is_tried_here() -> None:
    assert {type(body) for body in EVERY_KIND} == set(MessageBody.__args__)


@pytest.mark.parametrize("body", EVERY_KIND, ids=lambda body: type(body).__name__)
def test_what_is_sealed_is_unsealed(body: MessageBody) -> None:
    assert unseal(GROUP, seal(GROUP, "node-1", body)) == PeerMessage("node-1", body)


@pytest.mark.parametrize("other", [group_of("c2", 2, 4), group_of("c1", 3, 4), group_of("c1", 2, 8), ""])
def test_a_letter_of_another_group_is_refused(other: str) -> None:
    with pytest.raises(Misaddressed, match="node-1 belongs to"):
        unseal(GROUP, seal(other, "node-1", RaftMessage(HEARTBEAT)))


@pytest.mark.parametrize(
    "body",
    [body for body in EVERY_KIND if isinstance(body, Introduction | Welcome)],
    ids=lambda body: type(body).__name__,
)
def test_introductions_know_no_group(body: MessageBody) -> None:
    assert unseal(GROUP, seal("", "node-1", body)).body == body


def test_a_letter_of_another_version_is_refused() -> None:
    frame = msgspec.msgpack.encode(messages.Envelope(messages.VERSION + 1, GROUP, "node-1", SnapshotWant(1, b"")))
    with pytest.raises(Misaddressed, match="version"):
        unseal(GROUP, frame)


@given(st.binary())
def test_noise_is_refused_and_nothing_worse(frame: bytes) -> None:
    with pytest.raises(Misaddressed):
        unseal(GROUP, frame)


@given(st.data())
def test_a_letter_cut_short_is_refused(data: st.DataObject) -> None:
    frame = seal(GROUP, "node-1", data.draw(st.sampled_from(EVERY_KIND)))
    with pytest.raises(Misaddressed):
        unseal(GROUP, frame[: data.draw(st.integers(0, len(frame) - 1))])


def test_tags_are_for_ever() -> None:
    assert {kind.__name__: kind.__struct_config__.tag for kind in MessageBody.__args__} == {
        "RaftMessage": 1,
        "ForwardedCalls": 2,
        "ForwardedReplies": 3,
        "SnapshotOffer": 4,
        "SnapshotWant": 5,
        "SnapshotPiece": 6,
        "SnapshotEnded": 7,
        "Announcement": 8,
        "Introduction": 9,
        "Welcome": 10,
        "RepliesMayBeLost": 11,
    }
