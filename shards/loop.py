"""The shard's loop: the only place that polls a socket and sleeps.

Drains everything that has arrived, gives it to the replica in one turn, sends what comes back. Messages that cannot
be delivered are dropped: the caller has a deadline and asks again.
"""

import os
import signal
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import structlog
import zmq

from corvo.model.errors import Corrupt
from corvo.model.limits import MESSAGE_BYTES_MAX
from corvo.runtime.heartbeat import ProcessHeartbeat
from corvo.wire import Call, Reply, decode_calls, encode_replies
from shards.courier.sockets import CourierSockets
from shards.group.addresses import AddressBook
from shards.group.forwarding import parse_foreign
from shards.group.peers import Peers
from shards.replica import Replica
from shards.storage.scrub import Scrub

MESSAGES_PER_TURN = 256
HIGH_WATER_MARK = 20_000
WAKE_BYTES = 4_096  # read at once; a pipe that holds more is read again by the next poll
HAND_OVER_S = 1.5  # how long an ending replica waits for another one to lead

log = structlog.get_logger()


class Loop:
    def __init__(
        self,
        replica: Replica,
        address: str,
        peers: Peers | None = None,
        address_book: AddressBook | None = None,
        scrub: Scrub | None = None,
        courier_sockets: CourierSockets | None = None,
        heartbeat: ProcessHeartbeat | None = None,
    ) -> None:
        self._replica = replica
        self._peers = peers
        self._address_book = address_book
        self._scrub = scrub
        self._courier_sockets = courier_sockets
        self._beat: Callable[[], None] = (lambda: None) if heartbeat is None else heartbeat.beat
        # A context of its own: a name that cannot be resolved stalls all sockets of the context that connects to it.
        self._context: zmq.Context[Any] = zmq.Context()
        self._router = router = self._context.socket(zmq.ROUTER)
        router.set_hwm(HIGH_WATER_MARK)
        router.setsockopt(zmq.LINGER, 0)
        router.setsockopt(zmq.ROUTER_MANDATORY, 1)  # else a reply to a peer that is gone vanishes without a word
        router.setsockopt(zmq.MAXMSGSIZE, MESSAGE_BYTES_MAX)
        router.setsockopt(zmq.HEARTBEAT_IVL, 1_000)
        router.setsockopt(zmq.HEARTBEAT_TIMEOUT, 3_000)
        router.setsockopt(zmq.HEARTBEAT_TTL, 3_000)
        router.bind(address)
        replica.admission.is_there = self._is_there
        replica.deliver = self._send
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_reader, False)
        os.set_blocking(self._wake_writer, False)
        self._poller = zmq.Poller()
        for socket in (router, *(peers.sockets() if peers is not None else [])):
            self._poller.register(socket, zmq.POLLIN)
        self._poller.register(self._wake_reader, zmq.POLLIN)
        if courier_sockets is not None:
            courier_sockets.poller = self._poller
        self._is_stopping = False
        self.unsent = 0

    def stop(self, signum: int = 0, frame: FrameType | None = None) -> None:
        self._is_stopping = True

    def run(self) -> None:
        # A signal must end the poll at once: Python would go on with the rest of its timeout.
        signal.set_wakeup_fd(self._wake_writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self.stop)
        signal.signal(signal.SIGINT, self.stop)
        self._turn()
        while not self._is_stopping:
            self._sleep()
            self._turn()
            if self._scrub is not None and self._scrub.fault:
                raise Corrupt(self._scrub.fault)
        self._hand_over()

    def close(self) -> None:
        signal.set_wakeup_fd(-1)
        os.close(self._wake_reader)
        os.close(self._wake_writer)
        self._router.close(0)
        if self._courier_sockets is not None:
            self._courier_sockets.close()
        self._context.term()
        if self._peers is not None:
            self._peers.close()

    def _sleep(self) -> None:
        replica = self._replica
        # Rounded up: waking a millisecond late beats spinning through the last one.
        timeout_ms = -(-replica.sleep_ns() // 1_000_000)
        while replica.may_warm and timeout_ms:
            if self._poll(0):
                return
            replica.warm()
            self._beat()
        if self._poll(min(timeout_ms, 1_000)) and self._peers is None:
            # On a busy machine, let whoever is about to send more do so: one turn and one sync for all of it. Not where
            # others count on hearing from us.
            os.sched_yield()

    def _poll(self, timeout_ms: int) -> bool:
        """Whether something arrived, or a signal did."""
        ready = self._poller.poll(timeout_ms)
        if (self._wake_reader, zmq.POLLIN) in ready:
            os.read(self._wake_reader, WAKE_BYTES)  # else every later poll would return at once
        return bool(ready)

    def _turn(self) -> None:
        self._beat()
        self._take_turn()
        if self._courier_sockets is not None and self._replica.raft.is_leader:
            self._courier_sockets.go(self._replica.courier)

    def _take_turn(self) -> None:
        replica, peers, address_book = self._replica, self._peers, self._address_book
        if self._courier_sockets is not None:
            self._courier_sockets.come_back(replica.courier)
        if peers is None or address_book is None:
            self._send(replica.turn(self._drain()))
            return
        address_book.reach(peers, replica.raft.membership.members(), replica.tables.nodes)
        messages = peers.receive()
        for node in peers.lost():
            replica.members.lose_link(node)
        self._send(replica.turn(self._drain(), messages))
        replica.metrics.refused = peers.refused

    def _hand_over(self) -> None:
        """Whoever leads and ends on purpose names a successor, so that nobody has to wait for an election."""
        replica = self._replica
        if self._peers is None or not replica.raft.is_leader:
            return
        deadline = time.monotonic() + HAND_OVER_S
        if not replica.members.hand_over():
            return
        while replica.raft.is_leader and time.monotonic() < deadline:
            self._turn()
            self._poll(5)
        self._turn()  # what waited here is told to ask again

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
        foreign = parse_foreign(peer)
        if foreign is not None:
            return self._peers is not None and self._peers.carries(foreign[0])
        try:
            self._router.send_multipart((peer, b""), zmq.NOBLOCK)
        except zmq.ZMQError as error:
            return error.errno != zmq.EHOSTUNREACH
        return True

    def _send(self, messages: list[tuple[bytes, list[Reply]]]) -> None:
        for peer, replies in messages:
            try:
                self._router.send_multipart((peer, encode_replies(replies)), zmq.NOBLOCK)
            except zmq.ZMQError as error:
                if error.errno not in (zmq.EHOSTUNREACH, zmq.EAGAIN):
                    raise
                self.unsent += 1
                self._replica.admission.waiters.forget_peer(peer)
