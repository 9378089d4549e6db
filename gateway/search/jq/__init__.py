"""`payload_jq`: a small part of jq, read by a parser of our own and answered by SQLite.

    tokens, parser → syntax       the text as a tree; a mistake is refused with its column
    sql                           the tree as an expression of SQLAlchemy, for the payloads that SQLite reads exactly
    postgres, patterns            the same for PostgreSQL, which reads all that it can hold
    evaluation                    the tree over one payload in Python, for the others: those with a backslash
    matching                      regular expressions
    literals                      what an index may look for first

The language, for its users: docs/reference/payload-jq.md.
"""

import sqlite3
from typing import Any

import sqlalchemy as sa

from gateway.search.jq import postgres
from gateway.search.jq.evaluation import is_equal_json, matches
from gateway.search.jq.literals import literals_of
from gateway.search.jq.matching import is_found
from gateway.search.jq.parser import parse
from gateway.search.jq.sql import compiled

__all__ = ["condition", "functions", "literals"]


def condition(text: str, payload: sa.ColumnElement[Any], is_postgresql: bool = False) -> sa.ColumnElement[bool]:
    """The expression over a column of JSON; refuses, with the column of the mistake, what is none.

    On SQLite the connection must know `functions`; on PostgreSQL the column is a jsonb. What is no JSON does not match.
    """
    if is_postgresql:
        return sa.case((payload.is_not(None), postgres.compiled(parse(text), payload)), else_=sa.false())
    exact = compiled(parse(text), payload)
    has_escapes = sa.func.instr(payload, "\\") != 0
    return sa.case(
        (has_escapes, sa.func.corvo_matches(payload, text, type_=sa.Boolean)),
        (sa.func.json_valid(payload) == 1, exact),
        else_=sa.false(),
    )


def functions(connection: sqlite3.Connection) -> None:
    """Registers what conditions call; once for each connection."""
    connection.create_function("corvo_matches", 2, matches, deterministic=True)
    connection.create_function("corvo_is_found", 2, is_found, deterministic=True)
    connection.create_function("corvo_is_equal", 2, is_equal_json, deterministic=True)


def literals(text: str) -> list[str]:
    """Strings of which every payload that matches holds *all*, verbatim, *or it holds a backslash*.

    A producer may have written any character as an escape (`\\u0061` for `a`), so nothing is certain of a payload that
    holds one. Whoever looks these strings up in an index must therefore add the payloads with a backslash:
    `(payload has every literal) or (payload has a backslash)`, and then apply `condition` to what is found. Keys and
    whole strings come with their quotes, which makes even short ones worth looking up.
    """
    return literals_of(parse(text))
