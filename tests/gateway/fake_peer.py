"""The other end of a link: a ROUTER socket that a test reads and answers by hand.

ZeroMQ's own threads move the bytes, so the peer lives in the test's event loop; what must happen is waited for, and
never longer than `PATIENCE_S`.
"""

import asyncio
import gc
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

import zmq

from corvo import wire
from corvo.wire import Call, Reply

PATIENCE_S = 5.0


@contextmanager
def short_dir() -> Iterator[str]:
    """The path of an ipc socket may have about a hundred characters: pytest's own directories are too deep."""
    path = tempfile.mkdtemp(prefix="cv", dir="/tmp")
    try:
        yield path
    finally:
        shutil.rmtree(path)


async def until(is_so: Callable[[], Any], patience_s: float = PATIENCE_S) -> None:
    end = monotonic() + patience_s
    while not is_so():
        assert monotonic() < end, "waited in vain"
        await asyncio.sleep(0.001)


class Peer:
    def __init__(self, address: str) -> None:
        self._context: zmq.Context[Any] = zmq.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.bind(address)
        self._peer = b""
        self.messages: list[list[Call]] = []

    def look(self) -> bool:
        """Take in what has arrived. Whether anything did."""
        before = len(self.messages)
        while self._socket.poll(0):
            self._peer, message = self._socket.recv_multipart()
            self.messages.append(wire.decode_calls(message))
        return len(self.messages) > before

    async def take(self) -> list[Call]:
        """The next message."""
        if not self.messages:
            await until(self.look)
        return self.messages.pop(0)

    def answer(self, *results: tuple[int, Any]) -> None:
        self.send(wire.encode_replies([wire.reply_to(call_id, result) for call_id, result in results]))

    def answer_raw(self, *replies: Reply) -> None:
        self.send(wire.encode_replies(list(replies)))

    def send(self, message: bytes) -> None:
        self._socket.send_multipart([self._peer, message])

    def die(self) -> None:
        self._socket.close(0)
        self._context.term()


def run(test: Coroutine[Any, Any, None]) -> None:
    """Runs to the end, within patience, and without anything that the loop had to report."""
    reported: list[Any] = []

    async def watched() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))
        async with asyncio.timeout(4 * PATIENCE_S):
            await test
        await asyncio.sleep(0.02)
        gc.collect()  # an exception that nobody looked at is reported when its future goes

    asyncio.run(watched())
    assert not reported, [(context["message"], context.get("exception")) for context in reported]
