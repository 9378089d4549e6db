"""Links to the same shard on other nodes: ZeroMQ over TCP, encrypted and mutually authenticated by one secret.

Every replica binds one ROUTER and only listens on it; it speaks through sockets of its own to each peer. Small letters
(heartbeats, votes, replies) and large ones (entries, snapshots) have lanes of their own, so that a large append cannot
hold up a heartbeat and cause an election. Nothing waits: a lane that is full or down loses the letter, and says so.
"""

from hashlib import blake2b
from typing import Any

import structlog
import zmq
from zmq.utils import z85

from corvo.limits import MESSAGE_BYTES_MAX
from shards.letters import Consensus, Misaddressed, Posted, seal, unseal

SMALL_BYTES = 16 * 1024
SMALL_LETTERS_MAX = 1_000
LARGE_LETTERS_MAX = 128
LETTERS_PER_TURN = 256
_ZAP = "inproc://zeromq.zap.01"

log = structlog.get_logger()


class Keys:
    """One key pair for the whole cluster, derived from its secret: who does not know the secret cannot connect."""

    def __init__(self, secret: bytes) -> None:
        self.secret = z85.encode(blake2b(secret, digest_size=32, person=b"corvo-curve").digest())
        self.public = zmq.curve_public(self.secret)


class Peers:
    def __init__(self, context: "zmq.Context[Any]", node_id: str, group: str, bind: str, keys: Keys | None) -> None:
        self._context = context
        self._node_id = node_id
        self._group = group
        self._keys = keys
        self._lanes: dict[str, tuple[zmq.Socket[bytes], zmq.Socket[bytes]]] = {}
        self.refused = 0
        self._refusal_told = ""
        self._zap: zmq.Socket[bytes] | None = None
        if keys is not None:
            self._zap = context.socket(zmq.REP)
            self._zap.bind(_ZAP)  # before the first CURVE socket, or it would let everybody in
        self._router = context.socket(zmq.ROUTER)
        _set_up(self._router, SMALL_LETTERS_MAX)
        if keys is not None:
            self._router.setsockopt(zmq.CURVE_SERVER, 1)
            self._router.setsockopt(zmq.CURVE_SECRETKEY, keys.secret)
            self._router.setsockopt(zmq.ZAP_DOMAIN, b"corvo")
        self._router.bind(f"tcp://{bind}")

    def sockets(self) -> list["zmq.Socket[bytes]"]:
        """What the loop must watch."""
        return [self._router] if self._zap is None else [self._router, self._zap]

    def connect(self, node: str, address: str) -> None:
        if node in self._lanes:
            return
        lanes = []
        for letters_max in (SMALL_LETTERS_MAX, LARGE_LETTERS_MAX):
            lane = self._context.socket(zmq.DEALER)
            _set_up(lane, letters_max)
            lane.setsockopt(
                zmq.IMMEDIATE, 1
            )  # a letter for a peer that is away is lost now, not delivered to its next life
            lane.setsockopt(zmq.RECONNECT_IVL, 50)
            lane.setsockopt(zmq.RECONNECT_IVL_MAX, 500)
            if self._keys is not None:
                lane.setsockopt(zmq.CURVE_SERVERKEY, self._keys.public)
                lane.setsockopt(zmq.CURVE_PUBLICKEY, self._keys.public)
                lane.setsockopt(zmq.CURVE_SECRETKEY, self._keys.secret)
            lane.connect(f"tcp://{address}")
            lanes.append(lane)
        self._lanes[node] = (lanes[0], lanes[1])

    def send(self, letters: list[Posted]) -> set[str]:
        """The nodes for which a letter was lost."""
        lost: set[str] = set()
        for node, letter in letters:
            lanes = self._lanes.get(node)
            if lanes is None:
                lost.add(node)
                continue
            frame = seal(self._group, self._node_id, letter)
            is_small = isinstance(letter, Consensus) and len(frame) <= SMALL_BYTES
            try:
                lanes[0 if is_small else 1].send(frame, zmq.NOBLOCK)
            except zmq.Again:
                lost.add(node)
        return lost

    def receive(self) -> list[Posted]:
        self._answer_zap()
        letters: list[Posted] = []
        try:
            while len(letters) < LETTERS_PER_TURN:
                _, frame = self._router.recv_multipart(zmq.NOBLOCK)
                try:
                    letters.append(unseal(self._group, frame))
                except Misaddressed as error:
                    self._refuse(str(error))
        except zmq.Again:
            pass
        return letters

    def _refuse(self, reason: str) -> None:
        self.refused += 1
        if reason != self._refusal_told:  # a stranger that keeps knocking gets one line, not a thousand
            self._refusal_told = reason
            log.error("a node was refused", reason=reason)

    def _answer_zap(self) -> None:
        """Who may connect: whoever has the cluster's key (RFC 27 of ZeroMQ)."""
        if self._zap is None or self._keys is None:
            return
        while self._zap.poll(0):
            version, request_id, _domain, address, _identity, mechanism, *credentials = self._zap.recv_multipart()
            is_ours = mechanism == b"CURVE" and credentials and z85.encode(credentials[0]) == self._keys.public
            status, text = (b"200", b"OK") if is_ours else (b"400", b"not of this cluster")
            self._zap.send_multipart([version, request_id, status, text, b"", b""])
            if not is_ours:
                self._refuse(f"{address.decode(errors='replace')} does not know the cluster's secret")

    def close(self) -> None:
        for small, large in self._lanes.values():
            small.close(0)
            large.close(0)
        for socket in self.sockets():
            socket.close(0)


def _set_up(socket: "zmq.Socket[bytes]", letters_max: int) -> None:
    socket.set_hwm(letters_max)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.MAXMSGSIZE, MESSAGE_BYTES_MAX)
    socket.setsockopt(zmq.HEARTBEAT_IVL, 500)
    socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 2_000)
    socket.setsockopt(zmq.HEARTBEAT_TTL, 2_000)
    socket.setsockopt(zmq.HANDSHAKE_IVL, 3_000)
