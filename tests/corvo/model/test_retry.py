"""Backoff: four functions of the attempt, capped, in whole milliseconds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.model.limits import ATTEMPTS_MAX, DELAY_MS_MAX
from corvo.model.retry import BACKOFF_NAMES, Backoff, attempts_remaining, delay_ms, shortened


@pytest.mark.parametrize(
    ("backoff", "delays"),
    [
        (Backoff.NONE, [0, 0, 0, 0, 0]),
        (Backoff.FIXED, [100, 100, 100, 100, 100]),
        (Backoff.LINEAR, [100, 200, 300, 400, 500]),
        (Backoff.EXPONENTIAL, [100, 200, 400, 800, 1_000]),
    ],
)
def test_each_backoff_grows_in_its_own_way_up_to_the_cap(backoff: Backoff, delays: list[int]) -> None:
    assert [delay_ms(backoff, 100, 1_000, attempt) for attempt in range(1, 6)] == delays


def test_a_cap_below_the_base_wins() -> None:
    assert [delay_ms(backoff, 5_000, 10, 1) for backoff in Backoff] == [0, 10, 10, 10]


@given(
    st.sampled_from(Backoff),
    st.integers(0, DELAY_MS_MAX),
    st.integers(0, DELAY_MS_MAX),
    st.integers(1, ATTEMPTS_MAX - 1),
)
def test_delays_are_whole_bounded_and_never_shrink(backoff: Backoff, base_ms: int, max_ms: int, attempt: int) -> None:
    delay, later = (delay_ms(backoff, base_ms, max_ms, number) for number in (attempt, attempt + 1))

    assert type(delay) is int
    assert 0 <= delay <= later <= max_ms


def test_the_thousandth_attempt_waits_for_the_cap() -> None:
    assert delay_ms(Backoff.EXPONENTIAL, 1, DELAY_MS_MAX, ATTEMPTS_MAX) == DELAY_MS_MAX


@pytest.mark.parametrize(
    ("max_retries", "attempt", "left"),
    [(3, 0, 3), (3, 1, 2), (3, 3, 0), (3, 4, 0), (1, 1, 0), (0, 0, 1), (0, 1, 0), (1000, 999, 1)],
)
def test_max_retries_counts_attempts_in_all_and_one_is_always_made(max_retries: int, attempt: int, left: int) -> None:
    assert attempts_remaining(max_retries, attempt) == left


def test_backoffs_keep_their_stored_numbers() -> None:
    assert dict(enumerate(BACKOFF_NAMES)) == {0: "none", 1: "fixed", 2: "linear", 3: "exponential"}


@given(st.integers(0, DELAY_MS_MAX), st.integers(0, 1000), st.integers(1, ATTEMPTS_MAX))
def test_jitter_takes_away_at_most_the_part_it_may(delay: int, permille: int, attempt: int) -> None:
    left = shortened(delay, permille, "s00_job_1", attempt)

    assert delay - delay * permille // 1000 - 1 <= left <= delay
    assert left == shortened(delay, permille, "s00_job_1", attempt)
