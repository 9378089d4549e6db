"""`payload_jq`: a small subset of jq, with its own parser, evaluated by the read database.

    tokens, parser → syntax       parse the text into a tree; a syntax error names its column
    sql                           the tree as a SQLAlchemy expression for SQLite, for payloads without a backslash
    evaluation                    the tree on one payload in Python, for payloads with a backslash
    postgres, patterns            the tree as a SQLAlchemy expression for PostgreSQL, for all payloads
    matching                      regular expressions
    literals                      strings that the trigram index can look up first

User documentation of the language: docs/reference/payload-jq.md.
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
    """Compiles the expression into a condition on a JSON column; refuses a syntax error and names its column.

    On SQLite the connection needs `functions`; on PostgreSQL the column is a jsonb. Invalid JSON does not match.
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
    """Registers the SQL functions that conditions call, on a new connection."""
    connection.create_function("corvo_matches", 2, matches, deterministic=True)
    connection.create_function("corvo_is_found", 2, is_found, deterministic=True)
    connection.create_function("corvo_is_equal", 2, is_equal_json, deterministic=True)


def literals(text: str) -> list[str]:
    """Every matching payload holds *all* of these strings verbatim, *or it holds a backslash*.

    A producer may write any character as an escape (`\\u0061` for `a`), so a payload with a backslash may match without
    holding them. An index lookup must therefore select `(every literal) or (a backslash)` and then apply `condition` to
    the candidates. Keys and whole strings include their quotes, which makes even short ones selective.
    """
    return literals_of(parse(text))
