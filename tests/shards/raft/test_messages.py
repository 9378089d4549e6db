"""The wire format, pinned, and what is refused before it is looked at."""

from __future__ import annotations

import msgspec
import pytest

from shards.raft.membership import Membership
from shards.raft.messages import (
    AnyMessage,
    Append,
    AppendReply,
    EntryKind,
    HeartbeatReply,
    Hello,
    InstallSnapshot,
    LeaderHeartbeat,
    LogEntry,
    PreVote,
    PreVoteReply,
    ReadReply,
    ReadRequest,
    StatePoint,
    TimeoutNow,
    Vote,
    VoteReply,
    decode,
    encode,
)

HEADER = ("a", "b", 3, 4, 7)
ONE = LogEntry(5, 7, EntryKind.NORMAL, b"\x00one")

PINNED: list[tuple[AnyMessage, str]] = [
    (Hello(*HEADER), "9601a161a162030407"),
    (PreVote(*HEADER, last_index=9, last_term=6), "9802a161a1620304070906"),
    (PreVoteReply(*HEADER, granted=True), "9703a161a162030407c3"),
    (Vote(*HEADER, last_index=9, last_term=6, is_transfer=False), "9904a161a1620304070906c2"),
    (VoteReply(*HEADER, granted=False), "9705a161a162030407c2"),
    (
        Append(*HEADER, prev_index=4, prev_term=6, commit=2, entries=[ONE]),
        "9a06a161a162030407040602919405070" + "0c404006f6e65",
    ),
    (AppendReply(*HEADER, index=5), "9b07a161a16203040705c200009200c400"),
    (LeaderHeartbeat(*HEADER, commit=2, round=8, point=StatePoint(2, b"h")), "9908a161a16203040702089202c40168"),
    (HeartbeatReply(*HEADER, round=8), "9809a161a162030407089200c400"),
    (
        InstallSnapshot(*HEADER, index=9, index_term=6, membership=Membership(3, ("a",))),
        "990aa161a16203040709069503" + "91a161909090",
    ),
    (TimeoutNow(*HEADER), "960ba161a162030407"),
    (ReadRequest(*HEADER, number=1), "970ca161a16203040701"),
    (ReadReply(*HEADER, number=1, index=5), "990da161a1620304070105c2"),
]


@pytest.mark.parametrize(("message", "frame"), PINNED, ids=lambda value: type(value).__name__)
def test_a_message_has_these_bytes_and_no_others(message: AnyMessage, frame: str) -> None:
    assert encode(message).hex() == frame
    assert decode(bytes.fromhex(frame)) == message


def test_every_message_is_pinned_under_its_own_tag() -> None:
    assert {type(message) for message, _ in PINNED} == set(AnyMessage.__args__)
    assert len({frame[2:4] for _, frame in PINNED}) == len(PINNED)


@pytest.mark.parametrize("frame", [b"", b"\x00", b"\x96\x63", b"\x96\x01\xa1a\xa1b\x03\x04\xa1x"])
def test_what_nobody_can_have_sent_is_not_decoded(frame: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode(frame)


@pytest.mark.parametrize(
    "message",
    [
        Hello("a", "a", 3, 4, 7),
        Hello("a", "b", 0, 4, 7),
        Hello("a", "b", 3, 4, -1),
        Append(*HEADER, prev_index=-1, prev_term=6, commit=2, entries=[]),
        Append(*HEADER, prev_index=3, prev_term=6, commit=2, entries=[ONE]),
        Append(*HEADER, prev_index=4, prev_term=6, commit=2, entries=[ONE, ONE]),
        Append(*HEADER, prev_index=4, prev_term=6, commit=2, entries=[LogEntry(5, 8, EntryKind.NORMAL, b"")]),
        Append(*HEADER, prev_index=4, prev_term=6, commit=2, entries=[LogEntry(5, 5, EntryKind.NORMAL, b"")]),
        AppendReply(*HEADER, index=-1),
        InstallSnapshot(*HEADER, index=0, index_term=6, membership=Membership()),
        InstallSnapshot(*HEADER, index=9, index_term=8, membership=Membership()),
        InstallSnapshot(*HEADER, index=9, index_term=6, membership=Membership(3, ("a",), (), ("a",))),
        InstallSnapshot(*HEADER, index=9, index_term=6, membership=Membership(10, ("a",))),
    ],
    ids=str,
)
def test_a_message_that_contradicts_itself_is_malformed(message: AnyMessage) -> None:
    assert not message.is_well_formed()
