"""Times and durations as text: RFC 3339 and Go-style durations.

Inside the system a time is an integer of nanoseconds since 1970, a duration an integer of milliseconds. The text of a
time has nine decimals and a `Z`, so it sorts by time.
"""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

EARLIEST_NS = 946_684_800 * 10**9  # 2000-01-01
LATEST_NS = 7_258_118_400 * 10**9  # 2200-01-01

_RFC3339 = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})(?:[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?([Zz]|([+-])(\d{2}):(\d{2})))?", re.ASCII
)
_DURATION = re.compile(r"(?:\d+(?:\.\d{1,6})?(?:ms|s|m|h|d))+", re.ASCII)
_DURATION_PART = re.compile(r"(\d+(?:\.\d{1,6})?)(ms|s|m|h|d)", re.ASCII)
_UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def to_rfc3339(moment_ns: int) -> str:
    seconds, nanos = divmod(moment_ns, 1_000_000_000)
    return f"{_whole_second(seconds)}.{nanos:09d}Z"


def to_rfc3339_or_none(moment_ns: int) -> str | None:
    """Zero means "never happened"."""
    return to_rfc3339(moment_ns) if moment_ns else None


def parse_rfc3339(text: str) -> int:
    """Nanoseconds since 1970. A date alone means its midnight in UTC. ValueError with a sentence when the text is no
    moment between 2000 and 2199."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError("expected an RFC 3339 time with an offset, such as 2026-01-31T09:00:00Z, or a date")
    year, month, day, hour, minute, second = (int(match[i] or 0) for i in range(1, 7))
    hours, minutes = int(match[10] or 0), int(match[11] or 0)
    if hours > 23 or minutes > 59:
        raise ValueError("the offset must be between -23:59 and +23:59")
    offset = timedelta(hours=hours, minutes=minutes)
    try:
        whole = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        whole = whole - offset if match[9] == "+" else whole + offset
    except (ValueError, OverflowError):  # the offset may lead out of the years that datetime supports
        raise ValueError(f"{text} is not a date and time that exists") from None
    moment_ns = int(whole.timestamp()) * 1_000_000_000 + int((match[7] or "0").ljust(9, "0"))
    if not EARLIEST_NS <= moment_ns < LATEST_NS:
        raise ValueError("the year must be between 2000 and 2199")
    return moment_ns


def parse_duration(text: str) -> int:
    """Milliseconds; `5s`, `1h30m`, `250ms`, `7d`. ValueError with a sentence otherwise."""
    if len(text) > 64 or not _DURATION.fullmatch(text):
        raise ValueError("expected a duration such as 250ms, 5s, 10m, 1h30m or 7d")
    return round(sum(float(number) * _UNIT_MS[unit] for number, unit in _DURATION_PART.findall(text)))


@lru_cache(maxsize=256)
def _whole_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
