"""When a schedule fires: arithmetic on an expression, a time zone and a moment. No clock is read here.

An expression is one of

- five fields: minute, hour, day of month, month, day of week (0 and 7 are Sunday). Each is a list of `*`, values,
  ranges (`9-17`; `fri-mon` goes round the end) and steps (`*/5`, `10/15`, `8-18/2`). Months and weekdays may be
  named. `L` is the last day of the month, `fri#2` the second Friday, `L5` the last one; `?` is `*` in the fields
  of the day. When both of these are restricted (anything but `*` or `?`), a day that matches either one fires;
- six fields: the same with the seconds at the END (not first, as in Quartz);
- `@hourly`, `@daily`, `@midnight`, `@weekly`, `@monthly`, `@yearly`, `@annually`;
- `@every 90s`: whole multiples of the span counted from 1970-01-01T00:00:00Z, in any time zone, at least a second.

**When the clocks change**, the rule is Vixie cron's. A slot whose wall time is skipped in spring fires at the first
moment after the gap; slots that meet at one moment fire once. A slot whose wall time comes twice in autumn fires
once, at the first occurrence, when the hours are fixed; when the hour field holds a `*` or a step, the schedule is
periodic, follows elapsed time and fires in both. Two departures: Vixie also treats a `*` in the minutes as periodic,
and drops the slots of periodic schedules that fall into the gap; we never lose a slot.

Replicas must find the same moments. So the time zones are those of the pinned `tzdata` package and never those of
the machine, and the forms `H` and `R` (hashed, random) of other crons are refused. We do not use croniter here: it
reads `9-9` as every hour, `59/5` as every five minutes and `*/90` as every full hour, with six fields it refuses Sunday
as 7, and it follows another rule where clocks change.
"""

import re
from calendar import monthrange
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from importlib.resources import files
from io import BytesIO
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import msgspec

from corvo.model.limits import SCHEDULE_AHEAD_NS_MAX, TEXT_CHARS_MAX
from corvo.model.timestamps import parse_duration

EVERY_MS_MIN = 1_000

_SECOND_NS = 1_000_000_000
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400  # in seconds, as every wall time and moment below
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_LONGEST_MONTH = {month: monthrange(2000, month)[1] for month in range(1, 13)}  # 2000 was a leap year

_ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_BLANK = re.compile(r"[ \t]+")
_VALUE = r"[0-9]{1,2}|[a-z]{3}"
_ITEM = re.compile(rf"(?:\*|({_VALUE})(?:-({_VALUE}))?)(?:/([0-9]{{1,3}}))?")
_NTH_WEEKDAY = re.compile(rf"({_VALUE})#([1-5])")
_LAST_WEEKDAY = re.compile(rf"l({_VALUE})")
_NOT_REPEATABLE = re.compile(r"[hr](?:[(/].*)?")


class Field(msgspec.Struct, frozen=True):
    name: str
    low: int
    size: int
    high: int  # the highest value that may be written; for weekdays 7, because Sunday is 0 and 7
    names: tuple[str, ...] = ()  # of the values from `low` on


_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_SECONDS = Field("second", 0, 60, 59)
_MINUTES = Field("minute", 0, 60, 59)
_HOURS = Field("hour", 0, 24, 23)
_MONTHS = Field("month", 1, 12, 12, _MONTH_NAMES)
_DAYS_OF_MONTH = Field("day of month", 1, 31, 31)
_DAYS_OF_WEEK = Field("day of week", 0, 7, 7, _WEEKDAY_NAMES)


class Every(msgspec.Struct, frozen=True):
    period_ns: int


class Days(msgspec.Struct, frozen=True):
    """Which days of the calendar match."""

    months: frozenset[int]
    days: frozenset[int]
    last_day: bool
    weekdays: frozenset[int]  # Sunday is 0
    nth_weekdays: frozenset[tuple[int, int]]  # (weekday, 1 to 5, or 0 for the last one)
    either: bool  # day of month and day of week are both restricted: one of them is enough


class Calendar(msgspec.Struct, frozen=True):
    days: Days
    hours: tuple[int, ...]
    minutes: tuple[int, ...]
    seconds: tuple[int, ...]
    every_so_often: bool  # the hour field holds a `*` or a step: repeated wall times count


class Stretch(msgspec.Struct, frozen=True):
    """A span of time, [start, end), in which the clocks of a zone are `offset` ahead of UTC."""

    start: int
    end: int
    offset: int
    skipped: int  # seconds of wall time that the clocks skipped at `start`
    fresh: int  # wall times from here on are new; later than `start` where clocks were put back


def check(expression: str, timezone: str) -> None:
    """ValueError with a sentence when the expression or the zone is wrong, or when no slot can ever come."""
    _parse(expression)
    _zone(timezone)


def next_slot(expression: str, timezone: str, after_ns: int) -> int | None:
    """The first slot strictly after that moment; None when five years hold none."""
    rule, upto_ns = _parse(expression), after_ns + SCHEDULE_AHEAD_NS_MAX
    _zone(timezone)
    if isinstance(rule, Every):
        return (after_ns // rule.period_ns + 1) * rule.period_ns
    moment = next(_moments(rule, timezone, *_whole_seconds(after_ns, upto_ns), step=1), None)
    return None if moment is None else moment * _SECOND_NS


def slots_between(expression: str, timezone: str, after_ns: int, upto_ns: int, at_most: int) -> list[int]:
    """The slots in (after, upto], oldest first; of more than `at_most` the last ones.

    Searched backwards: a schedule that fires every second and missed a year costs no more than the slots returned.
    """
    rule = _parse(expression)
    _zone(timezone)
    if isinstance(rule, Every):
        last = upto_ns // rule.period_ns
        first = max(after_ns // rule.period_ns + 1, last - at_most + 1)
        return [count * rule.period_ns for count in range(first, last + 1)]
    newest_first = _moments(rule, timezone, *_whole_seconds(after_ns, upto_ns), step=-1)
    return [moment * _SECOND_NS for moment in islice(newest_first, at_most)][::-1]


def _whole_seconds(after_ns: int, upto_ns: int) -> tuple[int, int]:
    """(after, upto] in nanoseconds → [low, high) in seconds: slots fall on whole seconds."""
    return after_ns // _SECOND_NS + 1, upto_ns // _SECOND_NS + 1


# The text of an expression.


@lru_cache(maxsize=1024)
def _parse(expression: str) -> Calendar | Every:
    if len(expression) > TEXT_CHARS_MAX:
        raise ValueError(f"the schedule is longer than {TEXT_CHARS_MAX} characters")
    words = _BLANK.split(expression.strip(" \t"))
    if words[0].lower() == "@every":
        return _every(" ".join(words[1:]))
    if len(words) == 1 and words[0].startswith("@"):
        alias = _ALIASES.get(words[0].lower())
        if alias is None:
            raise ValueError(f"{words[0]!r} is none of {', '.join(_ALIASES)} and @every")
        words = alias.split()
    if len(words) not in (5, 6):
        raise ValueError(f"a schedule has 5 fields, or 6 with the seconds at the end; this one has {len(words)}")
    return _calendar([word.lower() for word in words])


def _every(span: str) -> Every:
    period_ms = parse_duration(span)
    if period_ms < EVERY_MS_MIN:
        raise ValueError("@every needs a duration of at least 1s")
    if period_ms * 1_000_000 > SCHEDULE_AHEAD_NS_MAX:
        raise ValueError("@every needs a duration of at most five years")
    return Every(period_ms * 1_000_000)


def _calendar(texts: list[str]) -> Calendar:
    minute, hour, day, month, weekday, second = [*texts, "0"][:6]
    return Calendar(
        days=_days(day, month, weekday),
        hours=tuple(sorted(_values(_HOURS, hour))),
        minutes=tuple(sorted(_values(_MINUTES, minute))),
        seconds=tuple(sorted(_values(_SECONDS, second))),
        every_so_often="*" in hour or "/" in hour,
    )


def _days(day: str, month: str, weekday: str) -> Days:
    day, weekday = _any_day(day), _any_day(weekday)
    numbered = [item for item in day.split(",") if item != "l"]
    weekdays: set[int] = set()
    nth_weekdays: set[tuple[int, int]] = set()
    for item in weekday.split(","):
        if nth := _NTH_WEEKDAY.fullmatch(item):
            nth_weekdays.add((_value(_DAYS_OF_WEEK, nth[1]) % 7, int(nth[2])))
        elif last := _LAST_WEEKDAY.fullmatch(item):
            nth_weekdays.add((_value(_DAYS_OF_WEEK, last[1]) % 7, 0))
        else:
            weekdays |= _item_values(_DAYS_OF_WEEK, item)
    days = Days(
        months=_values(_MONTHS, month),
        days=frozenset().union(*(_item_values(_DAYS_OF_MONTH, item) for item in numbered)),
        last_day="l" in day.split(","),
        weekdays=frozenset(weekdays),
        nth_weekdays=frozenset(nth_weekdays),
        either="*" not in (day, weekday),
    )
    _check_some_day(days)
    return days


def _any_day(text: str) -> str:
    return "*" if text in ("?", "*/1") else text


def _check_some_day(days: Days) -> None:
    """Refuse a schedule that never fires, such as 30 February. Weekdays and last days come in every month."""
    if days.either or days.last_day:
        return
    if min(days.days) > max(_LONGEST_MONTH[month] for month in days.months):
        raise ValueError(f"the schedule never fires: no month that it names has a day {min(days.days)}")


def _values(field: Field, text: str) -> frozenset[int]:
    return frozenset().union(*(_item_values(field, item) for item in text.split(",")))


def _item_values(field: Field, item: str) -> frozenset[int]:
    match = _ITEM.fullmatch(item)
    if match is None:
        if _NOT_REPEATABLE.fullmatch(item):
            raise ValueError(f"{item!r} in the {field.name} field: H and R are refused, a schedule must be repeatable")
        raise ValueError(f"{item!r} in the {field.name} field is not a value, range or step")
    first, last, step = match.groups()
    low = _value(field, first) if first else field.low
    high = _value(field, last) if last else low if first and not step else field.low + field.size - 1
    if step and not 1 <= int(step) <= field.size:
        raise ValueError(f"the step in {item!r} in the {field.name} field must be between 1 and {field.size}")
    if high < low:
        high += field.size  # `fri-mon`, `22-2`
    return frozenset((value - field.low) % field.size + field.low for value in range(low, high + 1, int(step or 1)))


def _value(field: Field, text: str) -> int:
    if text in field.names:
        return field.low + field.names.index(text)
    if not text.isdigit() or not field.low <= int(text) <= field.high:
        raise ValueError(f"{text!r} in the {field.name} field is not between {field.low} and {field.high}")
    return int(text)


# The clocks of a zone.


def _package_data(*path: str) -> bytes:
    """The one place where the core reads a file. The file belongs to a pinned package and is the same on every machine,
    so this is as pure as an import."""
    return files("tzdata").joinpath(*path).read_bytes()


@lru_cache(maxsize=1)
def _zone_names() -> frozenset[str]:
    return frozenset(_package_data("zones").decode().split())


@lru_cache(maxsize=1024)
def _zone(name: str) -> ZoneInfo:
    if name not in _zone_names():
        raise ValueError(f"{name[:64]!r} is not a time zone such as UTC or Europe/Berlin")
    return ZoneInfo.from_file(BytesIO(_package_data("zoneinfo", *name.split("/"))), key=name)


@lru_cache(maxsize=4096)
def _stretches(zone_name: str, year: int) -> tuple[Stretch, ...]:
    """The stretches of a year of UTC. No zone changes its clocks twice within a day, so one check a day finds all."""
    zone, start, end = _zone(zone_name), _new_year(year), _new_year(year + 1)
    first_look = start - 2 * _DAY  # a clock change on New Year's Eve affects the new year
    looks = pairwise(range(first_look, end + 1, _DAY))
    changes = [_change(zone, low, high) for low, high in looks if _offset(zone, low) != _offset(zone, high)]
    found = []
    for since, until in pairwise([first_look, *(change for change in changes if change < end), end]):
        offset = _offset(zone, since)
        ahead = offset - _offset(zone, since - 1)
        skipped = max(ahead, 0) if since >= start else 0
        if until > start:
            found.append(Stretch(max(since, start), until, offset, skipped, since + max(-ahead, 0)))
    return tuple(found)


def _change(zone: ZoneInfo, low: int, high: int) -> int:
    """The first second with the offset of `high`, which is not that of `low`."""
    new = _offset(zone, high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _offset(zone, middle) == new else (middle, high)
    return high


def _offset(zone: ZoneInfo, moment: int) -> int:
    offset = datetime.fromtimestamp(moment, zone).utcoffset()
    assert offset is not None
    return offset // timedelta(seconds=1)


def _new_year(year: int) -> int:
    return (date(year, 1, 1).toordinal() - _EPOCH_ORDINAL) * _DAY


def _year(moment: int) -> int:
    return datetime.fromtimestamp(moment, UTC).year


# The search. `step` is 1 for oldest first, -1 for newest first.


def _moments(rule: Calendar, zone_name: str, low: int, high: int, step: int) -> Iterator[int]:
    """The slots in [low, high)."""
    if low >= high:
        return
    for year in range(_year(low), _year(high - 1) + 1)[::step]:
        for stretch in _stretches(zone_name, year)[::step]:
            yield from _moments_of_stretch(rule, stretch, low, high, step)


def _moments_of_stretch(rule: Calendar, stretch: Stretch, low: int, high: int, step: int) -> Iterator[int]:
    start, offset = stretch.start, stretch.offset
    since, until = max(low, start), min(high, stretch.end)
    if not rule.every_so_often:
        since = max(since, stretch.fresh)
    landed = low <= start < high and _has_wall(rule, start + offset - stretch.skipped, start + offset)
    if landed:
        since = start + 1  # what is due at `start` itself is the same moment
    if landed and step > 0:
        yield start
    for wall in _walls(rule, since + offset, until + offset, step):
        yield wall - offset
    if landed and step < 0:
        yield start


def _has_wall(rule: Calendar, low: int, high: int) -> bool:
    return next(_walls(rule, low, high, 1), None) is not None


def _walls(rule: Calendar, low: int, high: int, step: int) -> Iterator[int]:
    """The wall times in [low, high) that the rule names, in seconds since 1970 on the wall."""
    if low >= high:
        return
    for day in range(low // _DAY, (high - 1) // _DAY + 1)[::step]:
        if not _suits(rule.days, day):
            continue
        for hour in _touching((day * _DAY + hour * _HOUR for hour in rule.hours[::step]), _HOUR, low, high):
            for minute in _touching((hour + minute * _MINUTE for minute in rule.minutes[::step]), _MINUTE, low, high):
                yield from _touching((minute + second for second in rule.seconds[::step]), 1, low, high)


def _touching(starts: Iterable[int], length: int, low: int, high: int) -> Iterator[int]:
    return (start for start in starts if start + length > low and start < high)


def _suits(days: Days, day: int) -> bool:
    day_date = date.fromordinal(_EPOCH_ORDINAL + day)
    if day_date.month not in days.months:
        return False
    by_month = _suits_month(days, day_date)
    if days.either:
        return by_month or _suits_week(days, day_date)
    return by_month and _suits_week(days, day_date)


def _suits_month(days: Days, day: date) -> bool:
    return day.day in days.days or (days.last_day and day.day == monthrange(day.year, day.month)[1])


def _suits_week(days: Days, day: date) -> bool:
    weekday = day.isoweekday() % 7
    if weekday in days.weekdays:
        return True
    if not days.nth_weekdays:
        return False
    is_last = day.day + 7 > monthrange(day.year, day.month)[1]
    return (weekday, (day.day + 6) // 7) in days.nth_weekdays or (is_last and (weekday, 0) in days.nth_weekdays)
