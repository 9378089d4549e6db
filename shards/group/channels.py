"""The way to one peer: keys, channels, and the link of two channels. `Peers` (`peers.py`) holds one link for each peer.

Messages that grow with the work (entries, calls, snapshots) have a channel of their own, so that a large append cannot
hold up a heartbeat and cause an election. The kind of a message decides, not its size: two appends on different
channels could overtake each other, and the follower would refuse the one that came too early.
"""

from hashlib import blake2b
from itertools import count
from time import monotonic
from typing import Any

import zmq
from zmq.utils import z85
from zmq.utils.monitor import parse_monitor_message

from corvo.model.limits import MESSAGE_BYTES_MAX
from corvo.runtime.process import read_secret
from shards.group.messages import MessageBody, RaftMessage
from shards.raft.messages import Append

SMALL_MESSAGES_MAX = 1_000
LARGE_MESSAGES_MAX = 128
EVENTS_PER_TURN = 256
HANDSHAKES_BROKEN_MAX = 5  # in a row
_CHANNEL_EVENTS = (
    zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_DISCONNECTED
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
)
_monitor_numbers = count()

Context = zmq.Context[Any]
Socket = zmq.Socket[bytes]


class Keys:
    """One key pair for the whole cluster, derived from its secret: without the secret a connection is refused."""

    def __init__(self, secret: bytes) -> None:
        self.secret = z85.encode(blake2b(secret, digest_size=32, person=b"corvo-curve").digest())
        self.public = zmq.curve_public(self.secret)


def read_keys(path: str) -> Keys | None:
    """`BadSecret` with a sentence. Without a path there are none."""
    secret = read_secret(path)
    return None if secret is None else Keys(secret)


class Channel:
    """One connection to a peer, which ZeroMQ makes again when it breaks, and what is known of it.

    ZeroMQ gives up for good where the two ends speak different protocols, as with a peer that was started without its
    secret. That may be corrected, so a channel that stays down is opened again.
    """

    def __init__(self, context: Context, address: str, messages_max: int, keys: Keys | None, is_ipv6: bool) -> None:
        self.is_up = False
        self.has_address = True
        self.opened_at = monotonic()
        self.handshakes_broken = 0
        self.socket: Socket = context.socket(zmq.DEALER)
        set_up(self.socket, messages_max, is_ipv6)
        self.monitor = open_monitor(context, self.socket, _CHANNEL_EVENTS)
        setting = self.socket.setsockopt
        setting(zmq.IMMEDIATE, 1)  # a message for a peer that is away is lost now, not read after its restart
        setting(zmq.RECONNECT_IVL, 20)
        setting(zmq.RECONNECT_IVL_MAX, 200)
        setting(zmq.CONNECT_TIMEOUT, 1_000)  # else a network that drops packets is tried again after minutes only
        if keys is not None:
            setting(zmq.CURVE_SERVERKEY, keys.public)
            setting(zmq.CURVE_PUBLICKEY, keys.public)
            setting(zmq.CURVE_SECRETKEY, keys.secret)
        try:
            self.socket.connect(f"tcp://{address}")
        except zmq.ZMQError:  # the whole cluster may have agreed on such an address: it must not stop every replica
            self.has_address = False

    def watch(self) -> bool:
        """Read its events. Whether it broke."""
        is_broken = False
        for parts in drain(self.monitor, EVENTS_PER_TURN):
            event = parse_monitor_message(parts)["event"]
            if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self.is_up, self.handshakes_broken = True, 0
            elif event == zmq.EVENT_DISCONNECTED:
                is_broken = is_broken or self.is_up
                self.is_up, self.opened_at = False, monotonic()
            else:
                # Without detail, the other end hung up: that happens whenever a peer restarts.
                is_certain = event != zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
                self.handshakes_broken += HANDSHAKES_BROKEN_MAX if is_certain else 1
        return is_broken

    def send(self, frame: bytes) -> bool:
        try:
            self.socket.send(frame, zmq.NOBLOCK)
        except zmq.Again:
            return False
        return True

    def close(self) -> None:
        close_monitored(self.socket, self.monitor)


class PeerLink:
    """The way to one peer."""

    def __init__(self, context: Context, address: str, keys: Keys | None, is_ipv6: bool) -> None:
        self.address = address
        self._context = context
        self._keys = keys
        self._is_ipv6 = is_ipv6 or address.startswith("[")
        self.small = self._open(SMALL_MESSAGES_MAX)
        self.large = self._open(LARGE_MESSAGES_MAX)

    def _open(self, messages_max: int) -> Channel:
        return Channel(self._context, self.address, messages_max, self._keys, self._is_ipv6)

    @property
    def is_up(self) -> bool:
        return self.small.is_up and self.large.is_up

    def reopen(self, before: float) -> bool:
        """Replace the channels that have been down since then. Whether there were any."""
        is_small_stuck = not self.small.is_up and self.small.opened_at < before
        is_large_stuck = not self.large.is_up and self.large.opened_at < before
        if is_small_stuck:
            self.small.close()
            self.small = self._open(SMALL_MESSAGES_MAX)
        if is_large_stuck:
            self.large.close()
            self.large = self._open(LARGE_MESSAGES_MAX)
        return is_small_stuck or is_large_stuck

    def send(self, body: MessageBody, frame: bytes) -> bool:
        is_small = isinstance(body, RaftMessage) and not isinstance(body.message, Append)
        return (self.small if is_small else self.large).send(frame)

    def close(self) -> None:
        self.small.close()
        self.large.close()


def set_up(socket: Socket, messages_max: int, is_ipv6: bool) -> None:
    socket.set_hwm(messages_max)
    # Only where it is needed: with it, a name with addresses of both kinds resolves to IPv6, reachable or not.
    socket.setsockopt(zmq.IPV6, int(is_ipv6))
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.MAXMSGSIZE, MESSAGE_BYTES_MAX)
    socket.setsockopt(zmq.HEARTBEAT_IVL, 500)
    socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 2_000)
    socket.setsockopt(zmq.HEARTBEAT_TTL, 2_000)
    socket.setsockopt(zmq.HANDSHAKE_IVL, 3_000)


def open_monitor(context: Context, socket: Socket, events: int) -> Socket:
    # Numbered here: a name made from a descriptor, as pyzmq makes it, may still be taken by a socket just closed.
    address = f"inproc://monitor-{next(_monitor_numbers)}"
    socket.monitor(address, events)
    monitor: Socket = context.socket(zmq.PAIR)
    monitor.connect(address)
    return monitor


def close_monitored(socket: Socket, monitor: Socket) -> None:
    socket.monitor(None, 0)
    monitor.close(0)
    socket.close(0)


def drain(socket: Socket, messages_max: int) -> list[list[bytes]]:
    drained: list[list[bytes]] = []
    try:
        while len(drained) < messages_max:
            drained.append(socket.recv_multipart(zmq.NOBLOCK))
    except zmq.Again:
        pass
    return drained
