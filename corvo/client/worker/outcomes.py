"""How a handler can end, other than with a result or an error. Pure.

Each can be returned or raised: raise it from deep inside, return it where a return reads better.
"""

import re
from datetime import timedelta
from typing import Any

Duration = float | timedelta | str  # seconds, or text such as `90s`

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


def milliseconds(duration: Duration) -> int:
    """Whole milliseconds. `1h30m`, `90s`, `0.5s`, a timedelta or a number of seconds."""
    if isinstance(duration, str):
        parts = list(_PART.finditer(duration))
        if not parts or "".join(part[0] for part in parts) != duration:
            raise ValueError(f"{duration!r} is no duration: expected such as 90s, 10m or 1h30m")
        return round(sum(float(part[1]) * _UNITS_MS[part[2]] for part in parts))
    seconds = duration.total_seconds() if isinstance(duration, timedelta) else float(duration)
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"{duration!r} is no duration: it must be finite and not negative")
    return round(seconds * 1000)


class HandlerOutcome(Exception):
    """What a handler may return or raise instead of a result."""


class Retry(HandlerOutcome):
    """The attempt failed. The next one begins `after` this time instead of the backoff."""

    def __init__(self, after: Duration | None = None, reason: str = "") -> None:
        super().__init__(reason or "the handler asked for a retry")
        self.after_ms = None if after is None else milliseconds(after)


class Snooze(HandlerOutcome):
    """Not now: run again `for_` this time later. Uses no attempt."""

    def __init__(self, for_: Duration) -> None:
        self.for_ms = milliseconds(for_)
        super().__init__(f"snoozed for {self.for_ms} ms")


class Continue(HandlerOutcome):
    """This slice is done; go on from the checkpoint, at once or `after` this time. Uses no attempt."""

    def __init__(self, checkpoint: Any, after: Duration = 0.0) -> None:
        super().__init__("continues from its checkpoint")
        self.checkpoint = checkpoint
        self.after_ms = milliseconds(after)


class Cancel(HandlerOutcome):
    """The job is not wanted any more: it ends as cancelled."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason or "cancelled by its handler")


class Discard(HandlerOutcome):
    """The job cannot succeed: it is dead at once, whatever attempts are left."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason or "discarded by its handler")


class Hold(HandlerOutcome):
    """A person has to decide: the job is held until somebody approves or rejects it. `prompt` is what they are told."""

    def __init__(self, prompt: str) -> None:
        super().__init__(prompt)
        self.prompt = prompt
