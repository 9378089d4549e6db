"""Spreading the items of a request over shards and gathering the answers."""

from hypothesis import given
from hypothesis import strategies as st

from corvo.endpoint import gather, spread


@given(st.lists(st.integers(0, 20)), st.integers(1, 4))
def test_what_is_spread_is_gathered_in_the_order_of_the_request(items: list[int], shard_count: int) -> None:
    groups = spread(items, lambda item: item % shard_count)

    results = [[items[number] for number in numbers] for numbers in groups.values()]

    assert gather([None] * len(items), groups, results) == items


def test_each_shard_gets_its_items_in_the_order_of_the_request() -> None:
    assert spread(["b1", "a1", "b2", "a2"], lambda item: "ab".index(item[0])) == {1: [0, 2], 0: [1, 3]}


def test_an_item_of_no_shard_keeps_the_answer_it_was_given() -> None:
    groups = spread(["a1", "?", "a2"], lambda item: 0 if item[0] == "a" else None)

    assert groups == {0: [0, 2]}
    assert gather(["x", "nobody", "z"], groups, [["one", "two"]]) == ["one", "nobody", "two"]
