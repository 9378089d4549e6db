"""Which incarnation of a peer a message belongs to.

A transport may queue messages while a peer is down and hand them to the restarted process (ZeroMQ does). An answer
to a question that a former life asked must not be counted: that life may have known more than was on its disk. So
each message names the incarnations of both ends, and a replica learns those of its peers thus:

1. A replica starts with its own, a counter that the host persists at each start, and knows no other.
2. Every message teaches the receiver its sender's; they only grow. A message from an earlier one is dropped.
3. At start a replica sends Hello to all members, so that they learn the new one before they waste messages.
4. A message to an earlier incarnation of the receiver is dropped, and answered with Hello; the sender learns.
5. A message to incarnation 0 comes from a sender that does not know yet: believed for requests, which are harmless
   when late, never for answers (a replica that answers has seen the question, and with it the incarnation).
6. A message to a later incarnation than our own means that our disk was rolled back or wiped: the replica
   has forgotten promises, must neither vote nor acknowledge, and reports it (`Ready.is_rolled_back`).
"""

from __future__ import annotations

import enum

from shards.raft.messages import Message


class Verdict(enum.Enum):
    ADMIT = "admit"
    RESTARTED = "restarted"  # admit; the sender has restarted since it was last heard
    STALE = "stale"  # drop, and say Hello
    DROP = "drop"
    ROLLED_BACK = "rolled back"


class Incarnations:
    def __init__(self, own: int) -> None:
        assert own > 0, "the first incarnation is 1; 0 means unknown"
        self.own = own
        self._known: dict[str, int] = {}

    def of(self, peer: str) -> int:
        return self._known.get(peer, 0)

    def judge(self, message: Message) -> Verdict:
        """Decide about a message, and learn from it."""
        if message.receiver_incarnation > self.own:
            return Verdict.ROLLED_BACK
        known = self._known.get(message.sender, 0)
        if message.sender_incarnation < known:
            return Verdict.STALE
        self._known[message.sender] = message.sender_incarnation
        if message.receiver_incarnation != self.own and (message.receiver_incarnation or message.must_be_exact):
            return Verdict.STALE if message.receiver_incarnation else Verdict.DROP
        if known and message.sender_incarnation > known:
            return Verdict.RESTARTED
        return Verdict.ADMIT
