"""What the conformance suite says of an answer: a check that cannot fail would pass every library."""

from typing import Any

import pytest

from sdk.conformance.scenario import Scenario, difference, fill, pick, scenarios


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": "*"}, {"a": 0}),
        ({"a": {"$absent": True}}, {}),
        ({"$absent": True}, None),
        ([{"a": 1}, "*"], [{"a": 1, "b": 2}, 3]),
        (None, None),
    ],
)
def test_what_is_expected_is_enough(expected: Any, found: Any) -> None:
    assert difference(expected, found) == ""


@pytest.mark.parametrize(
    ("expected", "found", "sentence"),
    [
        ({"a": 1}, {"a": 2}, "answer.a is 2, expected 1"),
        ({"a": 1}, {}, "answer.a is None, expected 1"),
        ({"a": 1}, None, "answer is None, expected an object"),
        ({"a": "*"}, {}, "answer.a is missing"),
        ({"$absent": True}, 0, "answer is 0, expected nothing"),
        ([1], [1, 2], "answer is [1, 2], expected 1 items"),
        ([{"a": [1]}], [{"a": [2]}], "answer[0].a[0] is 2, expected 1"),
    ],
)
def test_what_differs_is_named(expected: Any, found: Any, sentence: str) -> None:
    assert difference(expected, found) == sentence


def test_variables_are_filled_in_with_their_own_type() -> None:
    assert fill({"$job": ["$token", "a $job b"]}, {"job": "j1", "token": 7}) == {"j1": [7, "a j1 b"]}
    assert pick({"jobs": [{"id": 1}]}, "jobs.0.id") == 1


@pytest.mark.parametrize("scenario", scenarios().values(), ids=scenarios().keys())
def test_a_scenario_expects_something(scenario: Scenario) -> None:
    calls = [call for step in scenario.steps for call in (step.call, step.server) if call is not None]

    expected = [call.expect is not None or call.refused is not None for call in calls]
    assert any(expected) or any(step.expect is not None for step in scenario.steps)
