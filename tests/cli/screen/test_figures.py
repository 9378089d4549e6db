"""Figures in few characters."""

import pytest

from corvo.cli.screen.figures import age, per_second, short, sparkline
from tests.cli.answers import NOON, NOON_NS


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (0.44, "0.4"), (17, "17"), (999, "999"), (1000, "1.0k"), (12_345, "12.3k"), (99_960, "100k"),
     (456_000, "456k"), (999_999, "1.0M"), (1_234_567, "1.2M"), (10**12, "1T")],
)  # fmt: skip
def test_numbers_are_short(number: float, text: str) -> None:
    assert short(number) == text


def test_sparklines_rise_to_the_highest_sample() -> None:
    assert sparkline([0, 4, 8]) == "▁▅█"
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([]) == ""


def test_ages_are_in_the_largest_whole_unit() -> None:
    assert [age(NOON, NOON_NS + seconds * 10**9) for seconds in (-5, 59, 61, 7200, 200_000)] == [
        "0s", "59s", "1m", "2h", "2d",
    ]  # fmt: skip
    assert age("never", NOON_NS) == "?"
    assert age(None, NOON_NS) == ""


def test_a_counter_that_went_back_is_no_negative_rate() -> None:
    assert per_second(9, 3, 1.0) == 0.0
    assert per_second(0, 3, 0.0) == 0.0
    assert per_second(1, 5, 2.0) == 2.0
