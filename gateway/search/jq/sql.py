"""Compiles a condition for SQLite.

It handles only payloads without a backslash (`__init__.py` ensures that). They store keys and strings verbatim, so a
JSON path finds a key exactly, and a key that needs an escape is absent. Values, keys and paths are bound parameters.
Every condition is 0 or 1, never NULL, because `NOT NULL` would be NULL.

Traps, each covered by a test: `json_extract` gives true and false as 1 and 0, and arrays and objects as text;
`json_each` treats a scalar as an array of one; CAST gives a comparison its affinity, so the string "1.5" would equal
1.5.
"""

import math
import re
from typing import Any, NamedTuple

import sqlalchemy as sa

from gateway.search.jq.syntax import (
    And,
    Compare,
    Condition,
    Contains,
    EndsWith,
    Has,
    In,
    Length,
    Literal,
    Matches,
    Not,
    Operator,
    Or,
    Path,
    Scalar,
    StartsWith,
    Truth,
    Type,
    Value,
)

Sql = sa.ColumnElement[Any]
Test = sa.ColumnElement[bool]

_NEEDS_ESCAPE = re.compile(r'["\\\x00-\x1f]')
_EMPTY: Sql = sa.literal("{}")
_NUMBERS = ("integer", "real")
_NESTED = ("array", "object")


class SqlMatch(NamedTuple):
    """A value in SQL. `kind` is its `json_type`, or NULL if it is missing."""

    value: Sql
    kind: Sql
    known_name: Sql | None = None

    @property
    def name(self) -> Sql:
        """The type name in jq."""
        if self.known_name is not None:
            return self.known_name
        return sa.case(
            (self.kind == "text", "string"),
            (self.kind.in_(_NUMBERS), "number"),
            (self.kind.in_(("true", "false")), "boolean"),
            else_=sa.func.coalesce(self.kind, "null"),
        )


def compiled(condition: Condition, payload: Sql) -> Test:
    match condition:
        case And(parts):
            return sa.and_(*[compiled(part, payload) for part in parts])
        case Or(parts):
            return sa.or_(*[compiled(part, payload) for part in parts])
        case Not(part):
            return sa.not_(compiled(part, payload))
        case Compare(left, operator, right):
            found = _found(left, payload)
            if isinstance(right, Literal):
                return _compared_with_literal(found, operator, right.value)
            return _compared(found, operator, _found(right, payload))
        case In(value, options):
            return _is_one_of(_found(value, payload), [option.value for option in options])
        case Truth(path):
            return sa.func.coalesce(_at(path, payload).kind, "null").not_in(("null", "false"))
        case Has(path, step):
            return _at(Path((*path.steps, step)), payload).kind.is_not(None)
        case _:
            return _tested(condition, payload)


def _tested(condition: Contains | StartsWith | EndsWith | Matches, payload: Sql) -> Test:
    found = _at(condition.path, payload)
    match condition:
        case Contains(path, Literal(what)):
            return _contains(path, found, what, payload)
        case StartsWith(_, text):
            is_so: Test = sa.func.substr(found.value, 1, len(text)) == text
        case EndsWith(_, text):  # `substr(x, -0)` is the whole string
            is_so = sa.func.substr(found.value, -len(text)) == text if text else sa.true()
        case Matches(_, pattern):
            is_so = sa.func.corvo_is_found(pattern, found.value, type_=sa.Boolean)
    return sa.case((found.kind == "text", is_so), else_=sa.false())


def _found(value: Value, payload: Sql) -> SqlMatch:
    match value:
        case Path():
            return _at(value, payload)
        case Length(path):
            return _length(path, _at(path, payload), payload)
        case Type(path):
            return SqlMatch(_at(path, payload).name, sa.literal("text"), sa.literal("string"))


def _at(path: Path, payload: Sql) -> SqlMatch:
    document, place = _place(path, payload)
    return SqlMatch(sa.func.json_extract(document, place), sa.func.json_type(document, place))


def _place(path: Path, payload: Sql) -> tuple[Sql, str]:
    """The document and the JSON path in it. A key that needs an escape is absent: the path leads nowhere."""
    if any(isinstance(step, str) and _NEEDS_ESCAPE.search(step) for step in path.steps):
        return _EMPTY, "$.nothing"
    return payload, "$" + "".join(map(_step, path.steps))


def _step(step: str | int) -> str:
    if isinstance(step, str):
        return f'."{step}"'
    return f"[{step}]" if step >= 0 else f"[#{step}]"


def _length(path: Path, found: SqlMatch, payload: Sql) -> SqlMatch:
    """The number of characters, elements or keys; 0 for null; null for numbers, true and false."""
    document, place = _place(path, payload)
    inside = sa.func.json_each(document, place).table_valued("key")
    count = sa.select(sa.func.count(inside.c.key.distinct())).select_from(inside).scalar_subquery()
    value = sa.case(
        (found.kind == "text", sa.func.length(found.value)),
        (found.kind.in_(_NESTED), count),
        (found.value.is_(None), 0),
    )
    has_none = found.kind.in_((*_NUMBERS, "true", "false"))
    return SqlMatch(value, sa.case((has_none, "null"), else_="integer"), sa.case((has_none, "null"), else_="number"))


def _compared_with_literal(found: SqlMatch, operator: Operator, literal: Scalar) -> Test:
    if operator == "==":
        return _equals(found, literal)
    if operator == "!=":
        return sa.not_(_equals(found, literal))
    is_comparable = found.kind == "text" if isinstance(literal, str) else found.kind.in_(_NUMBERS)
    return sa.case((is_comparable, found.value.bool_op(operator)(_bound(literal))), else_=sa.false())


def _equals(found: SqlMatch, literal: Scalar) -> Test:
    """Compares only the value where that is exact: this runs on every row of a scan."""
    if literal is None:
        return found.value.is_(None)
    if isinstance(literal, bool):
        return _is(found.kind, "true" if literal else "false")
    is_same = _is(found.value, _bound(literal))
    if isinstance(literal, str):
        is_like_nested = literal.startswith(("[", "{"))
        return sa.and_(is_same, _is(found.kind, "text")) if is_like_nested else is_same
    return sa.and_(is_same, found.kind.in_(_NUMBERS)) if literal in (0, 1) else is_same


def _is(left: Sql, right: Sql | str) -> Test:
    """Equality in which NULL equals NULL. SQLAlchemy's own operator for it loses an `IN` inside `left`."""
    return left.bool_op("IS")(right)


def _is_one_of(found: SqlMatch, literals: list[Scalar]) -> Test:
    """One `IN` for all strings, one test for each other value: an `IN` over all would take true for 1."""
    different = {(type(literal), literal): literal for literal in literals}.values()
    plain = [literal for literal in different if isinstance(literal, str) and not literal.startswith(("[", "{"))]
    others = [literal for literal in different if literal not in plain]
    tests = [_equals(found, literal) for literal in others]
    if plain:
        tests.append(sa.and_(found.value.is_not(None), found.value.in_(plain)))
    return sa.or_(sa.false(), *tests)


def _bound(literal: Scalar) -> Sql:
    """SQLite parses a double from its text, as it does in payloads, so both round alike."""
    if not isinstance(literal, float):
        return sa.literal(literal)
    text = repr(literal) if math.isfinite(literal) else f"{literal}".replace("inf", "1e999")
    return sa.func.json_extract(text, "$")


def _compared(left: SqlMatch, operator: Operator, right: SqlMatch) -> Test:
    if operator in ("==", "!="):
        is_equal = sa.case(
            (left.name != right.name, sa.false()),
            (left.kind.in_(_NESTED), sa.func.corvo_is_equal(left.value, right.value, type_=sa.Boolean)),
            else_=_is(left.value, right.value),
        )
        return is_equal if operator == "==" else sa.not_(is_equal)
    is_comparable = sa.and_(left.name == right.name, left.name.in_(("number", "string")))
    return sa.case((is_comparable, left.value.bool_op(operator)(right.value)), else_=sa.false())


def _contains(path: Path, found: SqlMatch, what: Scalar, payload: Sql) -> Test:
    """Whether it is an element of the array, or a substring of the string."""
    document, place = _place(path, payload)
    element = sa.func.json_each(document, place).table_valued("atom", "type")
    is_element = sa.exists(
        sa.select(sa.literal_column("1"))
        .select_from(element)
        .where(element.c.type.not_in(_NESTED), _equals(SqlMatch(element.c.atom, element.c.type), what))
    )
    cases: list[tuple[Test, Test]] = [(found.kind == "array", is_element)]
    if isinstance(what, str):
        cases.append((found.kind == "text", sa.func.instr(found.value, what) > 0))
    return sa.case(*cases, else_=sa.false())
