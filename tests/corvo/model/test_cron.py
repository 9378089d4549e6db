"""When schedules fire. Expected moments are written with their offset, as a clock on the wall would show them."""

import time
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter
from hypothesis import given, settings
from hypothesis import strategies as st

from corvo.model.cron import check, next_slot, slots_between
from corvo.model.timestamps import parse_rfc3339
from tests.support.builders import NOW, SECOND

HOUR = 3600 * SECOND
DAY = 24 * HOUR
YEAR = 365 * DAY

BERLIN = "Europe/Berlin"  # 2026-03-29 02:00 → 03:00, 2026-10-25 03:00 → 02:00
NEW_YORK = "America/New_York"  # 2026-03-08 02:00 → 03:00, 2026-11-01 02:00 → 01:00
LORD_HOWE = "Australia/Lord_Howe"  # 2026-04-05 02:00 → 01:30, 2026-10-04 02:00 → 02:30
APIA = "Pacific/Apia"  # the whole of 2011-12-30 was skipped


def _between(expression: str, zone: str, after: str, upto: str) -> list[int]:
    return slots_between(expression, zone, parse_rfc3339(after), parse_rfc3339(upto), 10_000)


def _one_by_one(expression: str, zone: str, after_ns: int, upto_ns: int) -> list[int]:
    slots = []
    slot = next_slot(expression, zone, after_ns)
    while slot is not None and slot <= upto_ns:
        slots.append(slot)
        slot = next_slot(expression, zone, slot)
    return slots


@pytest.mark.parametrize(
    ("expression", "after", "slots"),
    [
        ("* * * * *", "2026-01-01T00:00:00Z", ["2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z"]),
        ("* * * * *", "2025-12-31T23:59:59.999999999Z", ["2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"]),
        ("*/15 9-10 * * *", "2026-01-01T09:40:00Z", ["2026-01-01T09:45:00Z", "2026-01-01T10:00:00Z"]),
        ("10/20 5 * * *", "2026-01-01T05:10:00Z", ["2026-01-01T05:30:00Z", "2026-01-01T05:50:00Z"]),
        ("59/5 5 * * *", "2026-01-01T00:00:00Z", ["2026-01-01T05:59:00Z", "2026-01-02T05:59:00Z"]),
        ("0 9-9 * * *", "2026-01-01T00:00:00Z", ["2026-01-01T09:00:00Z", "2026-01-02T09:00:00Z"]),
        ("0 23-1 * * *", "2026-01-01T00:00:00Z", ["2026-01-01T01:00:00Z", "2026-01-01T23:00:00Z"]),
        ("0 22-3/3 * * *", "2026-01-01T00:00:00Z", ["2026-01-01T01:00:00Z", "2026-01-01T22:00:00Z"]),
        ("0 0 * * * 30", "2026-01-01T00:00:00Z", ["2026-01-01T00:00:30Z", "2026-01-02T00:00:30Z"]),
        ("* * * * * */20", "2026-01-01T00:00:01Z", ["2026-01-01T00:00:20Z", "2026-01-01T00:00:40Z"]),
        ("0 0 * * 7 0", "2026-01-01T00:00:00Z", ["2026-01-04T00:00:00Z", "2026-01-11T00:00:00Z"]),
        # months and their ends
        ("0 0 29 2 *", "2026-01-01T00:00:00Z", ["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"]),
        ("0 0 31 * *", "2026-01-31T00:00:00Z", ["2026-03-31T00:00:00Z", "2026-05-31T00:00:00Z"]),
        ("0 0 30,31 2,4 *", "2026-01-01T00:00:00Z", ["2026-04-30T00:00:00Z", "2027-04-30T00:00:00Z"]),
        ("0 0 L * *", "2028-01-31T00:00:00Z", ["2028-02-29T00:00:00Z", "2028-03-31T00:00:00Z"]),
        ("0 0 15,L * *", "2026-02-01T00:00:00Z", ["2026-02-15T00:00:00Z", "2026-02-28T00:00:00Z"]),
        ("0 0 1 nov-feb *", "2026-02-01T00:00:00Z", ["2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z"]),
        ("0 0 1 */6 *", "2026-01-01T00:00:00Z", ["2026-07-01T00:00:00Z", "2027-01-01T00:00:00Z"]),
        # weekdays; 2026-01-01 is a Thursday
        ("0 0 * * MON-fri", "2026-01-02T00:00:00Z", ["2026-01-05T00:00:00Z", "2026-01-06T00:00:00Z"]),
        ("0 0 * * fri-mon/3", "2026-01-01T00:00:00Z", ["2026-01-02T00:00:00Z", "2026-01-05T00:00:00Z"]),
        ("0 0 * * 0", "2026-01-01T00:00:00Z", ["2026-01-04T00:00:00Z", "2026-01-11T00:00:00Z"]),
        ("0 0 * * 6-7", "2026-01-01T00:00:00Z", ["2026-01-03T00:00:00Z", "2026-01-04T00:00:00Z"]),
        ("0 0 * * 0-7", "2026-01-01T00:00:00Z", ["2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"]),
        ("0 0 * * fri#2", "2026-01-01T00:00:00Z", ["2026-01-09T00:00:00Z", "2026-02-13T00:00:00Z"]),
        ("0 0 * * sun#5", "2026-01-01T00:00:00Z", ["2026-03-29T00:00:00Z", "2026-05-31T00:00:00Z"]),
        ("0 0 * * L5", "2026-01-01T00:00:00Z", ["2026-01-30T00:00:00Z", "2026-02-27T00:00:00Z"]),
        ("0 0 * * tue,fri#1", "2026-01-01T00:00:00Z", ["2026-01-02T00:00:00Z", "2026-01-06T00:00:00Z"]),
        # both kinds of day restricted: either will do; `*`, `?` and `*/1` are no restriction
        ("0 0 13 * 5", "2026-01-09T00:00:00Z", ["2026-01-13T00:00:00Z", "2026-01-16T00:00:00Z"]),
        ("0 0 30 2 1", "2026-02-16T00:00:00Z", ["2026-02-23T00:00:00Z", "2027-02-01T00:00:00Z"]),
        ("0 0 1 * mon#2", "2026-01-01T00:00:00Z", ["2026-01-12T00:00:00Z", "2026-02-01T00:00:00Z"]),
        ("0 0 13 * ?", "2026-01-09T00:00:00Z", ["2026-01-13T00:00:00Z", "2026-02-13T00:00:00Z"]),
        ("0 0 */1 * 5", "2026-01-09T00:00:00Z", ["2026-01-16T00:00:00Z", "2026-01-23T00:00:00Z"]),
        # names
        ("@hourly", "2026-01-01T00:30:00Z", ["2026-01-01T01:00:00Z", "2026-01-01T02:00:00Z"]),
        ("@daily", "2026-01-01T00:00:00Z", ["2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"]),
        ("@midnight", "2026-01-01T00:00:00Z", ["2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"]),
        ("@weekly", "2026-01-01T00:00:00Z", ["2026-01-04T00:00:00Z", "2026-01-11T00:00:00Z"]),
        ("@monthly", "2026-01-01T00:00:00Z", ["2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"]),
        ("@Yearly", "2026-01-01T00:00:00Z", ["2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z"]),
        ("@annually", "2026-01-01T00:00:00Z", ["2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z"]),
        ("@every 10s", "2026-01-01T00:00:00Z", ["2026-01-01T00:00:10Z", "2026-01-01T00:00:20Z"]),
        ("@every 1h30m", "2026-01-01T00:00:00.5Z", ["2026-01-01T01:30:00Z", "2026-01-01T03:00:00Z"]),
        ("@every 1500ms", "2026-01-01T00:00:00Z", ["2026-01-01T00:00:01.5Z", "2026-01-01T00:00:03Z"]),
        ("@every 7d", "2026-01-01T00:00:00Z", ["2026-01-08T00:00:00Z", "2026-01-15T00:00:00Z"]),  # 1970 began so too
        (" 0\t0  1 * * ", "2026-01-01T00:00:00Z", ["2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"]),
    ],
)
def test_the_next_slots_in_utc(expression: str, after: str, slots: list[str]) -> None:
    check(expression, "UTC")
    first = next_slot(expression, "UTC", parse_rfc3339(after))
    assert first == parse_rfc3339(slots[0])
    assert next_slot(expression, "UTC", first) == parse_rfc3339(slots[1])
    assert _between(expression, "UTC", after, slots[1]) == [parse_rfc3339(slot) for slot in slots]


@pytest.mark.parametrize(
    ("expression", "zone", "after", "slots"),
    [
        # an ordinary day: nine o'clock is nine o'clock on both sides of the change
        ("0 9 * * *", BERLIN, "2026-03-28T00:00:00Z", ["2026-03-28T09:00:00+01:00", "2026-03-29T09:00:00+02:00"]),
        ("0 20 * * *", BERLIN, "2026-10-24T19:00:00Z", ["2026-10-25T20:00:00+01:00", "2026-10-26T20:00:00+01:00"]),
        ("10 3 * * 0", BERLIN, "2026-10-19T00:00:00Z", ["2026-10-25T03:10:00+01:00", "2026-11-01T03:10:00+01:00"]),
        ("0 0 1 * *", "Asia/Kathmandu", "2026-01-02T00:00:00Z", ["2026-02-01T00:00:00+05:45"]),
        # spring, fixed hours: late, at the first moment that exists, and once
        (
            "30 2 * * *",
            BERLIN,
            "2026-03-28T00:00:00Z",
            ["2026-03-28T02:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"],
        ),
        ("*/10 2 29 3 *", BERLIN, "2026-03-28T00:00:00Z", ["2026-03-29T03:00:00+02:00", "2027-03-29T02:00:00+02:00"]),
        ("0 2,3 29 3 *", BERLIN, "2026-03-28T00:00:00Z", ["2026-03-29T03:00:00+02:00", "2027-03-29T02:00:00+02:00"]),
        (
            "30 2 * * *",
            NEW_YORK,
            "2026-03-07T12:00:00Z",
            ["2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"],
        ),
        ("15 2 4 10 *", LORD_HOWE, "2026-10-01T00:00:00Z", ["2026-10-04T02:30:00+11:00"]),
        ("45 2 4 10 *", LORD_HOWE, "2026-10-01T00:00:00Z", ["2026-10-04T02:45:00+11:00"]),
        # spring, every so often
        (
            "30 * * * *",
            BERLIN,
            "2026-03-29T00:00:00Z",
            ["2026-03-29T01:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T03:30:00+02:00"],
        ),
        (
            "*/20 * * * *",
            NEW_YORK,
            "2026-03-08T01:20:00-05:00",
            ["2026-03-08T01:40:00-05:00", "2026-03-08T03:00:00-04:00", "2026-03-08T03:20:00-04:00"],
        ),
        (
            "0 */2 * * *",
            BERLIN,
            "2026-03-28T22:30:00Z",
            ["2026-03-29T00:00:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T04:00:00+02:00"],
        ),
        (
            "*/15 * * * *",
            LORD_HOWE,
            "2026-10-04T01:30:00+10:30",
            ["2026-10-04T01:45:00+10:30", "2026-10-04T02:30:00+11:00", "2026-10-04T02:45:00+11:00"],
        ),
        # autumn, fixed hours: the first occurrence only
        (
            "30 2 * * *",
            BERLIN,
            "2026-10-24T12:00:00Z",
            ["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"],
        ),
        ("30 2 * * *", BERLIN, "2026-10-25T02:30:00+02:00", ["2026-10-26T02:30:00+01:00"]),
        (
            "0,30 1-2 25 10 *",
            BERLIN,
            "2026-10-25T01:00:00+02:00",
            [
                "2026-10-25T01:30:00+02:00",
                "2026-10-25T02:00:00+02:00",
                "2026-10-25T02:30:00+02:00",
                "2027-10-25T01:00:00+02:00",
            ],
        ),
        (
            "0 2,3 * * *",
            BERLIN,
            "2026-10-25T01:00:00+02:00",
            ["2026-10-25T02:00:00+02:00", "2026-10-25T03:00:00+01:00", "2026-10-26T02:00:00+01:00"],
        ),
        (
            "30 1 * * *",
            NEW_YORK,
            "2026-10-31T12:00:00Z",
            ["2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"],
        ),
        (
            "45 1 * * *",
            LORD_HOWE,
            "2026-04-04T12:00:00Z",
            ["2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"],
        ),
        # autumn, every so often: elapsed time
        (
            "30 * * * *",
            BERLIN,
            "2026-10-25T02:00:00+02:00",
            ["2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", "2026-10-25T03:30:00+01:00"],
        ),
        (
            "@hourly",
            NEW_YORK,
            "2026-11-01T00:30:00-04:00",
            ["2026-11-01T01:00:00-04:00", "2026-11-01T01:00:00-05:00", "2026-11-01T02:00:00-05:00"],
        ),
        (
            "0 0/2 * * *",
            BERLIN,
            "2026-10-25T01:00:00+02:00",
            ["2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00", "2026-10-25T04:00:00+01:00"],
        ),
        (
            "*/30 * * * *",
            LORD_HOWE,
            "2026-04-05T01:00:00+11:00",
            [
                "2026-04-05T01:30:00+11:00",
                "2026-04-05T01:30:00+10:30",
                "2026-04-05T02:00:00+10:30",
                "2026-04-05T02:30:00+10:30",
            ],
        ),
        (
            "@every 1h",
            BERLIN,
            "2026-10-25T01:30:00+02:00",
            ["2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00", "2026-10-25T03:00:00+01:00"],
        ),
        # a day that was never on the wall
        ("0 12 * * *", APIA, "2011-12-29T12:00:00-10:00", ["2011-12-31T00:00:00+14:00", "2011-12-31T12:00:00+14:00"]),
    ],
)
def test_the_slots_where_clocks_change(expression: str, zone: str, after: str, slots: list[str]) -> None:
    moments = [parse_rfc3339(slot) for slot in slots]
    assert _one_by_one(expression, zone, parse_rfc3339(after), moments[-1]) == moments
    assert _between(expression, zone, after, slots[-1]) == moments


def test_slots_that_meet_after_a_gap_fire_once() -> None:
    slots = _between("* * * * * *", BERLIN, "2026-03-29T01:59:57+01:00", "2026-03-29T03:00:02+02:00")
    assert slots == [parse_rfc3339("2026-03-29T00:59:58Z") + n * SECOND for n in range(5)]


@pytest.mark.parametrize("zone", ["UTC", BERLIN, NEW_YORK, LORD_HOWE])
def test_every_hour_of_a_year_has_its_slot(zone: str) -> None:
    """What is lost in spring comes back in autumn."""
    assert len(slots_between("0 * * * *", zone, NOW, NOW + YEAR, 10_000)) == 365 * 24


def test_none_when_five_years_hold_no_slot() -> None:
    """2100 is no leap year."""
    assert next_slot("0 0 29 2 *", "UTC", parse_rfc3339("2096-03-01T00:00:00Z")) is None
    assert next_slot("0 0 29 2 *", "UTC", parse_rfc3339("2099-03-01T00:00:00Z")) == parse_rfc3339(
        "2104-02-29T00:00:00Z"
    )


def test_of_many_slots_the_last_are_returned_without_a_walk_through_all() -> None:
    began = time.perf_counter()
    slots = slots_between("* * * * * *", BERLIN, NOW - 20 * YEAR, NOW, 100)
    assert slots == [NOW - n * SECOND for n in reversed(range(100))]
    assert slots_between("@every 1s", BERLIN, 0, NOW, 100) == slots
    assert time.perf_counter() - began < 1


@pytest.mark.parametrize("expression", ["* * * * *", "@every 1m"])
def test_the_range_is_open_below_and_closed_above(expression: str) -> None:
    minute = 60 * SECOND
    assert slots_between(expression, "UTC", NOW, NOW + 2 * minute, 10) == [NOW + minute, NOW + 2 * minute]
    assert slots_between(expression, "UTC", NOW - 1, NOW + 2 * minute - 1, 10) == [NOW, NOW + minute]
    assert slots_between(expression, "UTC", NOW - 1, NOW + 2 * minute - 1, 1) == [NOW + minute]
    assert slots_between(expression, "UTC", NOW - 1, NOW + 2 * minute, 0) == []
    assert slots_between(expression, "UTC", NOW, NOW, 10) == []
    assert slots_between(expression, "UTC", NOW, NOW - minute, 10) == []


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        ("", "has 5 fields"),
        ("* * * *", "this one has 4"),
        ("* * * * * * 2030", "this one has 7"),
        ("60 * * * *", "'60' in the minute field is not between 0 and 59"),
        ("* 24 * * *", "'24' in the hour field"),
        ("* * 0 * *", "'0' in the day of month field"),
        ("* * 32 * *", "'32' in the day of month field"),
        ("* * 0 * * 0", "'0' in the day of month field"),
        ("* * * 13 *", "'13' in the month field"),
        ("* * * * 8", "'8' in the day of week field"),
        ("* * * * * 60", "'60' in the second field"),
        ("* * * mon *", "'mon' in the month field"),
        ("* * * * jan", "'jan' in the day of week field"),
        ("* * * * fri#6", "not a value, range or step"),
        ("* * * * 8#1", "'8' in the day of week field"),
        ("* fri#1 * * *", "not a value, range or step"),
        ("* * 15W * *", "not a value, range or step"),
        ("1,,2 * * * *", "'' in the minute field"),
        ("-5 * * * *", "not a value, range or step"),
        ("*-5 * * * *", "not a value, range or step"),
        ("٥ * * * *", "not a value, range or step"),
        ("? * * * *", "not a value, range or step"),
        ("*/0 * * * *", "the step in '\\*/0' in the minute field must be between 1 and 60"),
        ("*/90 * * * *", "must be between 1 and 60"),
        ("* * * * *\n", "in the day of week field"),
        ("H * * * *", "H and R are refused"),
        ("R * * * *", "H and R are refused"),
        ("* h(0-5)/2 * * *", "H and R are refused"),
        ("* * r * *", "H and R are refused"),
        ("* * * * H", "H and R are refused"),
        ("@reboot", "'@reboot' is none of @hourly"),
        ("@every", "expected a duration"),
        ("@every soon", "expected a duration"),
        ("@every 10s 5s", "expected a duration"),
        ("@every 999ms", "at least 1s"),
        ("@every 2000d", "at most five years"),
        ("0 0 30 2 *", "never fires: no month that it names has a day 30"),
        ("0 0 31 4,6,9,11 ?", "never fires"),
        ("0 " * 200, "longer than 256"),
    ],
)
def test_what_is_no_schedule_is_refused_with_a_sentence(expression: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as refused:
        check(expression, "UTC")
    assert "\n" not in str(refused.value)
    with pytest.raises(ValueError, match=sentence):
        next_slot(expression, "UTC", NOW)
    with pytest.raises(ValueError, match=sentence):
        slots_between(expression, "UTC", NOW, NOW, 1)


@pytest.mark.parametrize(
    "zone",
    ["", "Europe", "Europe/Bonn", "europe/berlin", "localtime", "right/Europe/Berlin", "../UTC", "/etc/localtime"]
    + ["UTC\n", "UTC\0", "\ud800", "x" * 5000],
)
@pytest.mark.parametrize("expression", ["@daily", "@every 1h"])
def test_what_is_no_time_zone_is_refused_with_a_sentence(expression: str, zone: str) -> None:
    with pytest.raises(ValueError, match="is not a time zone such as") as refused:
        check(expression, zone)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 200
    with pytest.raises(ValueError, match="is not a time zone such as"):
        next_slot(expression, zone, NOW)
    with pytest.raises(ValueError, match="is not a time zone such as"):
        slots_between(expression, zone, NOW, NOW, 1)


@given(st.text(alphabet="0123456789*/-,#?LWHR@ monfrijaevy()\t\n", max_size=40))
def test_any_text_is_a_schedule_or_a_value_error(text: str) -> None:
    try:
        check(text, "UTC")
    except ValueError as refused:
        assert "\n" not in str(refused)


# Expressions drawn field by field, with moments near a change of the clocks as often as not.


def _field(low: int, high: int) -> st.SearchStrategy[str]:
    value = st.integers(low, high)
    # Ascending ranges of several values, steps above 1: the forms that croniter, the oracle below, reads as we do.
    ends = st.tuples(value, value).filter(lambda pair: pair[0] < pair[1])
    one = st.one_of(
        value.map(str),
        ends.map(lambda pair: f"{pair[0]}-{pair[1]}"),
        st.integers(2, high).map(lambda step: f"*/{step}"),
    )
    return st.one_of(st.just("*"), st.lists(one, min_size=1, max_size=2).map(",".join))


# No list names all days: whether that is a restriction, croniter decides by the other field.
five_fields = st.tuples(_field(0, 59), _field(0, 23), _field(1, 28), _field(1, 12), _field(0, 4)).map(" ".join)
six_fields = st.tuples(five_fields, _field(0, 59)).map(" ".join)
busy = st.tuples(_field(0, 59), _field(0, 4)).map(lambda fields: f"{fields[0]} {fields[1]} * * *")
periods = st.integers(1, 100_000).map(lambda seconds: f"@every {seconds}s")
schedules = st.one_of(five_fields, six_fields, busy, periods)

zones = st.sampled_from(["UTC", BERLIN, NEW_YORK, LORD_HOWE, APIA, "Asia/Kathmandu", "Africa/Casablanca"])
changes = st.sampled_from(
    [
        parse_rfc3339("2026-03-29T01:00:00Z"),
        parse_rfc3339("2026-10-25T01:00:00Z"),
        parse_rfc3339("2026-03-08T07:00:00Z"),
        parse_rfc3339("2026-11-01T06:00:00Z"),
        parse_rfc3339("2026-04-04T15:00:00Z"),
        parse_rfc3339("2026-10-03T15:30:00Z"),
        parse_rfc3339("2011-12-30T10:00:00Z"),
        parse_rfc3339("2028-01-01T00:00:00Z"),
    ]
)
moments = st.one_of(
    st.integers(NOW - 20 * YEAR, NOW + 50 * YEAR),
    st.tuples(changes, st.integers(-6 * HOUR, 3 * HOUR)).map(sum),
)


@given(schedules, zones, moments)
def test_the_next_slot_is_strictly_later_and_nothing_lies_between(expression: str, zone: str, after: int) -> None:
    slot = next_slot(expression, zone, after)
    if slot is None:
        return
    assert slot > after
    assert next_slot(expression, zone, slot - 1) == slot
    assert slots_between(expression, zone, after, slot, 3) == [slot]


@given(schedules, zones, moments, st.integers(0, 2 * DAY))
def test_a_later_question_has_no_earlier_answer(expression: str, zone: str, after: int, later: int) -> None:
    first, second = next_slot(expression, zone, after), next_slot(expression, zone, after + later)
    if first is not None and second is not None:
        assert first <= second
        assert first == second or first <= after + later


@given(schedules, zones, moments, st.integers(0, 8 * HOUR), st.integers(0, 50))
def test_slots_between_are_the_last_of_those_found_one_by_one(
    expression: str, zone: str, after: int, span: int, at_most: int
) -> None:
    upto = after + min(span, HOUR) if expression.count(" ") == 5 else after + span
    slots = slots_between(expression, zone, after, upto, 10_000)
    assert all(earlier < later for earlier, later in pairwise(slots))
    assert slots_between(expression, zone, after, upto, at_most) == slots[max(len(slots) - at_most, 0) :]
    some = slots[-100:]  # each is a search of its own
    since = slots[-101] if len(slots) > 100 else after
    assert _one_by_one(expression, zone, since, upto) == some


@given(st.one_of(five_fields, six_fields), st.integers(NOW - 20 * YEAR, NOW + 50 * YEAR))
def test_in_utc_croniter_agrees(expression: str, after: int) -> None:
    """Another's search over the same fields, where no clock changes."""
    after_second = datetime.fromtimestamp(after // SECOND, UTC).replace(tzinfo=None)
    expected = croniter(expression, after_second).get_next(datetime).replace(tzinfo=UTC)
    assert next_slot(expression, "UTC", after) == int(expected.timestamp()) * SECOND


def _by_definition(expression: str, zone: ZoneInfo, after: datetime, upto: datetime) -> list[datetime]:
    """The rule of the module, wall time by wall time; croniter walks the wall and knows of no zone."""
    hour = expression.split()[1]
    margin = timedelta(hours=3)
    walls = croniter(expression, (after.astimezone(zone) - margin).replace(tzinfo=None))
    found = set()
    while (wall := walls.get_next(datetime)) < (upto.astimezone(zone) + margin).replace(tzinfo=None):
        first, second = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
        if first.astimezone(zone).replace(tzinfo=None) == wall:
            found |= {first, second} if "*" in hour or "/" in hour else {first}
            continue
        moment = second  # in a gap, this is just before it
        while moment.astimezone(zone).replace(tzinfo=None) < wall:
            moment += timedelta(minutes=1)
        found.add(moment)
    return sorted(moment for moment in found if after < moment <= upto)


def _pinned(zone: str) -> ZoneInfo:
    """As the package has it: the machine may know other rules."""
    with files("tzdata").joinpath("zoneinfo", *zone.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file)


@settings(max_examples=40)
@given(busy, st.sampled_from([BERLIN, NEW_YORK, LORD_HOWE, "Africa/Casablanca"]), changes)
def test_around_a_change_the_slots_are_those_of_the_definition(expression: str, zone: str, change: int) -> None:
    after, upto = change - 3 * HOUR, change + 3 * HOUR
    moments = (datetime.fromtimestamp(moment // SECOND, UTC) for moment in (after, upto))
    expected = [int(moment.timestamp()) * SECOND for moment in _by_definition(expression, _pinned(zone), *moments)]
    assert slots_between(expression, zone, after, upto, 10_000) == expected
