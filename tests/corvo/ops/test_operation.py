"""Spreading the items of a request over shards and gathering the answers."""

from hypothesis import given
from hypothesis import strategies as st

from corvo.ops.operation import gather, is_unique, spread


@given(st.lists(st.integers(0, 20)), st.integers(1, 4))
def test_what_is_spread_is_gathered_in_the_order_of_the_request(items: list[int], shard_count: int) -> None:
    groups = spread(items, lambda item: item % shard_count)

    results = [[items[number] for number in numbers] for numbers in groups.values()]

    assert gather(len(items), groups, results) == items


def test_each_shard_gets_its_items_in_the_order_of_the_request() -> None:
    assert spread(["b1", "a1", "b2", "a2"], lambda item: "ab".index(item[0])) == {1: [0, 2], 0: [1, 3]}


def test_repeated_values_are_not_unique() -> None:
    assert is_unique(["a", "b"])
    assert not is_unique(["a", "b", "a"])
