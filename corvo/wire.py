"""What travels between gateway, mirror and shard over ZeroMQ, and what stands in a Raft entry.

A message is everything that waited in one turn of the sender's loop: many calls in one frame, many replies in one
frame. Operations travel as bytes inside the calls, so that a shard copies them into its log without encoding them
again. ZeroMQ may lose any message: each call has an id and a deadline, and no reply means "unknown", never "done".

To change a format: raise VERSION; a receiver refuses what it does not know. Fields are added last, with defaults.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import msgspec

from corvo.endpoint import Operation, Query
from corvo.model.errors import Corrupt, Refused
from corvo.ops import OPERATIONS, AnyOperation, decode_operation
from corvo.queries import QUERIES, AnyQuery

T = TypeVar("T")
VERSION = 1
_UNSIGNED_BYTES = {0xCC: 1, 0xCD: 2, 0xCE: 4}  # msgpack's heads of unsigned integers

encode = msgspec.msgpack.Encoder().encode
decode_ask = msgspec.msgpack.Decoder(AnyOperation | AnyQuery).decode
_ASKS: tuple[type[Operation] | type[Query], ...] = (*OPERATIONS, *QUERIES)
_RESULT_DECODERS = {ask: msgspec.msgpack.Decoder(ask.result).decode for ask in _ASKS}


class Call(NamedTuple):
    id: int
    deadline_ms: int  # from now; past it nobody waits for the reply
    ask: bytes  # an operation or a query; empty: forget the call with this id


class Reply(NamedTuple):
    id: int
    is_refused: bool
    result: bytes


class Calls(msgspec.Struct, array_like=True, frozen=True):
    version: int
    calls: list[Call]


class Replies(msgspec.Struct, array_like=True, frozen=True):
    version: int
    replies: list[Reply]


class Entry(msgspec.Struct, array_like=True, frozen=True):
    """The payload of one Raft entry: the leader's clock and everything that waited in its turn."""

    now: int
    operations: list[bytes]


_decode_calls = msgspec.msgpack.Decoder(Calls).decode
_decode_replies = msgspec.msgpack.Decoder(Replies).decode
decode_entry = msgspec.msgpack.Decoder(Entry).decode
_decode_refused = msgspec.msgpack.Decoder(Refused).decode


def encode_calls(calls: list[Call]) -> bytes:
    return encode(Calls(VERSION, calls))


def decode_calls(message: bytes) -> list[Call]:
    """ValueError when the bytes are no message of ours: the sender is dropped, not believed."""
    calls: Calls = _decode(_decode_calls, message)
    if calls.version != VERSION:
        raise ValueError(f"wire version {calls.version}, this process speaks {VERSION}")
    return calls.calls


def encode_replies(replies: list[Reply]) -> bytes:
    return encode(Replies(VERSION, replies))


def decode_replies(message: bytes) -> list[Reply]:
    replies: Replies = _decode(_decode_replies, message)
    if replies.version != VERSION:
        raise ValueError(f"wire version {replies.version}, this process speaks {VERSION}")
    return replies.replies


def decode_result(ask: type[Operation] | type[Query], reply: Reply) -> Any:
    """The result as the ask's type, or the refusal raised."""
    if reply.is_refused:
        raise _decode_refused(reply.result).to_refusal()
    return _RESULT_DECODERS[ask](reply.result)


def reply_to(call_id: int, result: Any) -> Reply:
    return Reply(call_id, isinstance(result, Refused), encode(result))


def tag_of(ask: bytes) -> int:
    """The number of an operation or query, without decoding the rest of it; -1 for what is neither."""
    head = 3 if ask[:1] == b"\xdc" else 1  # arrays of up to 15 fields have a head of one byte
    first = ask[head] if len(ask) > head else 0xFF
    if first < 0x80:
        return first
    size = _UNSIGNED_BYTES.get(first, 0)
    return int.from_bytes(ask[head + 1 : head + 1 + size]) if size else -1


def operations_of(payload: bytes) -> tuple[int, list[Operation]]:
    """The clock and the operations of an entry. An operation that this version does not know stops the replica:
    a replica that skipped it would diverge."""
    try:
        entry = decode_entry(payload)
        return entry.now, [decode_operation(raw) for raw in entry.operations]
    except msgspec.MsgspecError as error:
        raise Corrupt(f"an entry of the log cannot be read: {error}") from error


def pieces(items: list[T], size_of: Callable[[T], int], bytes_max: int, count_max: int = 2**62) -> Iterator[list[T]]:
    """All in one, unless that would be larger than a message should be; in their order."""
    size = first = 0
    for number, item in enumerate(items):
        size += size_of(item)
        if (size > bytes_max or number - first >= count_max) and number > first:
            yield items[first:number]
            first, size = number, size_of(item)
    yield items[first:] if first else items


def _decode(decoder: Any, message: bytes) -> Any:
    try:
        return decoder(message)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, OverflowError) as error:
        raise ValueError(f"not a message: {error}") from None
