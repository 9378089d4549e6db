"""Calls that only the leader can serve, passed on by the replica that got them.

So a gateway speaks to the shards of its own node and to nobody else. What was passed on is remembered until it is
answered; when the leader changes, or the link to it breaks, whoever asked is told to ask again. Repeating is safe:
every operation carries its ids.
"""

from corvo.errors import Refused
from corvo.wire import Call, Reply, decode_replies, encode_replies, reply_to
from shards.letters import PassedBack, PassedOn, Posted

OUTSTANDING_MAX = 50_000
_ASK_AGAIN = Refused("NOT_LEADER", "the shard has no leader at the moment, or has just changed it; ask again", 50)
_FULL = Refused("OVERLOADED", "too many calls wait for the shard's leader; try again", 250)

FOREIGN = b"@"  # begins the name of a peer that asked another replica: `@node-2|…`


class Passing:
    def __init__(self) -> None:
        self._outstanding: dict[tuple[bytes, int], None] = {}
        self._leader: str | None = None

    def follow(self, leader: str | None) -> list[tuple[bytes, Reply]]:
        """Whom calls go to from now on; with it the answers to those that went to somebody else."""
        if leader == self._leader:
            return []
        self._leader = leader
        lost, self._outstanding = self._outstanding, {}
        return [(peer, reply_to(call_id, _ASK_AGAIN)) for peer, call_id in lost]

    def pass_on(self, calls: list[tuple[bytes, Call]]) -> tuple[list[Posted], list[tuple[bytes, Reply]]]:
        """Letters to the leader, and replies for what cannot go there."""
        if self._leader is None:
            return [], [(peer, reply_to(call.id, _ASK_AGAIN)) for peer, call in calls if call.ask]
        by_peer: dict[bytes, list[Call]] = {}
        refused: list[tuple[bytes, Reply]] = []
        for peer, call in calls:
            if call.ask and len(self._outstanding) >= OUTSTANDING_MAX:
                refused.append((peer, reply_to(call.id, _FULL)))
                continue
            if call.ask:
                self._outstanding[peer, call.id] = None
            by_peer.setdefault(peer, []).append(call)
        return [Posted(self._leader, PassedOn(peer, group)) for peer, group in by_peer.items()], refused

    def passed_back(self, letter: PassedBack) -> list[tuple[bytes, bytes]]:
        """Frames for those who asked here. Not twice: an answer that comes after `follow` gave one is dropped."""
        replies = decode_replies(letter.frame)
        known = [reply for reply in replies if (letter.peer, reply.id) in self._outstanding]
        for reply in known:
            del self._outstanding[letter.peer, reply.id]
        if not known:
            return []
        return [(letter.peer, letter.frame if len(known) == len(replies) else encode_replies(known))]

    def __len__(self) -> int:
        return len(self._outstanding)


def foreign_peer(node: str, peer: bytes) -> bytes:
    """The name under which the leader's door knows a peer of another replica."""
    return FOREIGN + node.encode() + b"|" + peer


def parse_foreign(peer: bytes) -> tuple[str, bytes] | None:
    if not peer.startswith(FOREIGN):
        return None
    node, _, original = peer[1:].partition(b"|")
    return node.decode(), original
