"""Evaluates a condition on one payload in Python: exact for every payload, but several times slower than SQLite.

It serves payloads with a backslash, where SQLite deviates from JSON: up to version 3.44 SQLite compares keys as
written, so `"\\u0061"` is not `a`; and in all versions it ends a string at `\\u0000`.
"""

import json
from collections.abc import Callable
from functools import lru_cache
from operator import ge, gt, le, lt
from typing import Any

from gateway.search.jq.matching import is_found
from gateway.search.jq.parser import parse
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
    Or,
    Path,
    StartsWith,
    Truth,
    Type,
    Value,
)
from gateway.search.jq.tokens import number_of

EXPRESSIONS_KEPT = 64
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


def matches(payload: str | None, text: str) -> bool:
    """Whether the payload matches the expression; invalid JSON never does."""
    try:
        document = _decode(payload or "")
    except (ValueError, RecursionError):
        return False
    return is_true(_parsed(text), document)


def is_equal_json(left: str, right: str) -> bool:
    return is_equal(_decode(left), _decode(right))


def is_true(condition: Condition, document: Any) -> bool:
    match condition:
        case And(parts):
            return all(is_true(part, document) for part in parts)
        case Or(parts):
            return any(is_true(part, document) for part in parts)
        case Not(part):
            return not is_true(part, document)
        case Compare(left, operator, right):
            return _compared(value_of(left, document), operator, value_of(right, document))
        case In(value, options):
            found = value_of(value, document)
            return any(is_equal(found, option.value) for option in options)
        case Truth(path):
            found = value_of(path, document)
            return found is not None and found is not False
        case _:
            return _tested(condition, value_of(condition.path, document))


def _tested(condition: Contains | StartsWith | EndsWith | Matches | Has, found: Any) -> bool:
    match condition:
        case Contains(_, Literal(what)):
            if isinstance(found, list):
                return any(is_equal(element, what) for element in found)
            return isinstance(found, str) and isinstance(what, str) and what in found
        case Has(_, step):
            if isinstance(step, str):
                return isinstance(found, dict) and step in found
            return isinstance(found, list) and step < len(found)
        case StartsWith(_, text):
            return isinstance(found, str) and found.startswith(text)
        case EndsWith(_, text):
            return isinstance(found, str) and found.endswith(text)
        case Matches(_, pattern):
            return isinstance(found, str) and is_found(pattern, found)


def value_of(value: Value | Literal, document: Any) -> Any:
    match value:
        case Literal(literal):
            return literal
        case Length(path):
            return _length(value_of(path, document))
        case Type(path):
            return type_name(value_of(path, document))
        case Path(steps):
            for step in steps:
                document = _stepped(document, step)
            return document


def _stepped(document: Any, step: str | int) -> Any:
    if isinstance(step, str):
        return document.get(step) if isinstance(document, dict) else None
    is_there = isinstance(document, list) and -len(document) <= step < len(document)
    return document[step] if is_there else None


def _length(found: Any) -> int | None:
    if found is None:
        return 0
    return len(found) if isinstance(found, str | list | dict) else None


def type_name(found: Any) -> str:
    match found:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _compared(left: Any, operator: str, right: Any) -> bool:
    if operator == "==":
        return is_equal(left, right)
    if operator == "!=":
        return not is_equal(left, right)
    name = type_name(left)
    return name in ("number", "string") and name == type_name(right) and _ORDERS[operator](left, right)


def is_equal(left: Any, right: Any) -> bool:
    """Deep equality, in which true is not 1."""
    if type_name(left) != type_name(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(is_equal(one, other) for one, other in zip(left, right, strict=True))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(is_equal(value, right[key]) for key, value in left.items())
    return bool(left == right)


@lru_cache(EXPRESSIONS_KEPT)
def _parsed(text: str) -> Condition:
    return parse(text)


def _first_of_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return dict(reversed(pairs))


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_decode = json.JSONDecoder(object_pairs_hook=_first_of_each, parse_int=number_of, parse_constant=_refused).decode
