"""Moments on the command line."""

import pytest

from corvo.cli.commands.times import moment
from tests.cli.answers import NOON, NOON_NS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", NOON),
        ("1h", "2026-01-31T11:00:00.000000000Z"),
        ("-1h", "2026-01-31T11:00:00.000000000Z"),
        ("+1h", "2026-01-31T13:00:00.000000000Z"),
        ("7d", "2026-01-24T12:00:00.000000000Z"),
        ("2026-02-10", "2026-02-10T00:00:00Z"),
        ("2026-02-10T09:00:00+01:00", "2026-02-10T09:00:00+01:00"),
    ],
)
def test_a_moment_is_a_time_a_date_or_a_span(text: str, expected: str) -> None:
    assert moment(text, NOON_NS) == expected


def test_a_span_looks_ahead_where_that_is_meant() -> None:
    assert moment("1h", NOON_NS, is_ahead=True) == "2026-01-31T13:00:00.000000000Z"
    assert moment("-1h", NOON_NS, is_ahead=True) == "2026-01-31T11:00:00.000000000Z"


@pytest.mark.parametrize("text", ["", "soon", "1", "+", "yesterday", "2026-1-1"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a time"):
        moment(text, NOON_NS)
