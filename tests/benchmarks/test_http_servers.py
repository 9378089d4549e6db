"""How servers of HTTP are compared: what counts as an acceptable answer, and what the figures are made of."""

import pytest

from benchmarks.http_servers.candidates import BY_NAME, CANDIDATES, FAST_PATH, Candidate
from benchmarks.http_servers.malformed import Case, Outcome, Score, cases, is_acceptable, is_as_written, scored
from benchmarks.scenarios.http_servers import ENQUEUE, Round, findings
from tests.gateway.catalogue import BAD_CHUNKS, CLOSED, KEPT, LENIENT, NOT_JSON, SMUGGLED

REFUSED = Case("refused", b"", frozenset({405}), "kept")
DOUBTFUL = Case("doubtful", b"", frozenset({400}), "closed")
CUT = Case("chunks", b"", frozenset({400}), "closed", may_be_cut=True)
LENIENT_CASE = Case("lenient", b"", frozenset({200, 201, 400}), "either", may_be_served=True)


def heard(status: int, **fields: object) -> Outcome:
    defaults = Outcome(status, False, False, 201, 0, False, True)
    return defaults._replace(**fields)


GONE = {"is_closed": True, "next_status": 0}


@pytest.mark.parametrize(
    ("case", "outcome", "as_written", "acceptable"),
    [
        (REFUSED, heard(405), True, True),
        (REFUSED, heard(400), False, True),
        (REFUSED, heard(405, says_close=True, **GONE), False, True),
        (REFUSED, heard(405, next_status=0), False, False),
        (REFUSED, heard(405, next_status=400), False, False),
        (REFUSED, heard(200), False, False),
        (REFUSED, heard(500, **GONE), False, False),
        (REFUSED, heard(0, **GONE), False, True),
        (REFUSED, heard(-1), False, False),
        (REFUSED, heard(405, is_alive=False), False, False),
        (REFUSED, heard(405, asked=1), False, False),
        (DOUBTFUL, heard(400, says_close=True, **GONE), True, True),
        (DOUBTFUL, heard(400, **GONE), False, True),
        (DOUBTFUL, heard(400), False, True),
        (DOUBTFUL, heard(501, says_close=True, **GONE), False, True),
        (CUT, heard(0, **GONE), True, True),
        (CUT, heard(400, **GONE), True, True),
        (LENIENT_CASE, heard(201, asked=1), True, True),
        (LENIENT_CASE, heard(400, **GONE), True, True),
        (LENIENT_CASE, heard(201, asked=1, has_hidden=True), False, False),
    ],
)
def test_an_answer_is_judged_by_what_it_leaves_behind(
    case: Case, outcome: Outcome, as_written: bool, acceptable: bool
) -> None:
    assert (is_as_written(case, outcome), is_acceptable(case, outcome)) == (as_written, acceptable)


def test_every_row_of_the_catalogue_is_a_case() -> None:
    rows = len(KEPT) + len(CLOSED) + len(BAD_CHUNKS) + len(SMUGGLED) + len(LENIENT) + len(NOT_JSON)

    assert len(cases()) == rows


def test_a_score_lists_what_differs_and_what_fails() -> None:
    score = scored([(REFUSED, heard(405)), (REFUSED, heard(400)), (DOUBTFUL, heard(500, **GONE))])

    assert (score.cases, score.as_written, score.acceptable) == (3, 1, 2)
    assert score.differing == ["refused b'': 400, kept, then 201"]
    assert score.failed == ["doubtful b'': 500, closed"]


def test_each_candidate_is_compared_with_the_fast_path_of_the_same_round() -> None:
    rounds = {
        ENQUEUE: {FAST_PATH: [Round(100.0, 10.0), Round(50.0, 20.0)], "other": [Round(50.0, 15.0), Round(25.0, 30.0)]}
    }

    found = findings(rounds, {FAST_PATH: Score(88, 80, 85, [], [])}, ["a note"])

    assert [(figure.value, figure.ratio) for figure in found.figures] == [
        (75.0, None),
        (15.0, None),
        (37.5, 0.5),
        (22.5, 1.5),
    ]
    assert found.details["malformed: fast-path: acceptable"] == 85
    assert found.notes[0] == "a note" and "88 malformed requests" in found.notes[1]


def test_a_candidate_says_what_it_lacks() -> None:
    assert Candidate("x", "m", ("json", "no_such_package"), "").missing() == ["no_such_package"]
    assert len(BY_NAME) == len(CANDIDATES)
    assert not BY_NAME[FAST_PATH].missing()
