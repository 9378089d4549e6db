"""Strings that the text of every matching payload must contain, so that the trigram index can look them up first.

This holds only for payloads without a backslash: they store a string as its own characters, in quotes.
"""

from gateway.search.jq.syntax import (
    And,
    Compare,
    Condition,
    Contains,
    EndsWith,
    Has,
    In,
    Literal,
    Matches,
    Or,
    Path,
    Scalar,
    StartsWith,
    Truth,
)


def literals_of(condition: Condition) -> list[str]:
    match condition:
        case And(parts):
            found = [literal for part in parts for literal in literals_of(part)]
        case Or(parts):
            first, *others = [literals_of(part) for part in parts]
            found = [literal for literal in first if all(literal in other for other in others)]
        case Compare(Path() as path, operator, right):
            found = _compared(path, operator, right)
        case In(Path() as path, options):
            found = _one_of(path, [option.value for option in options])
        case Truth(path) | Matches(path, _):
            found = _keys(path)
        case Has(path, step):
            found = _keys(Path((*path.steps, step)))
        case Contains(path, Literal(what)):
            found = [*_keys(path), what if isinstance(what, str) else _spelt(what)]
        case StartsWith(path, text):
            found = [*_keys(path), f'"{text}']
        case EndsWith(path, text):
            found = [*_keys(path), f'{text}"']
        case _:
            found = []  # negations, lengths and types also match payloads without the path
    # Unprintable strings are left out: the index need not support a NUL.
    return [literal for literal in dict.fromkeys(found) if literal and literal.isprintable()]


def _keys(path: Path) -> list[str]:
    return [f'"{step}"' for step in path.steps if isinstance(step, str)]


def _compared(path: Path, operator: str, right: object) -> list[str]:
    if isinstance(right, Literal):
        if operator == "==":
            return _one_of(path, [right.value])
        return [] if operator == "!=" and right.value is not None else _keys(path)
    if operator in ("==", "!="):
        return []
    return [*_keys(path), *(_keys(right) if isinstance(right, Path) else [])]


def _one_of(path: Path, options: list[Scalar]) -> list[str]:
    if None in options:
        return []
    return [*_keys(path), *([_spelt(options[0])] if len(options) == 1 else [])]


def _spelt(value: Scalar) -> str:
    """The only spelling of a value; empty for numbers, since 1, 1.0 and 10e-1 are equal."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    return f'"{value}"' if isinstance(value, str) else ""
