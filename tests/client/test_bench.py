"""What a benchmark is asked to do, and how it counts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.cli.commands import bench
from corvo.client.bench import plan as plans
from corvo.client.bench.plan import BadPlan, BenchPlan, make_plan
from corvo.client.bench.tally import Tally, percentiles
from corvo.model.limits import FETCH_COUNT_MAX


def a_plan(**given: Any) -> BenchPlan:
    usual: dict[str, Any] = {"mode": "steady", "protocol": "stream", "connections": 2, "queues": 1, "payload_bytes": 9}
    return make_plan(**{**usual, "batch": None, "jobs": None, "seconds": None, "rate": None, **given})


def test_every_plan_has_an_end() -> None:
    assert (a_plan().jobs, a_plan().seconds) == (None, 10.0)
    assert (a_plan(jobs=7).jobs, a_plan(jobs=7).seconds) == (7, plans.TIME_S_MAX)
    assert (a_plan(mode="burst").jobs, a_plan(mode="burst").seconds) == (20_000, plans.TIME_S_MAX)
    assert a_plan(mode="latency").jobs == 1_000
    assert a_plan(mode="latency", seconds=2.0, rate=50.0).jobs == 100
    assert a_plan(mode="latency", jobs=30).jobs == 30


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"rate": 5.0}, "--rate is for --mode latency"),
        ({"mode": "burst", "rate": 5.0}, "--rate is for --mode latency"),
        ({"mode": "burst", "seconds": 3.0}, "give --jobs instead"),
        ({"mode": "latency", "batch": 5}, "leave --batch away"),
    ],
)
def test_what_does_not_go_together_is_refused(given: dict[str, Any], word: str) -> None:
    with pytest.raises(BadPlan, match=word):
        a_plan(**given)


def test_the_command_knows_the_bounds_of_the_plan() -> None:
    assert bench.BATCH_MAX == plans.BATCH_MAX == FETCH_COUNT_MAX


@given(st.lists(st.floats(0, 100), min_size=1))
def test_percentiles_are_values_that_were_measured_in_order(seconds: list[float]) -> None:
    found = percentiles(seconds)

    assert found is not None and found.count == len(seconds)
    assert found.p50 <= found.p90 <= found.p99 <= found.max == round(max(seconds) * 1000, 3)
    assert {found.p50, found.p90, found.p99} <= {round(one * 1000, 3) for one in seconds}


def test_nothing_measured_has_no_percentiles() -> None:
    assert percentiles([]) is None


def test_what_comes_after_the_end_is_not_counted_unless_it_is_an_error() -> None:
    tally = Tally()
    tally.count(1, 1, 1)
    tally.is_counting = False
    tally.count(5, 5, 5)
    tally.refuse("OVERLOADED")
    tally.refuse("LEASE_LOST")

    assert (tally.enqueued, tally.claimed, tally.completed) == (1, 1, 1)
    assert (tally.overloads, dict(tally.errors)) == (1, {"LEASE_LOST": 1})
