"""The socket of a replica, without a replica."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq

from corvo.wire import Call, Reply, decode_replies, encode_calls
from shards.intake.callers import CallSocket
from tests.shards.rig import a_directory

WAIT_MS = 10_000


@pytest.fixture
def folder() -> Iterator[Path]:
    with a_directory() as path:
        yield path


@pytest.fixture
def callers(folder: Path) -> Iterator[CallSocket]:
    callers = CallSocket(f"ipc://{folder}/0.ipc")
    yield callers
    callers.close()


@pytest.fixture
def context() -> "Iterator[zmq.Context[Any]]":
    context: zmq.Context[Any] = zmq.Context()
    yield context
    context.destroy(linger=0)


def test_a_caller_is_there_until_it_hangs_up_and_what_it_is_sent_then_is_told_lost(
    folder: Path, callers: CallSocket, context: "zmq.Context[Any]"
) -> None:
    callers.listen()
    caller = context.socket(zmq.DEALER)
    caller.connect(f"ipc://{folder}/0.ipc")
    caller.send(encode_calls([Call(1, 1_000, b"ask")]))
    assert callers.socket.poll(WAIT_MS)

    [(peer, calls)] = callers.receive()
    assert calls == [Call(1, 1_000, b"ask")] and callers.receive() == []
    assert callers.is_there(peer)
    assert caller.poll(WAIT_MS) and caller.recv() == b"", "found out by sending it nothing"
    assert callers.send([(peer, [Reply(1, False, b"answer")])]) == []
    assert caller.poll(WAIT_MS) and decode_replies(caller.recv()) == [Reply(1, False, b"answer")]

    caller.close(0)
    for _ in range(WAIT_MS):
        if not callers.is_there(peer):
            break
        callers.socket.poll(1)
    assert callers.send([(peer, [Reply(2, False, b"late")])]) == [peer]


def test_bytes_that_are_no_message_hide_none_of_those_behind_them(
    folder: Path, callers: CallSocket, context: "zmq.Context[Any]"
) -> None:
    callers.listen()
    caller = context.socket(zmq.DEALER)
    caller.connect(f"ipc://{folder}/0.ipc")
    caller.send(b"noise")
    caller.send_multipart([b"one part", b"too many"])
    caller.send(encode_calls([Call(1, 1_000, b"ask")]))

    calls: list[Call] = []
    for _ in range(WAIT_MS):
        calls += [call for _, some in callers.receive() for call in some]
        if calls:
            break
        callers.socket.poll(1)
    assert calls == [Call(1, 1_000, b"ask")]
