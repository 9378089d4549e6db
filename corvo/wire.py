"""Messages between gateway, mirror and shard over ZeroMQ, and the payload of a Raft entry.

One message holds everything that waited in one turn of the sender's loop: many calls, or many replies. Calls carry
operations as bytes, which the shard copies into its log without encoding them again. ZeroMQ may lose any message: each
call has an id and a deadline, and no reply means "unknown", never "done".

To change a format: add fields last, with defaults, or raise VERSION; a receiver refuses an unknown version.
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
# What msgspec raises for bytes that are not of the type: its own errors, and three others that pass through it.
UNREADABLE = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, OverflowError)
_UNSIGNED_BYTES = {0xCC: 1, 0xCD: 2, 0xCE: 4}  # msgpack's first bytes of unsigned integers

encode = msgspec.msgpack.Encoder().encode
_decode_ask = msgspec.msgpack.Decoder(AnyOperation | AnyQuery).decode
_ASKS: tuple[type[Operation] | type[Query], ...] = (*OPERATIONS, *QUERIES)
_RESULT_DECODERS = {ask: msgspec.msgpack.Decoder(ask.result).decode for ask in _ASKS}


class Call(NamedTuple):
    id: int
    deadline_ms: int  # from now; after it the caller has stopped waiting
    ask: bytes  # an operation or a query; empty: cancel the call with this id


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
    """The payload of one Raft entry: the leader's clock and all operations of its turn."""

    now: int
    operations: list[bytes]


_decode_calls = msgspec.msgpack.Decoder(Calls).decode
_decode_replies = msgspec.msgpack.Decoder(Replies).decode
decode_entry = msgspec.msgpack.Decoder(Entry).decode
_decode_refused = msgspec.msgpack.Decoder(Refused).decode


def encode_calls(calls: list[Call]) -> bytes:
    return encode(Calls(VERSION, calls))


def decode_calls(message: bytes) -> list[Call]:
    """ValueError when the bytes are not one of our messages; the caller then drops the sender."""
    calls: Calls = _decode(_decode_calls, message)
    if calls.version != VERSION:
        raise ValueError(f"wire version {calls.version}, this process speaks {VERSION}")
    return calls.calls


def encode_replies(replies: list[Reply]) -> bytes:
    return encode(Replies(VERSION, replies))


def decode_ask(raw: bytes) -> Any:
    """An operation or a query. ValueError when the bytes are neither."""
    return _decode(_decode_ask, raw)


def decode_replies(message: bytes) -> list[Reply]:
    replies: Replies = _decode(_decode_replies, message)
    if replies.version != VERSION:
        raise ValueError(f"wire version {replies.version}, this process speaks {VERSION}")
    return replies.replies


def decode_result(ask: type[Operation] | type[Query], reply: Reply) -> Any:
    """The result, decoded as the ask's type. Raises the refusal if it was refused, ValueError if it is neither."""
    if reply.is_refused:
        raise _decode(_decode_refused, reply.result).to_refusal()
    return _decode(_RESULT_DECODERS[ask], reply.result)


def reply_to(call_id: int, result: Any) -> Reply:
    return Reply(call_id, isinstance(result, Refused), encode(result))


def tag_of(ask: bytes) -> int:
    """The number of an operation or query, without decoding the rest; -1 for anything else."""
    head = 3 if ask[:1] == b"\xdc" else 1  # arrays of up to 15 fields begin with one byte
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
    except UNREADABLE as error:
        raise Corrupt(f"an entry of the log cannot be read: {error}") from error


def pieces(items: list[T], size_of: Callable[[T], int], bytes_max: int, count_max: int = 2**62) -> Iterator[list[T]]:
    """The items in order, in as few pieces of at most `bytes_max` as possible."""
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
    except UNREADABLE as error:
        raise ValueError(f"not a message: {error}") from None
