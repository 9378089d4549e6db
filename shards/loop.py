"""The shard's loop: the only place that polls a socket and sleeps.

Drains everything that has arrived, gives it to the replica in one turn, sends what comes back. Messages that cannot
be delivered are dropped: the caller has a deadline and asks again.
"""

import signal
from types import FrameType

import structlog
import zmq

from corvo.limits import MESSAGE_BYTES_MAX
from corvo.wire import Call, decode_calls
from shards.replica import Replica

MESSAGES_PER_TURN = 256
HIGH_WATER_MARK = 20_000

log = structlog.get_logger()


class Loop:
    def __init__(self, replica: Replica, address: str) -> None:
        self._replica = replica
        self._context = zmq.Context()
        self._router = self._context.socket(zmq.ROUTER)
        router = self._router
        router.set_hwm(HIGH_WATER_MARK)
        router.setsockopt(zmq.LINGER, 0)
        router.setsockopt(zmq.ROUTER_MANDATORY, 1)  # else a reply to a peer that is gone vanishes without a word
        router.setsockopt(zmq.MAXMSGSIZE, MESSAGE_BYTES_MAX)
        router.setsockopt(zmq.HEARTBEAT_IVL, 1_000)
        router.setsockopt(zmq.HEARTBEAT_TIMEOUT, 3_000)
        router.setsockopt(zmq.HEARTBEAT_TTL, 3_000)
        router.bind(address)
        replica.door.is_there = self._is_there
        self._is_stopping = False
        self.unsent = 0

    def stop(self, signum: int = 0, frame: FrameType | None = None) -> None:
        self._is_stopping = True

    def run(self) -> None:
        signal.signal(signal.SIGTERM, self.stop)
        signal.signal(signal.SIGINT, self.stop)
        replica, router = self._replica, self._router
        self._send(replica.turn([]))
        while not self._is_stopping:
            # Rounded up: waking a millisecond late beats spinning through the last one.
            timeout_ms = -(-replica.sleep_ns() // 1_000_000)
            if replica.may_warm and timeout_ms and not router.poll(0):
                replica.warm()
            router.poll(min(timeout_ms, 1_000))
            self._send(replica.turn(self._drain()))

    def close(self) -> None:
        self._router.close(0)
        self._context.term()
        self._replica.close()

    def _drain(self) -> list[tuple[bytes, list[Call]]]:
        arrived: list[tuple[bytes, list[Call]]] = []
        router = self._router
        try:
            while len(arrived) < MESSAGES_PER_TURN:
                peer, message = router.recv_multipart(zmq.NOBLOCK)
                arrived.append((peer, decode_calls(message)))
        except zmq.Again:
            pass
        except ValueError as error:
            log.warning("message refused", reason=str(error))
        return arrived

    def _is_there(self, peer: bytes) -> bool:
        """Found out by sending it nothing: the socket knows which peers have hung up."""
        try:
            self._router.send_multipart((peer, b""), zmq.NOBLOCK)
        except zmq.ZMQError as error:
            return error.errno != zmq.EHOSTUNREACH
        return True

    def _send(self, messages: list[tuple[bytes, bytes]]) -> None:
        for peer, message in messages:
            try:
                self._router.send_multipart((peer, message), zmq.NOBLOCK)
            except zmq.ZMQError as error:
                if error.errno not in (zmq.EHOSTUNREACH, zmq.EAGAIN):
                    raise
                self.unsent += 1
                self._replica.door.parking.forget_peer(peer)
