"""The matcher of the documents' outputs can fail, and learns what it should."""

import pytest

from tests.docs.matching import match_json, match_text

DOC, REAL, OTHER = (f"s0{n}_job_{str(n) * 26}" for n in (1, 2, 3))


def test_an_id_is_learnt_and_then_known() -> None:
    learnt = match_text(f"{DOC}  pending", f"{REAL} pending\n", {})

    assert learnt == {DOC: REAL}
    assert match_text(DOC, REAL, learnt) == learnt
    assert match_text(DOC, OTHER, learnt) is None


def test_the_same_id_twice_must_be_the_same() -> None:
    assert match_text(f"{DOC} {DOC}", f"{REAL} {REAL}", {}) == {DOC: REAL}
    assert match_text(f"{DOC} {DOC}", f"{REAL} {OTHER}", {}) is None


def test_moments_and_spaces_may_differ() -> None:
    assert match_text("a  2026-01-31T09:00:00Z", "a 2027-02-01T10:00:00.123456789Z", {}) == {}


def test_three_dots_stand_for_anything_and_for_nothing() -> None:
    for actual in ("a  b\nc", "a x   y b c", "a b\n\n and more c"):
        assert match_text("a … b … c", actual, {}) == {}
    assert match_text("a … b … c", "a c b", {}) is None


def test_a_table_that_does_not_match_is_told_at_once() -> None:
    expected = "A … B … C … D … E … F\n" * 3 + "ready"

    assert match_text(expected, "A      B      C      D      E      F     \n" * 40 + "not yet", {}) is None


@pytest.mark.parametrize("actual", ["", "one", "one two three", "two one"])
def test_another_text_is_caught(actual: str) -> None:
    assert match_text("one two", actual, {}) is None


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ('{"a": 1}', '{"a": 2}'),
        ('{"a": 1}', '{"a": true}'),
        ('{"a": 1}', '{"a": 1, "b": 2}'),
        ('{"a": 1, "…": "…"}', '{"b": 1}'),
        ("[1, 2]", "[1]"),
        ("{}", "not JSON"),
        (f'["{DOC}", "{DOC}"]', f'["{REAL}", "{OTHER}"]'),
    ],
)
def test_another_document_is_caught(expected: str, actual: str) -> None:
    assert match_json(expected, actual, {}) is None


def test_a_document_matches_whatever_its_order_and_with_gaps_where_told() -> None:
    expected = f'{{"job_id": "{DOC}", "at": "2026-01-31T09:00:00Z", "n": "…", "…": "…"}}'
    actual = f'{{"n": [1], "more": 1, "at": "2027-01-31T09:00:00.5Z", "job_id": "{REAL}"}}'

    assert match_json(expected, actual, {}) == {DOC: REAL}


def test_a_known_id_may_be_a_key() -> None:
    known = {DOC: REAL}

    assert match_json(f'{{"{DOC}": "{DOC}"}}', f'{{"{REAL}": "{REAL}"}}', known) == known
    assert match_json(f'{{"{DOC}": 1}}', f'{{"{OTHER}": 1}}', known) is None
