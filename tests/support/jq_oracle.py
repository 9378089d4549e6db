"""What `payload_jq` should answer, as simply as it can be said: a walk over decoded JSON.

Every value becomes a pair of its type's name and itself, at every level. Two values are equal if the pairs are, and no
more needs to be known about true and 1.
"""

import json
import re
from typing import Any

from gateway.search.jq import syntax

Tagged = tuple[str, Any]
NULL: Tagged = ("null", None)
NAMES = {bool: "boolean", int: "number", float: "number", str: "string", list: "array", dict: "object"}


def answer(condition: syntax.Condition, payload: str) -> bool:
    return holds(condition, tagged(json.loads(payload)))


def tagged(value: Any) -> Tagged:
    if value is None:
        return NULL
    if isinstance(value, list):
        return "array", [tagged(element) for element in value]
    if isinstance(value, dict):
        return "object", {key: tagged(element) for key, element in value.items()}
    if type(value) is int and abs(value) > 2**63 - 1 and value != -(2**63):
        return "number", float(value)
    return NAMES[type(value)], value


def holds(condition: Any, root: Tagged) -> bool:
    kind = type(condition)
    if kind is syntax.And:
        return all(holds(part, root) for part in condition.parts)
    if kind is syntax.Or:
        return any(holds(part, root) for part in condition.parts)
    if kind is syntax.Not:
        return not holds(condition.part, root)
    if kind is syntax.Compare:
        return compare(condition.operator, value(condition.left, root), value(condition.right, root))
    if kind is syntax.In:
        return value(condition.value, root) in [value(option, root) for option in condition.options]
    name, found = value(condition.path, root)
    if kind is syntax.Truth:
        return (name, found) not in (NULL, ("boolean", False))
    if kind is syntax.Has:
        if name == "object":
            return condition.step in list(found)
        return name == "array" and condition.step in list(range(len(found)))
    if kind is syntax.Contains:
        what = value(condition.what, root)
        return what in found if name == "array" else name == what[0] == "string" and what[1] in found
    if name != "string":
        return False
    if kind is syntax.Matches:
        at_the_very_end = condition.pattern.replace("$", r"\Z")  # Python's `$` is satisfied before a last newline, too
        return re.search(at_the_very_end, found) is not None
    if kind is syntax.StartsWith:
        return found[: len(condition.text)] == condition.text
    assert kind is syntax.EndsWith
    return found[max(0, len(found) - len(condition.text)) :] == condition.text


def value(asked: Any, root: Tagged) -> Tagged:
    if isinstance(asked, syntax.Literal):
        return tagged(asked.value)
    if isinstance(asked, syntax.Type):
        return "string", value(asked.path, root)[0]
    if isinstance(asked, syntax.Length):
        name, found = value(asked.path, root)
        if name in ("number", "boolean"):
            return NULL
        return "number", 0 if name == "null" else len(found)
    place = root
    for step in asked.steps:
        name, found = place
        if name == "object":
            place = found.get(step, NULL)
        elif name == "array" and type(step) is int:
            places = dict(enumerate(found)) | {number - len(found): element for number, element in enumerate(found)}
            place = places.get(step, NULL)
        else:
            place = NULL
    return place


def compare(operator: str, left: Tagged, right: Tagged) -> bool:
    if operator == "==":
        return left == right
    if operator == "!=":
        return left != right
    if left[0] != right[0] or left[0] not in ("number", "string"):
        return False
    return {
        "<": left[1] < right[1],
        "<=": left[1] <= right[1],
        ">": left[1] > right[1],
        ">=": left[1] >= right[1],
    }[operator]
