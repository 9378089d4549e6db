"""The same language on PostgreSQL: the golden table, and the oracle, but for what the guide says is different."""

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from corvo.model.errors import Refusal
from gateway.readdb.ddl import create_statements
from gateway.readdb.postgres_connection import POSTGRES
from gateway.search.database import Prepared
from gateway.search.jq.parser import parse
from gateway.search.jq.postgres import compiled
from tests.gateway.search.jq.test_differential import EXPRESSIONS, texts_of
from tests.gateway.search.jq.test_golden import GOLDEN
from tests.support import jq_oracle, jq_plays
from tests.support.postgres import Server

PAYLOADS = sa.table("payloads", sa.column("id", sa.Integer), sa.column("document"))
(TO_JSONB,) = [statement for statement in create_statements(POSTGRES) if "FUNCTION to_jsonb_or_null" in statement]

# Of two equal keys the last counts.
DIFFERENT = {
    (".a == 1", '{"a": 1, "a": 2}'),
}


@pytest.fixture(scope="module")
def connection(postgres: Server) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres.url, autocommit=True) as made:
        made.execute("CREATE SCHEMA jq")
        made.execute("SET search_path TO jq")
        made.execute(TO_JSONB.encode())
        made.execute("CREATE TABLE payloads (id int, document jsonb)")
        yield made
        made.execute("DROP SCHEMA jq CASCADE")


def matching(connection: psycopg.Connection[Any], expression: str, texts: list[str]) -> list[int]:
    """Positions of the payloads that match; every row is answered, never with NULL."""
    connection.execute("DELETE FROM payloads")
    each = "unnest(%s::text[]) WITH ORDINALITY AS each(text, number)"
    connection.execute(f"INSERT INTO payloads SELECT number - 1, to_jsonb_or_null(text) FROM {each}".encode(), (texts,))
    return asked(connection, expression)


def asked(connection: psycopg.Connection[Any], expression: str) -> list[int]:
    condition = compiled(parse(expression), PAYLOADS.c.document)
    text, values = Prepared(sa.select(PAYLOADS.c.id, condition.label("answer")).order_by(PAYLOADS.c.id)).on(POSTGRES)
    rows = connection.execute(text.encode(), values).fetchall()
    assert all(answer in (True, False) for _, answer in rows)
    return [number for number, answer in rows if answer]


@pytest.mark.parametrize(("expression", "payload", "is_expected"), GOLDEN)
def test_what_an_expression_means(
    connection: psycopg.Connection[Any], expression: str, payload: str, is_expected: bool
) -> None:
    is_match = matching(connection, expression, [payload]) == [0]

    assert is_match is (is_expected != ((expression, payload) in DIFFERENT))


@pytest.mark.parametrize("seed", range(12))
def test_it_answers_like_the_oracle(connection: psycopg.Connection[Any], seed: int) -> None:
    random = Random(seed)
    texts = texts_of(random)
    matching(connection, ".a", texts)
    for _ in range(EXPRESSIONS):
        condition = jq_plays.expression(random)
        expression = jq_plays.written(random, condition)

        found = asked(connection, expression)

        expected = [number for number, text in enumerate(texts) if jq_oracle.answer(condition, text)]
        assert found == expected, (expression, [texts[number] for number in set(found) ^ set(expected)])


HARD = ['{"a": 1e400000}', '{"a": "\\ud800"}', '{"a": "\\u0000"}', '{"a": 1e400}', '{"a": 1e-400}', '{"a": "x"}']


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ('.a == "x"', [5]),
        (".a > 1", [3]),
        (".a == 1e400", [3]),
        (".a == 0.0", [4]),
        (".a < 0.5", [4]),
        (".a < -1e400", []),
        ('.a == "\\u0000"', [2]),
        ('.a == "\\ufffd"', [2]),  # what a NUL becomes
        ('. | has("a")', [2, 3, 4, 5]),
    ],
)
def test_what_postgresql_cannot_hold_fails_nothing(
    connection: psycopg.Connection[Any], expression: str, found: list[int]
) -> None:
    assert matching(connection, expression, HARD) == found


@pytest.mark.parametrize(
    ("pattern", "text", "is_found"),
    [
        ("^a.c$", "abc", True),
        ("^a.c$", "a\nc", False),
        ("(?s)^a.c$", "a\nc", True),
        ("^b", "a\nb", False),
        ("(?m)^b", "a\nb", True),
        ("(?im)^B", "a\nb", True),
        ("(?ms)^b.c", "a\nb\nc", True),
        ("(?i)ABC", "xabcx", True),
        (r"\d{3}", "a123", True),
        (r"^\w+@\w+\.com$", "me@host.com", True),
        ("(?:ab)+c", "ababc", True),
        ("[[:alpha:]]", "1", False),
        ("***=a", "a", None),
        ("(?P<x>a)", "a", None),
        ("a(?i)b", "aB", None),
        (r"\pL", "a", None),
        (r"a\z", "a", None),
        (r"\Qa.b\E", "a.b", None),
        ("(?U)a+", "aa", None),
    ],
)
def test_a_pattern_means_the_same_or_is_refused(
    connection: psycopg.Connection[Any], pattern: str, text: str, is_found: bool | None
) -> None:
    expression = f". | test({json.dumps(pattern)})"
    if is_found is None:
        with pytest.raises(Refusal) as refusal:
            matching(connection, expression, [json.dumps(text)])
        assert refusal.value.code == "VALIDATION_ERROR"
    else:
        assert (matching(connection, expression, [json.dumps(text)]) == [0]) is is_found
