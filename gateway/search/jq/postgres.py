"""Compiles a condition for PostgreSQL, on `jobs.payload_json`: a `jsonb`, or NULL if the payload does not fit into one.

Values, keys and patterns are bound parameters. Every condition is true or false, never NULL. PostgreSQL may evaluate
both sides of an `AND`, so a `CASE` guards each operation that fails on other types.

Numbers are decimals here. A literal that is not a 64-bit integer is a double, as on SQLite, and so is the value
compared with it. Two paths are compared as decimals, exactly. The other differences are in
`docs/how-to/use-postgresql.md`.
"""

import json
from decimal import Decimal
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from gateway.search.jq.patterns import to_postgresql
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

_JSONB = postgresql.JSONB()
_NULL: Sql = sa.literal_column("'null'::jsonb")
_FALSE: Sql = sa.literal_column("'false'::jsonb")
_INT64 = range(-(2**63), 2**63)
_NO: Test = sa.false()


def compiled(condition: Condition, document: Sql) -> Test:
    match condition:
        case And(parts):
            return sa.and_(*[compiled(part, document) for part in parts])
        case Or(parts):
            return sa.or_(*[compiled(part, document) for part in parts])
        case Not(part):
            return sa.not_(compiled(part, document))
        case Compare(left, operator, right):
            found = _found(left, document)
            if isinstance(right, Literal):
                return _compared_with_literal(found, operator, right.value)
            return _compared(found, operator, _found(right, document))
        case In(value, options):
            found = _found(value, document)
            return sa.or_(_NO, *[_equals(found, option.value) for option in options])
        case Truth(path):
            found = _at(path, document)
            return sa.and_(found != _NULL, found != _FALSE)
        case _:
            return _tested(condition, _at(condition.path, document))


def _tested(condition: Contains | StartsWith | EndsWith | Matches | Has, found: Sql) -> Test:
    text = _text(found)
    match condition:
        case Contains(_, Literal(what)):
            return _contains(found, what)
        case Has(_, str(key)):
            return _if_is(found, "object", found.op("?")(_bound(key)))
        case Has(_, int(position)):
            length = sa.func.jsonb_array_length(found)
            return _if_is(found, "array", length > position)
        case StartsWith(_, start):
            return _if_is(found, "string", sa.func.starts_with(text, _bound(start)))
        case EndsWith(_, end):
            is_so = sa.func.right(text, len(end)) == _bound(end) if end else sa.true()
            return _if_is(found, "string", is_so)
        case Matches(_, pattern):
            return _if_is(found, "string", text.bool_op("~")(_bound(to_postgresql(pattern))))
    raise AssertionError(f"unknown condition: {condition}")


def _found(value: Value, document: Sql) -> Sql:
    """The value as jsonb; null if it is missing."""
    match value:
        case Path():
            return _at(value, document)
        case Length(path):
            return _length(_at(path, document))
        case Type(path):
            return sa.func.to_jsonb(sa.func.jsonb_typeof(_at(path, document)))


def _at(path: Path, document: Sql) -> Sql:
    found = document
    for step in path.steps:
        if isinstance(step, str):
            found = found.op("->")(_bound(step))
        else:  # PostgreSQL treats a scalar as an array of one element
            is_array = sa.func.jsonb_typeof(found) == "array"
            found = sa.case((is_array, found.op("->")(sa.literal(step, sa.Integer))))
    return sa.func.coalesce(found, _NULL)


def _length(found: Sql) -> Sql:
    """The number of characters, elements or keys; 0 for null; null for numbers, true and false."""
    kind = sa.func.jsonb_typeof(found)
    keys = (
        sa.select(sa.func.count()).select_from(sa.func.jsonb_object_keys(found).table_valued("key")).scalar_subquery()
    )
    count = sa.case(
        (kind == "string", sa.func.char_length(_text(found))),
        (kind == "array", sa.func.jsonb_array_length(found)),
        (kind == "object", keys),
        (kind == "null", 0),
    )
    return sa.func.coalesce(sa.func.to_jsonb(count), _NULL)


def _compared_with_literal(found: Sql, operator: Operator, literal: Scalar) -> Test:
    if operator == "==":
        return _equals(found, literal)
    if operator == "!=":
        return sa.not_(_equals(found, literal))
    if isinstance(literal, str):
        return _if_is(found, "string", _text(found).bool_op(operator)(_bound(literal)))
    assert isinstance(literal, int | float)
    return _if_is(found, "number", _compared_number(found, operator, literal))


def _equals(found: Sql, literal: Scalar) -> Test:
    if isinstance(literal, int | float) and not isinstance(literal, bool):
        return _if_is(found, "number", _compared_number(found, "=", literal))
    return found == sa.cast(_bound(json.dumps(_sound(literal) if isinstance(literal, str) else literal)), _JSONB)


def _compared_number(found: Sql, operator: str, literal: int | float) -> Test:
    """A 64-bit integer is compared exactly, also with doubles; any other literal as a double."""
    number = sa.cast(found, sa.Numeric)
    is_exact = number.bool_op(operator)(sa.cast(sa.literal(str(Decimal(literal))), sa.Numeric))
    if isinstance(literal, int) and literal in _INT64:
        return is_exact
    is_whole = sa.and_(number == sa.func.trunc(number), number.between(_INT64[0], _INT64[-1]))
    as_doubles = _double(number).bool_op(operator)(sa.cast(sa.literal(str(float(literal))), sa.Double))
    return sa.case((is_whole, is_exact), else_=as_doubles)


def _double(number: Sql) -> Sql:
    """PostgreSQL's cast fails outside a double's range; here the result is infinite or zero."""
    too_large: sa.ColumnElement[Any] = sa.literal_column("1.797693134862315808e308")
    return sa.case(
        (number >= too_large, sa.literal_column("'Infinity'::float8")),
        (number <= -too_large, sa.literal_column("'-Infinity'::float8")),
        (sa.func.abs(number) < sa.literal_column("3e-324"), sa.literal_column("0::float8")),
        else_=sa.cast(number, sa.Double),
    )


def _compared(left: Sql, operator: Operator, right: Sql) -> Test:
    if operator == "==":
        return left == right
    if operator == "!=":
        return left != right
    kind = sa.func.jsonb_typeof(left)
    return sa.case(
        (kind != sa.func.jsonb_typeof(right), _NO),
        (kind == "number", sa.cast(left, sa.Numeric).bool_op(operator)(sa.cast(right, sa.Numeric))),
        (kind == "string", _text(left).bool_op(operator)(_text(right))),
        else_=_NO,
    )


def _contains(found: Sql, what: Scalar) -> Test:
    """Whether it is an element of the array, or a substring of the string."""
    element = sa.func.jsonb_array_elements(found).table_valued("value", name="element")
    is_element = sa.exists(sa.select(sa.literal_column("1")).select_from(element).where(_equals(element.c.value, what)))
    kind = sa.func.jsonb_typeof(found)
    cases: list[tuple[Test, Test]] = [(kind == "array", is_element)]
    if isinstance(what, str):
        cases.append((kind == "string", sa.func.strpos(_text(found), _bound(what)) > 0))
    return sa.case(*cases, else_=_NO)


def _if_is(found: Sql, kind: str, test: Test) -> Test:
    return sa.case((sa.func.jsonb_typeof(found) == kind, test), else_=_NO)


def _text(found: Sql) -> Sql:
    """The string without its quotes, compared by code points as everywhere."""
    return sa.collate(found.op("#>>")(sa.literal_column("'{}'::text[]")), "C")


def _bound(text: str) -> Sql:
    return sa.literal(_sound(text), sa.Text)


def _sound(text: str) -> str:
    """PostgreSQL cannot store a NUL; the mirror replaces it in payloads the same way."""
    return text.replace("\0", "\ufffd")
