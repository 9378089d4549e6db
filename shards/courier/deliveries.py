"""The leader's courier: carries errands to the leaders of other shards, in order, until each is done.

For every shard one delivery is under way at a time. It goes to that shard's replica on this node, which forwards it to
its leader; the answer names the last errand done there, and then the log may forget them. What is lost is sent
again: the other shard skips what it has done. Nothing here is remembered; a new leader finds it all in the outbox.
"""

import msgspec

from corvo.endpoint import Operation
from corvo.model.errors import Refusal
from corvo.model.limits import DELIVERY_BYTES_MAX, ERRANDS_PER_DELIVERY
from corvo.ops.upkeep.confirm import Confirm
from corvo.ops.upkeep.deliver import Deliver
from corvo.state.outbox import Outbox

PATIENCE_MS = 2_000  # then it is sent again
PAUSE_NS = 50_000_000  # after a refusal: the other shard may be electing a leader
_MS = 1_000_000


class Round(msgspec.Struct):
    """A delivery under way, or the pause after one that was refused."""

    is_under_way: bool
    ends_ns: int


class Courier:
    def __init__(self, errands: Outbox) -> None:
        self._errands = errands
        self._rounds: dict[int, Round] = {}
        self._done: dict[int, int] = {}  # target → it has done all up to here, says it

    def set_out(self, now_ns: int) -> list[tuple[int, Deliver]]:
        """What to deliver now, by shard."""
        deliveries = []
        for target in self._errands.targets():
            round_ = self._rounds.get(target)
            if (round_ is not None and now_ns < round_.ends_ns) or self._is_done(target):
                continue
            first, errands = self._errands.waiting(target, ERRANDS_PER_DELIVERY, DELIVERY_BYTES_MAX)
            self._rounds[target] = Round(True, now_ns + PATIENCE_MS * _MS)
            deliveries.append((target, Deliver(self._errands.shard, first, errands)))
        return deliveries

    def come_back(self, target: int, answer: int | Refusal, now_ns: int) -> None:
        """`answer`: the last errand that the target has done."""
        if not self.awaits(target):
            return
        done = 0 if isinstance(answer, Refusal) else answer
        # Never more than was given, whatever the other shard remembers: the log would be told of it for ever.
        self._done[target] = min(done, self._errands.given.get(target, 0))
        if self._is_done(target):
            del self._rounds[target]
        else:
            self.turn_back(target, now_ns)

    def awaits(self, target: int) -> bool:
        """Whether an answer of this shard is still wanted."""
        round_ = self._rounds.get(target)
        return round_ is not None and round_.is_under_way

    def turn_back(self, target: int, now_ns: int) -> None:
        """It could not be delivered: again after a pause."""
        self._rounds[target] = Round(False, now_ns + PAUSE_NS)

    def confirmations(self) -> list[Operation]:
        """What the log should be told."""
        if not self._done:
            return []
        return [Confirm(target, self._done[target]) for target in self._done if self._is_done(target)]

    def rest(self) -> None:
        """Another replica leads: it has a courier of its own."""
        self._rounds.clear()
        self._done.clear()

    def next_ns(self) -> int | None:
        """When a round ends for want of an answer. One whose errands are confirmed by now is over, answer or not."""
        if not self._rounds:
            return None
        rounds = (self._rounds.get(target) for target in self._errands.targets())
        return min((round_.ends_ns for round_ in rounds if round_ is not None), default=None)

    def _is_done(self, target: int) -> bool:
        """Whether a confirmation is still to be written."""
        return self._done.get(target, 0) > self._errands.confirmed.get(target, 0)
