"""SQLite and a naive walk over decoded JSON agree: random expressions, each over random payloads in many spellings."""

from random import Random

import pytest

from gateway.search import jq
from gateway.search.jq.parser import parse
from tests.gateway.search.jq.database import Payloads
from tests.support import jq_oracle, jq_plays

EXPRESSIONS = 40
PAYLOADS = 60


def texts_of(random: Random) -> list[str]:
    """Half of them as plain as JSON allows, half with escapes that nobody needs."""
    return [jq_plays.stored(random, jq_plays.document(random), number % 2 == 0) for number in range(PAYLOADS)]


@pytest.mark.parametrize("seed", range(8))
def test_sqlite_answers_like_the_oracle(seed: int) -> None:
    random = Random(seed)
    texts = texts_of(random)
    payloads = Payloads(texts)
    for _ in range(EXPRESSIONS):
        condition = jq_plays.expression(random)
        expression = jq_plays.written(random, condition)

        found = payloads.matching(expression)

        expected = [number for number, text in enumerate(texts) if jq_oracle.answer(condition, text)]
        assert found == expected, (expression, [texts[number] for number in set(found) ^ set(expected)])


@pytest.mark.parametrize("seed", range(100, 104))
def test_an_expression_is_read_as_it_was_written(seed: int) -> None:
    random = Random(seed)
    for _ in range(200):
        condition = jq_plays.expression(random)

        assert parse(jq_plays.written(random, condition)) == condition


def test_what_matches_has_every_literal_or_a_backslash() -> None:
    random = Random(200)
    texts = [text for _ in range(4) for text in texts_of(random) if "\\" not in text]
    seen = 0
    for _ in range(600):
        condition = jq_plays.expression(random, depth=1)
        expression = jq_plays.written(random, condition)
        literals = jq.literals(expression)
        for text in texts if literals else []:
            if jq_oracle.answer(condition, text):
                seen += 1
                assert all(literal in text for literal in literals), (expression, text)
    assert seen > 200, "a test that looks at nothing finds nothing"
