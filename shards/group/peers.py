"""Links to the same shard on other nodes: ZeroMQ over TCP, encrypted and mutually authenticated by one secret.

Every replica binds one ROUTER, on which it listens, and sends through sockets of its own to each peer
(`channels.py`). Nothing waits: a channel that is full or down loses the message, and says so. Only an introduction is
answered on the connection it came by, because its sender is not known yet.
"""

from time import monotonic

import structlog
import zmq
from zmq.utils import z85

from corvo.model.limits import MESSAGE_BYTES_MAX
from corvo.runtime.addresses import is_loopback, join_address, split_address
from shards.group.channels import (
    EVENTS_PER_TURN,
    HANDSHAKES_BROKEN_MAX,
    LARGE_MESSAGES_MAX,
    Context,
    Keys,
    PeerLink,
    Socket,
    close_monitored,
    drain,
    open_monitor,
    read_keys,
    set_up,
)
from shards.group.messages import Introduction, MessageBody, Misaddressed, PeerMessage, Welcome, seal, unseal

__all__ = ["Keys", "Peers", "read_keys"]

MESSAGES_PER_TURN = 256
FRAME_BYTES_MAX = MESSAGE_BYTES_MAX - 1024  # room for what CURVE adds: a frame above the bound would cost the link
INTRODUCTIONS_MAX = 256
REASONS_MAX = 100  # a client that sends ever new nonsense must not fill memory or log
REOPEN_S = 3.0  # a channel that is down longer than this is opened again
ZAP_ADDRESS = "inproc://zeromq.zap.01"  # fixed by ZeroMQ, one for each context
# Without "no detail": that is a client that connects and hangs up, such as a probe of the port.
_REFUSAL_EVENTS = zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_AUTH

log = structlog.get_logger()


class Peers:
    """All links of one replica. With keys, a context has room for one `Peers`: it authenticates for all sockets."""

    def __init__(
        self,
        context: Context,
        node_id: str,
        group: str,
        bind: str,
        keys: Keys | None,
    ) -> None:
        assert keys is not None or is_loopback(bind), f"without a secret, nodes must not listen on {bind}"
        self.refused = 0
        self._introductions: list[tuple[bytes, Introduction]] = []
        self._context = context
        self._node_id = node_id
        self._group = group
        self._keys = keys
        self._links: dict[str, PeerLink] = {}
        self._lost: set[str] = set()
        self._told: set[str] = set()
        self._reopen_at = 0.0
        self._bind = bind
        host, port = split_address(bind)
        self._is_ipv6 = ":" in host
        self._zap: Socket | None = None
        if keys is not None:
            self._zap = context.socket(zmq.REP)
            self._zap.bind(ZAP_ADDRESS)  # before the first CURVE socket, or that would refuse all
        self._router: Socket = context.socket(zmq.ROUTER)
        set_up(self._router, LARGE_MESSAGES_MAX, self._is_ipv6)
        if keys is not None:
            self._router.setsockopt(zmq.CURVE_SERVER, 1)
            self._router.setsockopt(zmq.CURVE_SECRETKEY, keys.secret)
            self._router.setsockopt(zmq.ZAP_DOMAIN, b"corvo")
            self._router.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)  # no authenticator means no, not yes
        self._monitor = open_monitor(context, self._router, _REFUSAL_EVENTS)
        try:
            self._router.bind(f"tcp://{join_address(host, port)}")
        except zmq.ZMQError as error:
            self.close()
            reason = zmq.strerror(error.errno or 0).lower()
            raise OSError(f"cannot listen on {bind} for other nodes: {reason}; choose another --raft-bind") from None
        self._poller = self._make_poller()

    def sockets(self) -> list[Socket]:
        """What the loop must watch for reading; always the same ones."""
        return [self._router, self._monitor] if self._zap is None else [self._router, self._monitor, self._zap]

    def wait(self, timeout_ms: int) -> None:
        """Until there is something to receive. For a caller that waits for nothing else."""
        self._poller.poll(timeout_ms)

    def nodes(self) -> set[str]:
        """All that were connected, whether they answer or not."""
        return set(self._links)

    def connect(self, node: str, address: str) -> None:
        link = self._links.get(node)
        if link is not None:
            if link.address == address:
                return
            if link.is_up:
                self._lost.add(node)  # what was under way to the old address
            link.close()
        self._links[node] = link = PeerLink(self._context, address, self._keys, self._is_ipv6)
        if not link.large.has_address:
            self._tell("a node cannot be reached", f"{address}, where {node} should be, is no address")
        self._poller = self._make_poller()

    def disconnect(self, node: str) -> None:
        link = self._links.pop(node, None)
        self._lost.discard(node)
        if link is not None:
            link.close()
            self._poller = self._make_poller()

    def carries(self, node: str) -> bool:
        """Whether answers can be sent there: heartbeats have a channel of their own."""
        return node in self._links and self._links[node].large.is_up

    def is_up(self, node: str) -> bool:
        return node in self._links and self._links[node].is_up

    def lost(self) -> set[str]:
        """Nodes whose link broke since this was last asked: what was sent to them may not have arrived."""
        lost, self._lost = self._lost, set()
        return lost

    def send(self, node: str, body: MessageBody) -> bool:
        """False: lost, because the peer is away or does not keep up."""
        link = self._links.get(node)
        if link is None:
            return False
        frame = seal(self._group, self._node_id, body)
        if len(frame) > FRAME_BYTES_MAX:
            self._tell("a message was not sent", f"{type(body).__name__} has more than {FRAME_BYTES_MAX} bytes")
            return False
        return link.send(body, frame)

    def receive(self) -> list[PeerMessage]:
        """At most MESSAGES_PER_TURN that other replicas sent, and the answers to introductions of ours.

        Such an answer comes under the name that the link was made with: which node is there is not known before.
        """
        ready = {socket for socket, _ in self._poller.poll(0)}  # cheaper than trying each socket
        if self._zap in ready and self._zap is not None and self._keys is not None:
            self._authenticate(self._zap, self._keys)
        if self._monitor in ready:
            self._watch_router()
        messages: list[PeerMessage] = []
        for node, link in self._links.items():
            if link.small.monitor in ready or link.large.monitor in ready:
                self._watch(node, link)
            if link.large.socket in ready:
                messages += self._take_welcomes(node, link)
        if self._router in ready:
            messages += self._take_messages()
        self._reopen_links()
        return messages

    def introductions(self) -> list[tuple[bytes, Introduction]]:
        """Received since this was last asked, with the way back: for `welcome`."""
        introductions, self._introductions = self._introductions, []
        return introductions

    def welcome(self, sender: bytes, answer: Welcome) -> None:
        try:
            self._router.send_multipart((sender, seal(self._group, self._node_id, answer)), zmq.NOBLOCK)
        except zmq.Again:
            pass  # it asks again

    def close(self) -> None:
        for link in self._links.values():
            link.close()
        self._links.clear()
        close_monitored(self._router, self._monitor)
        if self._zap is not None:
            self._zap.close(0)

    def _take_messages(self) -> list[PeerMessage]:
        messages: list[PeerMessage] = []
        for parts in drain(self._router, MESSAGES_PER_TURN):
            if len(parts) != 2:
                self._refuse("not a message: it has several parts")
                continue
            posted = self._unseal(parts[1])
            if posted is None:
                continue
            if isinstance(posted.body, Introduction):
                if len(self._introductions) < INTRODUCTIONS_MAX:  # the sender of one that is dropped asks again
                    self._introductions.append((parts[0], posted.body))
            else:
                messages.append(posted)
        return messages

    def _take_welcomes(self, node: str, link: PeerLink) -> list[PeerMessage]:
        answers = [self._unseal(parts[-1]) for parts in drain(link.large.socket, MESSAGES_PER_TURN)]
        return [PeerMessage(node, answer.body) for answer in answers if answer and isinstance(answer.body, Welcome)]

    def _make_poller(self) -> zmq.Poller:
        poller = zmq.Poller()
        channels = [channel for link in self._links.values() for channel in (link.small, link.large)]
        watched = [socket for channel in channels for socket in (channel.socket, channel.monitor)]
        for socket in (*self.sockets(), *watched):
            poller.register(socket, zmq.POLLIN)
        return poller

    def _unseal(self, frame: bytes) -> PeerMessage | None:
        try:
            return unseal(self._group, frame)
        except Misaddressed as error:
            self._refuse(str(error))
            return None

    def _authenticate(self, zap: Socket, keys: Keys) -> None:
        """Authenticate connections: the cluster's key is needed (ZeroMQ's RFC 27)."""
        for _ in range(MESSAGES_PER_TURN):
            if not zap.poll(0):
                return
            version, request_id, _domain, address, _identity, mechanism, *credentials = zap.recv_multipart()
            is_ours = mechanism == b"CURVE" and credentials and z85.encode(credentials[0]) == keys.public
            status, text = (b"200", b"OK") if is_ours else (b"400", b"not of this cluster")
            zap.send_multipart([version, request_id, status, text, b"", b""])
            if not is_ours:
                self._refuse(f"{address.decode(errors='replace')} does not know the cluster's secret")

    def _watch_router(self) -> None:
        for _ in drain(self._monitor, EVENTS_PER_TURN):
            self._refuse(
                f"a client that connects to {self._bind} does not know the cluster's secret"
                if self._keys is not None
                else f"a client that connects to {self._bind} is no node, or has a secret, and this node has none"
            )

    def _watch(self, node: str, link: PeerLink) -> None:
        link.small.watch()  # what it loses is sent again; for what the other loses, a caller waits
        if link.large.watch():
            self._lost.add(node)
        if max(link.small.handshakes_broken, link.large.handshakes_broken) >= HANDSHAKES_BROKEN_MAX:
            self._tell("a node hangs up", f"{link.address} refuses us: has it the same cluster secret?")

    def _reopen_links(self) -> None:
        now = monotonic()
        if now < self._reopen_at:
            return
        self._reopen_at = now + REOPEN_S / 4
        reopened = [link for link in self._links.values() if link.reopen(now - REOPEN_S)]
        if reopened:
            self._poller = self._make_poller()

    def _refuse(self, reason: str) -> None:
        self.refused += 1
        self._tell("a node was refused", reason)

    def _tell(self, event: str, reason: str) -> None:
        """A client that keeps trying gets one line, not a thousand."""
        if reason in self._told or len(self._told) >= REASONS_MAX:
            return
        self._told.add(reason)
        # A node without a group gets messages of groups, and will belong to one in a moment.
        (log.error if self._group else log.debug)(event, reason=reason)
