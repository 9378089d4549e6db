"""The syntax tree of an expression, independent of any database.

A value is a path, the length or type of a path, or a literal. Everything else is a condition: true or false, never
null. The `steps` of a path are keys and positions; a negative position counts from the end.
"""

from typing import Literal as One
from typing import TypeAlias

import msgspec

Scalar: TypeAlias = str | int | float | bool | None
Operator: TypeAlias = One["==", "!=", "<", "<=", ">", ">="]


class Node(msgspec.Struct, frozen=True):
    pass


class Path(Node, frozen=True):
    steps: tuple[str | int, ...] = ()


class Length(Node, frozen=True):
    path: Path


class Type(Node, frozen=True):
    path: Path


class Literal(Node, frozen=True):
    value: Scalar


Value: TypeAlias = Path | Length | Type


class Compare(Node, frozen=True):
    left: Value
    operator: Operator
    right: Value | Literal


class In(Node, frozen=True):
    value: Value
    options: tuple[Literal, ...]


class Truth(Node, frozen=True):
    path: Path


class Contains(Node, frozen=True):
    path: Path
    what: Literal


class StartsWith(Node, frozen=True):
    path: Path
    text: str


class EndsWith(Node, frozen=True):
    path: Path
    text: str


class Matches(Node, frozen=True):
    path: Path
    pattern: str


class Has(Node, frozen=True):
    path: Path
    step: str | int


class And(Node, frozen=True):
    parts: tuple["Condition", ...]


class Or(Node, frozen=True):
    parts: tuple["Condition", ...]


class Not(Node, frozen=True):
    part: "Condition"


Condition: TypeAlias = Compare | In | Truth | Contains | StartsWith | EndsWith | Matches | Has | And | Or | Not
