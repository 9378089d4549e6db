"""Moments and spans as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.model.timestamps import (
    EARLIEST_NS,
    LATEST_NS,
    parse_duration,
    parse_rfc3339,
    to_rfc3339,
    to_rfc3339_or_none,
)
from tests.support.builders import NOW, SECOND

moments = st.integers(EARLIEST_NS, LATEST_NS - 1)


@given(moments)
def test_a_moment_survives_being_written_and_read(moment: int) -> None:
    assert parse_rfc3339(to_rfc3339(moment)) == moment


@given(moments, moments)
def test_the_order_of_the_text_is_the_order_of_time(one: int, other: int) -> None:
    assert (to_rfc3339(one) < to_rfc3339(other)) == (one < other)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-01T00:00:00Z", NOW),
        ("2026-01-01", NOW),  # midnight in UTC
        ("2026-01-01t00:00:00z", NOW),
        ("2026-01-01T00:00:00.5Z", NOW + SECOND // 2),
        ("2026-01-01T00:00:00.000000001Z", NOW + 1),
        ("2026-01-01T02:00:00+02:00", NOW),
        ("2025-12-31T18:30:00-05:30", NOW),
        ("2000-01-01T00:00:00Z", EARLIEST_NS),
        ("2000-01-01T05:00:00+05:00", EARLIEST_NS),
        ("2199-12-31T23:59:59.999999999Z", LATEST_NS - 1),
        ("2024-02-29T00:00:00Z", 1_709_164_800 * SECOND),
    ],
)
def test_every_form_of_rfc_3339_is_read(text: str, moment: int) -> None:
    assert parse_rfc3339(text) == moment


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tomorrow",
        "2026-02-30",
        "2026-1-1",
        "2026-01-01Z",
        "2026-01-01T00:00:00",  # no offset: whose midnight?
        "2026-01-01 00:00:00Z",
        "2026-01-01T00:00:00.Z",
        "2026-01-01T00:00:00.1234567890Z",
        "2026-01-01T00:00:00+0200",
        "2026-01-01T00:00:00+24:00",
        "2026-01-01T00:00:00+00:60",
        "2026-02-30T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:00:60Z",
        "0000-01-01T00:00:00Z",
        "1999-12-31T23:59:59.999999999Z",
        "2200-01-01T00:00:00Z",
        "2200-01-01T00:00:00Z\n",
        "٢٠٢٦-01-01T00:00:00Z",
        " 2026-01-01T00:00:00Z",
    ],
)
def test_what_is_no_moment_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w+ \w+"):
        parse_rfc3339(text)


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+01:00"])
def test_an_offset_that_leads_out_of_the_calendar_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w+ \w+"):
        parse_rfc3339(text)


@given(st.text(alphabet="0123456789-+:.TtZz ", max_size=40))
def test_any_text_is_a_moment_or_a_value_error(text: str) -> None:
    try:
        assert EARLIEST_NS <= parse_rfc3339(text) < LATEST_NS
    except ValueError:
        pass


def test_zero_means_that_it_never_happened() -> None:
    assert to_rfc3339_or_none(0) is None
    assert to_rfc3339_or_none(NOW) == "2026-01-01T00:00:00.000000000Z"


@pytest.mark.parametrize(
    ("text", "span_ms"),
    [
        ("250ms", 250),
        ("5s", 5_000),
        ("10m", 600_000),
        ("1h30m", 5_400_000),
        ("7d", 604_800_000),
        ("1.5s", 1_500),
        ("0s", 0),
        ("1d1h1m1s1ms", 90_061_001),
        ("0.000001s", 0),
    ],
)
def test_durations_are_read_as_in_go(text: str, span_ms: int) -> None:
    assert parse_duration(text) == span_ms


@pytest.mark.parametrize(
    "text", ["", "5", "s", "-5s", "+5s", "5 s", "5S", "1w", "5s ", ".5s", "1e3s", "٥s", "9" * 64 + "s"]
)
def test_what_is_no_duration_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match="expected a duration such as"):
        parse_duration(text)


@given(st.integers(0, 10**9))
def test_any_number_of_milliseconds_is_read_exactly(span_ms: int) -> None:
    assert parse_duration(f"{span_ms}ms") == span_ms
    assert parse_duration(f"{span_ms // 1000}.{span_ms % 1000:03d}s") == span_ms
