"""Turns drawn by weight: always the same for one seed, and fair over many."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.model.weighted_order import draw, order, scrambled

WEIGHTS = st.lists(st.integers(1, 1000), min_size=1, max_size=20)
SEEDS = st.integers(0, 2**63 - 1)


@given(WEIGHTS, SEEDS)
def test_an_order_holds_every_place_once_and_never_changes(weights: list[int], seed: int) -> None:
    assert sorted(order(weights, seed)) == list(range(len(weights)))
    assert order(weights, seed) == order(weights, seed)


@given(WEIGHTS, SEEDS)
def test_a_draw_is_a_place(weights: list[int], seed: int) -> None:
    assert 0 <= draw(weights, seed) < len(weights)


def test_the_numbers_are_pinned() -> None:
    """Replicas of two versions draw the same: these never change."""
    assert scrambled(0) == 16294208416658607535
    assert [draw([1, 2, 3], seed) for seed in range(8)] == [1, 2, 2, 2, 2, 1, 1, 2]


@pytest.mark.parametrize("step", [1, 1 << 20])
def test_shares_are_those_of_the_weights(step: int) -> None:
    weights = [5, 3, 1, 1]
    count = 20_000
    first = Counter(order(weights, 7 + number * step)[0] for number in range(count))

    for place, weight in enumerate(weights):
        assert abs(first[place] / count - weight / 10) < 0.015


def test_without_one_the_others_keep_their_shares() -> None:
    weights = [90, 5, 5]
    count = 20_000
    second = Counter(next(place for place in order(weights, number << 20) if place) for number in range(count))

    assert abs(second[1] / count - 0.5) < 0.015
