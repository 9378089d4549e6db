"""Random payloads and random expressions that are made for each other: few keys, few values, many spellings."""

import json
import math
from random import Random
from typing import Any

from gateway.search.jq import syntax

PLAIN_KEYS = ["a", "b", "c"]
ODD_KEYS = ["a.b", "", 'q"', "é", "n\nl", "$", "[0]", "a\0"]
TEXTS = ["", "x", "xy", "yx", "1", "true", "[1]", "{}", "null", "é", "😀x", "a\0b", 'q"', "b\\", "\n", "%", "_", "a'b"]
NUMBERS = [0, 1, -1, 2, 3, 1.0, 1.5, -0.0, 0.1, 19.99, 100, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 1e300, 1e400]
LOOKALIKES: list[syntax.Scalar] = [0, 1, 1.0, True, False, None, "", "1", "true", "[1]", "{}"]
PATTERNS = ["x", "^x", "y$", "^.$", "[a-z]+", "a|é", "", "^$", "1?x"]
OPERATORS: list[syntax.Operator] = ["==", "!=", "<", "<=", ">", ">="]
TYPES = ["null", "boolean", "number", "string", "array", "object", "x"]


def key(random: Random) -> str:
    return random.choice(PLAIN_KEYS if random.random() < 0.8 else ODD_KEYS)


def document(random: Random, depth: int = 3) -> Any:
    draw = random.random() if depth < 3 else random.random() / 2
    if depth and draw < 0.4:
        return {key(random): document(random, depth - 1) for _ in range(random.randint(0, 4))}
    if depth and draw < 0.55:
        return [1] if random.random() < 0.3 else [document(random, depth - 1) for _ in range(random.randint(0, 3))]
    return scalar(random)


def scalar(random: Random) -> syntax.Scalar:
    if random.random() < 0.5:
        return random.choice(LOOKALIKES)
    return random.choice([random.choice(TEXTS), random.choice(NUMBERS), random.choice([True, False, None])])


def stored(random: Random, value: Any, is_escaping: bool) -> str:
    """One of the many texts of a document. Without escaping, only what JSON demands to be escaped is."""
    space = random.choice(["", "", " ", "\n"])
    if isinstance(value, dict):
        parts = [f"{stored(random, k, is_escaping)}{space}:{stored(random, v, is_escaping)}" for k, v in value.items()]
        return "{" + space + f"{space},".join(parts) + "}"
    if isinstance(value, list):
        return "[" + f",{space}".join(stored(random, element, is_escaping) for element in value) + space + "]"
    if isinstance(value, str):
        if is_escaping and random.random() < 0.5:
            return '"' + "".join(f"\\u{unit:04x}" for unit in utf16(value)) + '"'
        return json.dumps(value, ensure_ascii=is_escaping)
    if isinstance(value, float) or type(value) is int:
        return number(random, value)
    return json.dumps(value)


def utf16(text: str) -> list[int]:
    data = text.encode("utf-16-be")
    return [int.from_bytes(data[place : place + 2]) for place in range(0, len(data), 2)]


def number(random: Random, value: float) -> str:
    if math.isinf(value):
        return "1e400"
    spellings = [repr(value)]
    if type(value) is int and abs(value) < 2**53:
        spellings += [f"{value}.0", f"{value}e0", f"{value}00e-2" if value else "-0"]
    return random.choice(spellings)


def expression(random: Random, depth: int = 3) -> syntax.Condition:
    draw = random.random()
    if depth and draw < 0.35:
        parts = tuple(expression(random, depth - 1) for _ in range(random.randint(2, 3)))
        return random.choice([syntax.And, syntax.Or])(parts)
    if depth and draw < 0.5:
        return syntax.Not(expression(random, depth - 1))
    return leaf(random)


def leaf(random: Random) -> syntax.Condition:
    match random.randrange(11):
        case 0 | 1 | 2:
            return comparison(random, syntax.Literal(scalar(random)))
        case 3:
            return comparison(random, value(random))
        case 4:
            return syntax.In(value(random), tuple(syntax.Literal(scalar(random)) for _ in range(random.randint(0, 5))))
        case 5:
            return syntax.Truth(path(random))
        case 6:
            return syntax.Contains(path(random), syntax.Literal(scalar(random)))
        case 7:
            return syntax.StartsWith(path(random), random.choice(TEXTS))
        case 8:
            return syntax.EndsWith(path(random), random.choice(TEXTS))
        case 9:
            return syntax.Matches(path(random), random.choice(PATTERNS))
        case _:
            return syntax.Has(path(random), random.choice([key(random), key(random), 0, 1]))


def comparison(random: Random, right: syntax.Value | syntax.Literal) -> syntax.Compare:
    left = value(random)
    if isinstance(left, syntax.Type) and isinstance(right, syntax.Literal):
        right = syntax.Literal(random.choice(TYPES))
    is_ordered = not isinstance(right, syntax.Literal) or not isinstance(right.value, bool | None)
    return syntax.Compare(left, random.choice(OPERATORS if is_ordered else OPERATORS[:2]), right)


def value(random: Random) -> syntax.Value:
    found = path(random)
    return random.choices([found, syntax.Length(found), syntax.Type(found)], [6, 2, 1])[0]


def path(random: Random) -> syntax.Path:
    steps = random.choices([0, 1, 2, 3], [1, 6, 3, 1])[0]
    return syntax.Path(tuple(key(random) if random.random() < 0.8 else random.randint(-1, 1) for _ in range(steps)))


def written(random: Random, node: Any) -> str:
    """One of the many texts of an expression."""
    match node:
        case syntax.And(parts):
            return " and ".join(closed(random, part) for part in parts)
        case syntax.Or(parts):
            return " or ".join(closed(random, part) for part in parts)
        case syntax.Not(part):
            return random.choice([f"not {closed(random, part)}", f"({closed(random, part)} | not)"])
        case syntax.Compare(left, operator, right):
            return f"{written(random, left)} {operator} {operand(random, right)}"
        case syntax.In(left, options):
            return f"{written(random, left)} in [{', '.join(written(random, option) for option in options)}]"
        case syntax.Truth(place):
            return written(random, place)
        case syntax.Contains(place, what):
            return f"{written(random, place)} | contains({written(random, what)})"
        case syntax.Has(place, step):
            return f"{written(random, place)} | has({literal(random, step)})"
        case syntax.StartsWith(place, text):
            return f"{written(random, place)}|startswith({literal(random, text)})"
        case syntax.EndsWith(place, text):
            return f"{written(random, place)}|endswith({literal(random, text)})"
        case syntax.Matches(place, pattern):
            return f"{written(random, place)} |test( {literal(random, pattern)} )"
        case syntax.Length(place):
            return random.choice(["{} | length", "({}|length)"]).format(written(random, place))
        case syntax.Type(place):
            return random.choice(["{} | type", "({}|type)"]).format(written(random, place))
        case syntax.Literal(constant):
            return literal(random, constant)
        case syntax.Path(steps):
            return "".join(step_text(random, step, is_first=number == 0) for number, step in enumerate(steps)) or "."
    raise AssertionError(node)


def closed(random: Random, node: Any) -> str:
    """In parentheses where they are needed, and at times where they are not."""
    is_needed = isinstance(node, syntax.And | syntax.Or)
    return f"({written(random, node)})" if is_needed or random.random() < 0.3 else written(random, node)


def operand(random: Random, node: Any) -> str:
    text = written(random, node)
    return f"({text})" if isinstance(node, syntax.Path) and random.random() < 0.3 else text


def step_text(random: Random, step: str | int, is_first: bool) -> str:
    dot = "." if is_first else random.choice(["", "."])
    if isinstance(step, int):
        return f"{dot}[{step}]"
    quoted = literal(random, step)
    forms = [f".{quoted}", f"{dot}[{quoted}]"]
    return random.choice([*forms, f".{step}"] if step.isascii() and step.isidentifier() else forms)


def literal(random: Random, constant: syntax.Scalar) -> str:
    if isinstance(constant, float) and math.isinf(constant):
        return "1e400"
    return json.dumps(constant, ensure_ascii=random.random() < 0.5)
