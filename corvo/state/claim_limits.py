"""Limits on claims: how many jobs a queue may give out now (pause, concurrency, throttle).

A throttle is an exact sliding window: the time of every claim within the window is kept. Claims of one entry share a
time, so memory grows with entries, not with claims, and never beyond the rate.
"""

from collections import deque
from collections.abc import Callable

import msgspec

from corvo.model.job import Controls, Queue
from corvo.model.lifecycle import State
from corvo.state import keys
from corvo.state.kv import KV

NO_LIMIT = 2**62
GATE_ALARM = "r"  # followed by a queue: its throttle has room again
encode = msgspec.msgpack.Encoder().encode
decode_claims = msgspec.msgpack.Decoder(int).decode


class ThrottleWindow:
    __slots__ = ("claims", "count")

    def __init__(self) -> None:
        self.claims: deque[tuple[int, int]] = deque()  # time, number of claims
        self.count = 0


class Throttles:
    def __init__(self, put: Callable[[bytes, bytes | None], None]) -> None:
        self._put = put
        self._windows: dict[str, ThrottleWindow] = {}

    def recall(self, kv: KV) -> None:
        for key, value in kv.scan(keys.CLAIMS, keys.prefix_end(keys.CLAIMS)):
            name, moment = keys.claims_parts(key)
            self._note(self._windows.setdefault(name, ThrottleWindow()), moment, decode_claims(value))

    def claim(self, queue: str, controls: Controls, now: int, count: int) -> None:
        """Record that `count` jobs were claimed now."""
        window = self._windows.setdefault(queue, ThrottleWindow())
        self._forget(queue, window, now - controls.window_ms * 1_000_000)
        self._note(window, now, count)
        self._put(keys.claims_at(queue, now), encode(window.claims[-1][1]))

    def trim(self, queue: str, controls: Controls, now: int) -> None:
        """Drop the claims that are no longer in the window."""
        window = self._windows.get(queue)
        if window is not None:
            self._forget(queue, window, now - controls.window_ms * 1_000_000)

    def room(self, queue: str, controls: Controls, now: int) -> int:
        window = self._windows.get(queue)
        if window is None:
            return controls.rate
        since = now - controls.window_ms * 1_000_000
        passed = 0
        for moment, count in window.claims:
            if moment > since:
                break
            passed += count
        return max(controls.rate - window.count + passed, 0)

    def free_at(self, queue: str, controls: Controls) -> int:
        """When the window has room again, if it has none now."""
        window = self._windows.get(queue)
        if window is None:
            return 0
        surplus = window.count - controls.rate
        for moment, count in window.claims:
            surplus -= count
            if surplus < 0:
                return moment + controls.window_ms * 1_000_000
        return 0

    def drop(self, queue: str) -> None:
        window = self._windows.pop(queue, None)
        if window is not None:
            for moment, _ in window.claims:
                self._put(keys.claims_at(queue, moment), None)

    def _note(self, window: ThrottleWindow, moment: int, count: int) -> None:
        if window.claims and window.claims[-1][0] == moment:
            _, before = window.claims.pop()
            window.claims.append((moment, before + count))
        else:
            window.claims.append((moment, count))
        window.count += count

    def _forget(self, queue: str, window: ThrottleWindow, upto: int) -> None:
        while window.claims and window.claims[0][0] <= upto:
            moment, count = window.claims.popleft()
            window.count -= count
            self._put(keys.claims_at(queue, moment), None)


def room(queue: Queue, throttles: Throttles, now: int) -> int:
    """How many jobs the queue's controls allow to be claimed now."""
    controls = queue.controls
    if controls is None:
        return NO_LIMIT
    if controls.is_paused or controls.is_draining:
        return 0
    left = NO_LIMIT
    if controls.max_concurrency:
        left = max(controls.max_concurrency - queue.counts[State.ACTIVE], 0)
    if controls.rate:
        left = min(left, throttles.room(queue.name, controls, now))
    return left
