"""How often a call is sent, and when to give up. Pure.

A call is sent again when the server said that it changed nothing (429, 503), when nobody took it, and when no answer
came, if a repetition is safe: it changes nothing, or it has the same effect, or both carry one `Idempotency-Key`, from
which the server makes the same ids. So no call is carried out twice.
"""

import os
import time
from typing import Generic, TypeVar

from .calls import HttpCall
from .errors import CorvoError, ServerRefused, Unreachable, UntrustedServer

PAUSE_S_FIRST = 0.2  # between attempts when the server named no time; doubled each time
PAUSE_S_MAX = 5.0

A = TypeVar("A")


class Attempts(Generic[A]):
    """All attempts of one call. Times are monotonic seconds."""

    def __init__(
        self, call: HttpCall[A], now: float, timeout_s: float, deadline_s: float, waits_for_server: bool
    ) -> None:
        """With `waits_for_server` off, a server that nobody answers for is not tried again. A deadline of 0 means one
        attempt, which has all of its time."""
        self.call = call
        self._timeout_s = timeout_s
        self._is_only = deadline_s <= 0
        self._deadline = now + (timeout_s if self._is_only else deadline_s) + call.wait_s
        self._waits_for_server = waits_for_server
        self._key = new_key() if call.repeats == "by key" else ""
        self._pause = PAUSE_S_FIRST
        self._number = 0

    def begin(self, now: float) -> tuple[dict[str, str], float]:
        """The headers of the next attempt, and the seconds that it has."""
        self._number += 1
        headers = {} if self.call.body is None else {"content-type": "application/json"}
        if self._key:
            headers |= {"idempotency-key": self._key, "x-corvo-attempt": str(self._number)}
        return headers, max(min(self._timeout_s + self.call.wait_s, self._deadline - now), 0.001)

    def pause_after(self, error: CorvoError, now: float) -> float | None:
        """Seconds until the next attempt; None: there is none."""
        if self._is_only or not self._may_repeat(error):
            return None
        told = error.retry_after_s if isinstance(error, ServerRefused) else None
        pause = self._pause if told is None else told
        self._pause = min(2 * self._pause, PAUSE_S_MAX)
        return pause if now + pause <= self._deadline else None

    def _may_repeat(self, error: CorvoError) -> bool:
        if isinstance(error, UntrustedServer):
            return False
        if isinstance(error, Unreachable) and not error.was_sent:
            return self._waits_for_server
        if isinstance(error, ServerRefused) and error.may_retry:
            return True
        is_uncertain = isinstance(error, Unreachable) or (isinstance(error, ServerRefused) and error.is_uncertain)
        return is_uncertain and self.call.repeats != "never"


def new_key() -> str:
    """A UUID of version 7, so that the ids of jobs sort by the time of their request."""
    number = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10))
    text = f"{number & ~(0xF << 76 | 0x3 << 62) | 0x7 << 76 | 0x2 << 62:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
