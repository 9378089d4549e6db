"""The outbox of errands for other shards, and the number of the last errand received from each.

Errands are numbered from 1 without gaps for each pair of shards. The outbox holds errands that the other shard has not
confirmed. The last number given is stored on its own, so that no number is used twice.
"""

from collections import deque
from typing import Any

import msgspec

from corvo.state import keys
from corvo.state.kv import KV, Overlay

encode = msgspec.msgpack.Encoder().encode
_decode_number = msgspec.msgpack.Decoder(int).decode


class Outbox:
    def __init__(self, overlay: Overlay, shard: int, shard_count: int) -> None:
        self.shard = shard
        self.shard_count = shard_count
        self.here: deque[Any] = deque()  # for this shard itself: run within the entry
        self.given: dict[int, int] = {}  # target → number of the last errand for it
        self.confirmed: dict[int, int] = {}  # target → number of the last errand it has run
        self.received: dict[int, int] = {}  # source → number of its last errand that ran here
        self._overlay = overlay

    def recall(self, kv: KV) -> None:
        for key, value in kv.scan(keys.OUTBOX_LAST, keys.prefix_end(keys.OUTBOX_LAST)):
            target, last = key[-1], _decode_number(value)
            self.given[target] = self.confirmed[target] = last
            for left, _ in kv.scan(keys.outbox(target, 0), keys.outbox(target, last + 1)):
                self.confirmed[target] = keys.outbox_number(left) - 1
                break
        for key, value in kv.scan(keys.INBOX_LAST, keys.prefix_end(keys.INBOX_LAST)):
            self.received[key[-1]] = _decode_number(value)

    def send(self, target: int, errand: Any) -> None:
        if target == self.shard:
            self.here.append(errand)
            return
        number = self.given.get(target, 0) + 1
        self.given[target] = number
        self._overlay.puts[keys.outbox(target, number)] = encode(errand)
        self._overlay.puts[keys.outbox_last(target)] = encode(number)

    def is_underway(self, target: int, number: int) -> bool:
        """Whether the other shard has not confirmed the errand of this number yet."""
        return number > self.confirmed.get(target, 0)

    def targets(self) -> list[int]:
        """Shards with unconfirmed errands."""
        return [target for target, last in self.given.items() if last > self.confirmed.get(target, 0)]

    def waiting(self, target: int, count_max: int, bytes_max: int) -> tuple[int, list[bytes]]:
        """The unconfirmed errands, as many as fit, and the number of the first."""
        first = self.confirmed.get(target, 0) + 1
        last = min(self.given.get(target, 0), first + count_max - 1)
        found: list[bytes] = []
        size = 0
        for number in range(first, last + 1):
            raw = self._overlay.get(keys.outbox(target, number))
            assert raw is not None, f"errand {number} for shard {target} is gone"
            size += len(raw)
            if found and size > bytes_max:
                break
            found.append(raw)
        return first, found

    def confirm(self, target: int, upto: int) -> int:
        """The target has run the errands up to this number: drop them. Returns how many."""
        before = self.confirmed.get(target, 0)
        upto = min(upto, self.given.get(target, 0))
        for number in range(before + 1, upto + 1):
            self._overlay.puts[keys.outbox(target, number)] = None
        self.confirmed[target] = max(before, upto)
        return max(upto - before, 0)

    def receive(self, source: int, number: int) -> bool:
        """Whether the errand of this number is the next one; if so, it is recorded as received."""
        if number != self.received.get(source, 0) + 1:
            return False
        self.received[source] = number
        self._overlay.puts[keys.inbox_last(source)] = encode(number)
        return True
