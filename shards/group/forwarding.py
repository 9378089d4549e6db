"""Calls that another replica must serve, forwarded by the one that got them.

A gateway speaks to the shards of its own node only. A forwarded call is remembered until it is answered; when the
leader changes, or the link to it breaks, the caller is told to ask again. Repeating is safe: every operation carries
its ids.
"""

from collections.abc import Callable
from typing import NamedTuple

from corvo.wire import Call, Reply, pieces
from shards.group.messages import ForwardedCalls, ForwardedReplies, MessageBody

OUTSTANDING_MAX = 50_000
BYTES_PER_MESSAGE = 8 * 1024 * 1024
FOREIGN = b"@"  # begins the name of a peer that asked another replica: `@node-2|…`; those of sockets begin with NUL

CallKey = tuple[bytes, int]  # peer, call id
_MS = 1_000_000


class _Forwarded(NamedTuple):
    node: str
    deadline_ns: int


class Forwarding:
    def __init__(self, send: Callable[[str, MessageBody], bool]) -> None:
        self._send = send
        self._outstanding: dict[CallKey, _Forwarded] = {}
        self._waiting: dict[tuple[str, bytes], list[Call]] = {}  # for the end of the turn

    def __len__(self) -> int:
        return len(self._outstanding)

    @property
    def is_full(self) -> bool:
        return len(self._outstanding) >= OUTSTANDING_MAX

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    def forward(self, node: str, peer: bytes, call: Call, now_ns: int) -> None:
        if call.ask:
            self._outstanding[peer, call.id] = _Forwarded(node, now_ns + call.deadline_ms * _MS)
        self._waiting.setdefault((node, peer), []).append(call)

    def recall(self, peer: bytes, call_id: int, now_ns: int) -> None:
        """The caller waits no longer: tell the node that has the call."""
        forwarded = self._outstanding.get((peer, call_id))
        if forwarded is not None:
            self.forward(forwarded.node, peer, Call(call_id, 0, b""), now_ns)

    def flush(self) -> list[CallKey]:
        """Send what this turn forwarded; return the calls that could not be sent."""
        lost: list[CallKey] = []
        waiting, self._waiting = self._waiting, {}
        for (node, peer), all_ in waiting.items():
            for calls in pieces(all_, lambda call: len(call.ask), BYTES_PER_MESSAGE):
                if not self._send(node, ForwardedCalls(peer, calls)):
                    lost += [(peer, call.id) for call in calls if self._outstanding.pop((peer, call.id), None)]
        return lost

    def take_back(self, body: ForwardedReplies) -> list[Reply]:
        """Replies for callers of this node. Not twice: a reply to a call that `forget` has ended is dropped."""
        return [reply for reply in body.replies if self._outstanding.pop((body.peer, reply.id), None)]

    def forget(self, node: str | None = None) -> list[CallKey]:
        """Calls that went to this node, or to any, will not be answered."""
        lost = [key for key, passed in self._outstanding.items() if node is None or passed.node == node]
        for key in lost:
            del self._outstanding[key]
        return lost

    def sweep(self, now_ns: int, is_there: Callable[[bytes], bool]) -> None:
        """Drop calls past their deadline. Recall those of a gateway that died: no job must be claimed for it."""
        for key in [key for key, passed in self._outstanding.items() if passed.deadline_ns < now_ns]:
            del self._outstanding[key]
        gone = {peer for peer in {peer for peer, _ in self._outstanding} if not is_there(peer)}
        for peer, call_id in [key for key in self._outstanding if key[0] in gone]:
            self.recall(peer, call_id, now_ns)
            del self._outstanding[peer, call_id]


def foreign_peer(node: str, peer: bytes) -> bytes:
    """The name under which admission knows a peer of another replica."""
    return FOREIGN + node.encode() + b"|" + peer


def parse_foreign(peer: bytes) -> tuple[str, bytes] | None:
    if not peer.startswith(FOREIGN):
        return None
    node, _, original = peer[1:].partition(b"|")
    return node.decode(), original
