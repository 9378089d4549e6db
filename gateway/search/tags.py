"""The tag filter as a condition on a row of `jobs`. JSON types count: "1", 1 and true are three different values.

SQLite evaluates the tags itself, unless they hold a backslash: it ends a string at an escaped NUL. Python evaluates
those.
"""

import json
import sqlite3
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from corvo.model.errors import invalid
from gateway.readdb.schema import jobs

TagValue = str | int | float | bool

_INT64 = range(-(2**63), 2**63)


def has_tag(key: str, value: TagValue, is_postgresql: bool = False) -> sa.ColumnElement[bool]:
    known = stored(key, value)
    if is_postgresql:  # has its own index; jsonb keeps the last of a duplicate key
        wanted = sa.cast(sa.literal(json.dumps({key: value}).replace("\\u0000", "\\ufffd")), postgresql.JSONB)
        return sa.literal_column("jobs.tags_json").bool_op("@>")(wanted)
    tag = sa.func.json_each(_object(jobs.c.tags)).table_valued("key", "value", "type", name="tag")
    if isinstance(value, bool):
        is_value = [tag.c.type == ("true" if value else "false")]
    else:
        types = ("text",) if isinstance(value, str) else ("integer", "real")
        is_type = sa.or_(*[tag.c.type == kind for kind in types])
        is_value = [is_type, tag.c.value == sa.literal(known)]
    plain = sa.exists(sa.select(sa.literal_column("1")).select_from(tag).where(tag.c.key == sa.literal(key), *is_value))
    has_escapes = sa.func.instr(jobs.c.tags, "\\") != 0
    by_python = sa.func.corvo_has_tag(jobs.c.tags, key, json.dumps(value), type_=sa.Boolean)
    return sa.case((has_escapes, by_python), else_=plain)


def stored(key: str, value: TagValue) -> str | int | float:
    """The value as SQLite stores it: a boolean as 1 or 0, an integer beyond 64 bits as a real."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int) and value not in _INT64:
        try:
            return float(value)
        except OverflowError:
            raise invalid(f"tags.{key}", "the number is too large") from None
    return value


def functions(connection: sqlite3.Connection) -> None:
    """Registers the SQL functions that conditions call, on a new connection."""
    connection.create_function("corvo_has_tag", 3, _has_tag, deterministic=True)


def _object(column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """Treats invalid JSON as no tags: one bad row must not fail the whole search."""
    return sa.case((sa.func.json_valid(column) == 1, column), else_=sa.literal_column("'{}'"))


def _has_tag(tags: str, key: str, value: str) -> bool:
    """If a key is duplicated, a match of any of its values counts, as in SQLite."""
    wanted = json.loads(value)
    try:
        pairs = json.loads(tags, object_pairs_hook=list)
    except ValueError:
        return False
    return isinstance(pairs, list) and any(
        name == key and kind(found) == kind(wanted) and found == wanted for name, found in pairs
    )


def kind(value: Any) -> str:
    if isinstance(value, bool):
        return "truth"
    return "number" if isinstance(value, int | float) else type(value).__name__
