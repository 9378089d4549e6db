"""How fast a queue of requests drains: gives the `retry_after_ms` of a refused request.

An average over spans of a quarter of a second; each span weighs half as much as the one after it. So it notices quickly
that the queue has slowed down, and one slow turn changes little. The caller hands in the time.
"""

SPAN_NS = 250_000_000
SPANS_FORGOTTEN = 20  # after a pause of this length the old rate means nothing
HINT_MS_MIN, HINT_MS_MAX, HINT_MS_UNKNOWN = 25, 10_000, 250


class DrainRate:
    def __init__(self) -> None:
        self._span = 0
        self._count = 0  # in the current span
        self._per_span = 0.0

    def done(self, count: int, now_ns: int) -> None:
        span = now_ns // SPAN_NS
        if span != self._span:
            self._turn_over(span)
        self._count += count

    def _turn_over(self, span: int) -> None:
        passed = span - self._span
        if self._span and passed <= SPANS_FORGOTTEN:
            self._per_span = (self._per_span + self._count) / (2 if self._per_span else 1)
            self._per_span /= 2.0 ** (passed - 1)
        else:
            self._per_span = 0.0
        self._span, self._count = span, 0

    def clears_in_ms(self, waiting: int) -> int:
        """How long `waiting` requests take to be served, rounded up, within the bounds above."""
        per_span = max(self._per_span, self._count)
        if not per_span:
            return HINT_MS_UNKNOWN
        ms = waiting / per_span * (SPAN_NS / 1e6)
        return max(HINT_MS_MIN, min(HINT_MS_MAX, int(ms) + 1))
