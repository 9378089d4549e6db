"""The courier's sockets: one to every other shard of the node.

What cannot be sent, or gets lost, is sent again by the courier after a time-out. A socket is polled only while an
answer is awaited on it: polling all of them would cost every turn of a shard that has no errands.
"""

from typing import Any, Protocol

import structlog
import zmq

from corvo.model.limits import MESSAGE_BYTES_MAX
from corvo.wire import decode_replies, encode_calls
from shards.courier.deliveries import Courier

MESSAGES_MAX = 100

log = structlog.get_logger()


class Deliverer(Protocol):
    def come_back(self, courier: Courier, now_ns: int) -> None:
        """Give the courier the answers that arrived."""

    def go(self, courier: Courier, now_ns: int) -> None:
        """Send what the courier has to deliver."""


class NoDeliverer:
    """Of a shard that is the only one of its node."""

    def come_back(self, courier: Courier, now_ns: int) -> None:
        pass

    def go(self, courier: Courier, now_ns: int) -> None:
        pass


class CourierSockets:
    def __init__(self, context: zmq.Context[Any], addresses: dict[int, str], poller: zmq.Poller) -> None:
        """`poller` is what the shard's loop sleeps on: it wakes when an answer arrives."""
        self._sockets: dict[int, zmq.Socket[bytes]] = {}
        self._watched: set[int] = set()
        self._poller = poller
        for shard, address in addresses.items():
            self._sockets[shard] = socket = context.socket(zmq.DEALER)
            socket.set_hwm(MESSAGES_MAX)
            socket.setsockopt(zmq.LINGER, 0)
            socket.setsockopt(zmq.IMMEDIATE, 1)  # a shard that is down gets it when it is back, from the outbox
            socket.setsockopt(zmq.MAXMSGSIZE, MESSAGE_BYTES_MAX)
            socket.setsockopt(zmq.RECONNECT_IVL, 20)
            socket.setsockopt(zmq.RECONNECT_IVL_MAX, 200)
            socket.connect(address)

    def sockets(self) -> list[zmq.Socket[bytes]]:
        return list(self._sockets.values())

    def go(self, courier: Courier, now_ns: int) -> None:
        for target, call in courier.set_out(now_ns):
            try:
                self._sockets[target].send(encode_calls([call]), zmq.NOBLOCK)
            except zmq.Again:
                courier.turn_back(target, now_ns)
                continue
            if target not in self._watched:
                self._watched.add(target)
                self._poller.register(self._sockets[target], zmq.POLLIN)

    def come_back(self, courier: Courier, now_ns: int) -> None:
        for shard in sorted(self._watched):
            self._receive(shard, courier, now_ns)
            if not courier.awaits(shard):  # a late answer stays there until the socket is used again
                self._watched.discard(shard)
                self._poller.unregister(self._sockets[shard])

    def _receive(self, shard: int, courier: Courier, now_ns: int) -> None:
        socket = self._sockets[shard]
        while True:
            try:
                message = socket.recv(zmq.NOBLOCK)
                for reply in decode_replies(message) if message else ():
                    courier.come_back(shard, reply, now_ns)
            except zmq.Again:
                return
            except ValueError as error:
                log.warning("answer of a shard refused", shard=shard, reason=str(error))

    def close(self) -> None:
        for socket in self._sockets.values():
            socket.close(0)
