"""MessagePack between processes and nodes. Bytes that are no message are refused with the one error that the receiver
expects: any other would end its loop, and with it the shard."""

from corvo import wire
from corvo.endpoint import Operation, Query
from corvo.model.errors import Corrupt, Refusal
from corvo.ops.jobs.enqueue import Enqueue
from shards import raft
from shards.group.messages import (
    Announcement,
    ForwardedCalls,
    Introduction,
    Misaddressed,
    RaftMessage,
    group_of,
    seal,
    unseal,
)
from tests.support.builders import ack, enqueue, fetch, heartbeat

GROUP = group_of("c", 0, 4)
_DEEP = b"\x91" * 3_000 + b"\x90"


def beginnings() -> list[bytes]:
    asks = [enqueue(1), ack(1), fetch("mail"), heartbeat(1)]
    calls = [wire.Call(number, 1_000, wire.encode(ask)) for number, ask in enumerate(asks)]
    vote = raft.Vote("node-2", "node-1", 1, 0, 3, 7, 2, False)
    bodies = [
        RaftMessage(vote),
        Announcement("a:1", False),
        Introduction("node-4", "a:1", 4),
        ForwardedCalls(b"p", calls),
    ]
    return [
        b"c" + wire.encode_calls(calls),
        b"r" + wire.encode_replies([wire.Reply(1, False, wire.encode([]))]),
        b"e" + wire.encode(wire.Entry(1, [wire.encode(ask) for ask in asks])),
        *(b"a" + wire.encode(ask) for ask in asks),
        *(b"g" + seal(GROUP, "node-2", body) for body in bodies),
        b"g" + seal("other/0/4", "node-2", bodies[0]),
        b"g" + seal(GROUP, "node-2", bodies[0])[:-1] + _DEEP,
        b"c" + _DEEP,
        b"a\x93\x01\x90" + _DEEP,
    ]


def play(data: bytes) -> None:
    kind, message = data[:1], data[1:]
    if kind == b"c":
        _calls(message)
    elif kind == b"r":
        _replies(message)
    elif kind == b"e":
        _entry(message)
    elif kind == b"g":
        _envelope(message)
    else:
        _ask(message)


def _calls(message: bytes) -> None:
    try:
        calls = wire.decode_calls(message)
    except ValueError:
        return
    for call in calls:
        _ask(call.ask)
    assert wire.decode_calls(wire.encode_calls(calls)) == calls


def _ask(raw: bytes) -> None:
    try:
        ask = wire.decode_ask(raw)
    except ValueError:
        return
    assert isinstance(ask, Operation | Query)
    assert wire.decode_ask(wire.encode(ask)) == ask


def _replies(message: bytes) -> None:
    try:
        replies = wire.decode_replies(message)
    except ValueError:
        return
    assert wire.decode_replies(wire.encode_replies(replies)) == replies
    for reply in replies:
        try:
            wire.decode_result(Enqueue, reply)
        except Exception as error:  # either is handled by its caller: a refusal, or a reply that cannot be read
            assert isinstance(error, ValueError | Refusal), error


def _entry(payload: bytes) -> None:
    try:
        wire.operations_of(payload)
    except Corrupt:
        return


def _envelope(frame: bytes) -> None:
    try:
        found = unseal(GROUP, frame)
    except Misaddressed:
        return
    assert unseal(GROUP, seal(GROUP, found.node, found.body)) == found
