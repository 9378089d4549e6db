"""The callers of one replica: gateways, the mirror and couriers of the same node, over one socket.

A reply that cannot be delivered is dropped: the caller has a deadline and asks again.
"""

from typing import Any, Protocol

import structlog
import zmq

from corvo.model.limits import MESSAGE_BYTES_MAX
from corvo.wire import Call, Reply, decode_calls, encode_replies

MESSAGES_PER_TURN = 256
HIGH_WATER_MARK = 20_000
# zmq's own are enums, whose `&` and `|` make an object each time.
_READABLE = int(zmq.POLLIN)
_MORE = int(zmq.NOBLOCK | zmq.SNDMORE)

Arrived = list[tuple[bytes, list[Call]]]  # peer and calls, a message each
Replies = list[tuple[bytes, list[Reply]]]

log = structlog.get_logger()


class Callers(Protocol):
    def receive(self) -> Arrived:
        """What has arrived, at most `MESSAGES_PER_TURN`."""

    def send(self, replies: Replies) -> list[bytes]:
        """The peers that could not be reached."""

    def is_there(self, peer: bytes) -> bool:
        """Whether a peer can still be answered."""


class CallSocket:
    def __init__(self, address: str) -> None:
        self._address = address
        # A context of its own: a name that cannot be resolved stalls all sockets of the context that connects to it.
        self._context: zmq.Context[Any] = zmq.Context()
        self.socket = router = self._context.socket(zmq.ROUTER)
        router.set_hwm(HIGH_WATER_MARK)
        router.setsockopt(zmq.LINGER, 0)
        router.setsockopt(zmq.ROUTER_MANDATORY, 1)  # else a reply to a peer that is gone vanishes without an error
        router.setsockopt(zmq.MAXMSGSIZE, MESSAGE_BYTES_MAX)
        router.setsockopt(zmq.HEARTBEAT_IVL, 1_000)
        router.setsockopt(zmq.HEARTBEAT_TIMEOUT, 3_000)
        router.setsockopt(zmq.HEARTBEAT_TTL, 3_000)

    def listen(self) -> None:
        """Once the replica can serve: before, callers wait and connect again."""
        self.socket.bind(self._address)

    def receive(self) -> Arrived:
        arrived: Arrived = []
        router: Any = self.socket
        for _ in range(MESSAGES_PER_TURN):
            # Asked first: to try, and be told `zmq.Again`, costs as much as a message.
            if not router.getsockopt(zmq.EVENTS) & _READABLE:
                break
            try:
                peer, message = router.recv_multipart(zmq.NOBLOCK)
                arrived.append((peer, decode_calls(message)))
            except zmq.Again:
                break
            except ValueError as error:
                log.warning("message refused", reason=str(error))
        return arrived

    def send(self, replies: Replies) -> list[bytes]:
        gone: list[bytes] = []
        for peer, some in replies:
            try:
                self.socket.send(peer, _MORE)
                self.socket.send(encode_replies(some), zmq.NOBLOCK)
            except zmq.ZMQError as error:
                if error.errno not in (zmq.EHOSTUNREACH, zmq.EAGAIN):
                    raise
                gone.append(peer)
        return gone

    def is_there(self, peer: bytes) -> bool:
        """Found out by sending it nothing: the socket knows which peers have hung up."""
        try:
            self.socket.send_multipart((peer, b""), zmq.NOBLOCK)
        except zmq.ZMQError as error:
            return error.errno != zmq.EHOSTUNREACH
        return True

    def close(self) -> None:
        self.socket.close(0)
        self._context.term()
