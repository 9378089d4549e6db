"""The entries of the log and the messages between replicas.

Every message carries the incarnations of its two ends (see `incarnations.py`) and the term of its sender. All
are frozen structs that msgspec turns into arrays; the tag numbers are part of the wire format and never reused.
None can be part of a reference cycle, so the garbage collector is not asked to look (`gc=False`).
To change a message: append fields with defaults (an old reader ignores them, a new reader fills them in);
anything else needs a new tag.

`must_be_exact` marks the messages that answer something or give an order: they are believed only by the very
incarnation they are addressed to. The others may be sent to a peer whose incarnation is not known yet, because
receiving them late is no worse than a slow network.
"""

from __future__ import annotations

import enum
from typing import ClassVar

import msgspec

from shards.raft.membership import Membership, is_consistent


class EntryKind(enum.IntEnum):
    NORMAL = 0  # payload belongs to the host
    NOOP = 1  # begins a leader's term, so that it can commit what it inherited (paper section 8)
    MEMBERSHIP = 2  # payload is an encoded Membership


class LogEntry(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A line of the log. The payload stays opaque bytes from socket to disk."""

    index: int
    term: int
    kind: EntryKind
    payload: bytes


class HardState(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a replica must remember across a crash, beside its log (paper figure 2)."""

    term: int = 0
    vote: str = ""  # the replica it voted for in that term; empty: none
    commit: int = 0  # advisory: saves work after a restart, safe to lose


class StatePoint(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The hash of the machine's state after applying the entry at `index`; index 0 means none is offered."""

    index: int = 0
    hash: bytes = b""


NO_POINT = StatePoint()


class Message(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The header that all messages share."""

    sender: str
    receiver: str
    sender_incarnation: int
    receiver_incarnation: int  # 0: not known to the sender
    term: int  # the sender's; in a PreVote and its grant, the term that the election would have

    must_be_exact: ClassVar[bool] = True
    from_leader: ClassVar[bool] = False  # only a leader of `term` can have sent it

    def is_well_formed(self) -> bool:
        """Whether the fields make sense by themselves; asked before any state is touched."""
        return self.term >= 0 and self.sender != self.receiver and self.sender_incarnation > 0


class Hello(Message, frozen=True, tag=1):
    """Makes the sender's incarnation known. Sent at start, and in answer to a message for another incarnation."""

    must_be_exact: ClassVar[bool] = False


class PreVote(Message, frozen=True, tag=2):
    """Would you vote for me in `term`? Promises nothing and changes no term (thesis 9.6)."""

    must_be_exact: ClassVar[bool] = False
    last_index: int
    last_term: int


class PreVoteReply(Message, frozen=True, tag=3):
    granted: bool


class Vote(Message, frozen=True, tag=4):
    """RequestVote (paper section 5.2)."""

    must_be_exact: ClassVar[bool] = False
    last_index: int
    last_term: int
    is_transfer: bool  # the leader of the former term asked for this election (thesis 3.10)


class VoteReply(Message, frozen=True, tag=5):
    granted: bool


class Append(Message, frozen=True, tag=6):
    """AppendEntries with entries or a commit index to tell (paper section 5.3)."""

    must_be_exact: ClassVar[bool] = False
    from_leader: ClassVar[bool] = True
    prev_index: int
    prev_term: int
    commit: int
    entries: list[LogEntry]

    def is_well_formed(self) -> bool:
        if not Message.is_well_formed(self) or self.term == 0 or self.prev_index < 0 or self.commit < 0:
            return False
        index, term = self.prev_index, self.prev_term
        for entry in self.entries:
            index += 1
            if entry.index != index or not term <= entry.term <= self.term:
                return False
            term = entry.term
        return True


class AppendReply(Message, frozen=True, tag=7):
    """Answers Append and InstallSnapshot. Leaves only when everything up to `index` is on the sender's disk."""

    index: int  # accepted: the sender's log equals the leader's up to here; rejected: the prev_index refused
    rejected: bool = False
    hint_index: int = 0  # rejected: the highest index at which the logs may still agree
    hint_term: int = 0  # rejected: the sender's term at hint_index
    point: StatePoint = NO_POINT

    def is_well_formed(self) -> bool:
        return Message.is_well_formed(self) and self.index >= 0 and self.hint_index >= 0 and self.hint_term >= 0


class LeaderHeartbeat(Message, frozen=True, tag=8):
    """Keeps followers quiet, and asks them to confirm read rounds. Small, so it may have its own channel."""

    must_be_exact: ClassVar[bool] = False
    from_leader: ClassVar[bool] = True
    commit: int  # never above what the receiver is known to hold
    round: int  # number of this broadcast within the term
    point: StatePoint = NO_POINT


class HeartbeatReply(Message, frozen=True, tag=9):
    round: int  # the one answered
    point: StatePoint = NO_POINT


class InstallSnapshot(Message, frozen=True, tag=10):
    """What a snapshot contains. The state itself travels beside it; the host hands this in when all has come."""

    must_be_exact: ClassVar[bool] = False
    from_leader: ClassVar[bool] = True
    index: int
    index_term: int
    membership: Membership

    def is_well_formed(self) -> bool:
        return (
            Message.is_well_formed(self)
            and 0 < self.index_term <= self.term
            and self.index > 0
            and is_consistent(self.membership)
            and self.membership.config_id <= self.index
        )


class TimeoutNow(Message, frozen=True, tag=11):
    """The leader asks its successor to campaign at once (thesis 3.10)."""


class ReadRequest(Message, frozen=True, tag=12):
    """A follower asks for a read index (thesis 6.4). `number` is fresh at every try of one incarnation."""

    number: int


class ReadReply(Message, frozen=True, tag=13):
    number: int
    index: int
    refused: bool = False


AnyMessage = (
    Hello
    | PreVote
    | PreVoteReply
    | Vote
    | VoteReply
    | Append
    | AppendReply
    | LeaderHeartbeat
    | HeartbeatReply
    | InstallSnapshot
    | TimeoutNow
    | ReadRequest
    | ReadReply
)

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[AnyMessage] = msgspec.msgpack.Decoder(AnyMessage)
_membership_decoder = msgspec.msgpack.Decoder(Membership)


def encode(message: AnyMessage) -> bytes:
    return _encoder.encode(message)


def decode(frame: bytes) -> AnyMessage:
    """Raises msgspec.DecodeError for anything that no version of this module can have sent."""
    return _decoder.decode(frame)


def encode_membership(membership: Membership) -> bytes:
    return _encoder.encode(membership)


def decode_membership(payload: bytes) -> Membership:
    return _membership_decoder.decode(payload)
