"""Moments on the command line: a time, a date, or a span before or after now. Pure.

Filters look back, so `1h` is an hour ago; `+1h` is in an hour. Options that plan ahead read `1h` as in an hour.
"""

import re
import time
from typing import Any

from corvo.cli.commands.requests import MISUSED, stop
from corvo.model.timestamps import parse_duration, to_rfc3339

EXPECTED = "a time (2026-01-31T09:00:00Z), a date (2026-01-31) or a span (1h: an hour ago, +1h: in an hour)"
HINT = "; such as 2026-01-31T09:00:00Z, 2026-01-31 or 1h (ago)"
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[Tt].*", re.ASCII)


def moment(text: str, now_ns: int, is_ahead: bool = False) -> str:
    """RFC 3339. A date is its midnight in UTC. A full time is left to the server. ValueError with a sentence."""
    if text == "now":
        return to_rfc3339(now_ns)
    if _DATE.fullmatch(text):
        return f"{text}T00:00:00Z"
    if _TIME.fullmatch(text):
        return text
    sign, span = (text[0], text[1:]) if text[:1] in ("+", "-") else ("+" if is_ahead else "-", text)
    try:
        distance_ns = parse_duration(span) * 1_000_000
    except ValueError:
        raise ValueError(f"expected {EXPECTED}") from None
    return to_rfc3339(now_ns + distance_ns if sign == "+" else now_ns - distance_ns)


def moments(now_ns: int | None = None, **options: Any) -> dict[str, Any]:
    """Each option as a moment, None where it was not given. Ends the command on a bad one."""
    now_ns = time.time_ns() if now_ns is None else now_ns
    found = {}
    for name, text in options.items():
        try:
            found[name] = None if text is None else moment(text, now_ns)
        except ValueError as error:
            stop(MISUSED, f"--{name.replace('_', '-')} {text}: {error}")
    return found
