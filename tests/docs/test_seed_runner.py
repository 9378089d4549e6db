"""The comparison that decides over a row of the seeds can fail."""

from typing import Any

import pytest

from docs.seeds.rows import ABSENT
from tests.docs.seed_runner import difference


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (..., None),
        (str, "x"),
        (None, None),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": ABSENT}, {}),
        ({"a": ABSENT}, {"a": None}),
        ([{"a": 1}, int], [{"a": 1, "b": 2}, 3]),
        ([..., {"a": 1}], [{"a": 2}, {"a": 1}]),
        ([...], []),
    ],
)
def test_what_fits_has_no_difference(expected: Any, actual: Any) -> None:
    assert difference(expected, actual) == ""


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (1, True),
        (1, "1"),
        (str, 1),
        (None, 0),
        ({"a": 1}, {"a": 2}),
        ({"a": ...}, {}),
        ({"a": 1}, [1]),
        ({"a": ABSENT}, {"a": 0}),
        ([1], [1, 2]),
        ([], [1]),
        ([..., {"a": 1}], [{"a": 2}]),
        ([...], {}),
    ],
)
def test_a_difference_is_told(expected: Any, actual: Any) -> None:
    assert difference(expected, actual)
