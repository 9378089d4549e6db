"""The hint of a refusal follows the line: longer when more wait, shorter when it moves faster."""

from hypothesis import given
from hypothesis import strategies as st

from corvo.model.drain_rate import HINT_MS_MAX, HINT_MS_MIN, HINT_MS_UNKNOWN, SPAN_NS, SPANS_FORGOTTEN, DrainRate


def moving(per_span: int, spans: int = 8) -> DrainRate:
    pace = DrainRate()
    for span in range(1, spans + 1):
        pace.done(per_span, span * SPAN_NS)
    return pace


def test_nothing_is_known_of_a_line_that_never_moved() -> None:
    assert DrainRate().clears_in_ms(1_000) == HINT_MS_UNKNOWN


def test_a_steady_line_clears_in_the_time_that_it_takes() -> None:
    assert 950 <= moving(1_000).clears_in_ms(4_000) <= 1_050


def test_more_waiting_is_a_longer_hint_and_a_faster_line_a_shorter_one() -> None:
    assert moving(1_000).clears_in_ms(8_000) > moving(1_000).clears_in_ms(4_000) > moving(5_000).clears_in_ms(4_000)


def test_a_line_that_slows_down_is_known_within_a_second() -> None:
    pace = moving(10_000)
    for span in range(9, 13):
        pace.done(100, span * SPAN_NS)

    assert pace.clears_in_ms(10_000) > 2 * moving(10_000).clears_in_ms(10_000)


def test_after_a_long_pause_it_starts_anew() -> None:
    pace = moving(1_000)
    pace.done(0, (9 + SPANS_FORGOTTEN) * SPAN_NS)

    assert pace.clears_in_ms(1) == HINT_MS_UNKNOWN


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**10))), st.integers(0, 10**9))
def test_a_hint_is_always_within_reason(steps: list[tuple[int, int]], waiting: int) -> None:
    pace, now = DrainRate(), 0
    for count, passed in steps:
        now += passed
        pace.done(count, now)

    assert HINT_MS_MIN <= pace.clears_in_ms(waiting) <= HINT_MS_MAX
