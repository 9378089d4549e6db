"""The names inside a request's body or query: found by their types, so that no field is forgotten.

A field whose type carries a `NameKind` (`QueueName`, `WorkerId`, `ScheduleName`) holds a name of the client's
namespace, or an id (`JobId`, `BatchId`). Before a request is planned, its names are qualified
(`corvo/model/namespaces.py`) and its queues are compared with the key's scope. Requests in the namespace `default` by
keys without a scope skip both.
"""

import types
import typing
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cache
from typing import Any

import msgspec

from corvo.model.errors import invalid
from corvo.model.namespaces import SEPARATOR, qualify, shown_name


class NameKind(Enum):
    """In the metadata of a type: its texts are names of this kind."""

    QUEUE = "queue"
    QUEUES = "queues, separated by commas"
    WORKER = "worker"
    SCHEDULE = "schedule"
    ID = "id"  # made by the server: it has its namespace in it already


Change = Callable[[NameKind, str], str]
_Visit = Callable[[Any, Change], Any]  # returns the value that takes its place


def _visitor(kind: Any) -> _Visit | None:
    """None: a value of this type holds no name."""
    return _make_visitor(kind)


@cache
def _make_visitor(kind: Any) -> _Visit | None:
    origin = typing.get_origin(kind)
    if origin is typing.Annotated:
        of_names = [meta for meta in kind.__metadata__ if isinstance(meta, NameKind)]
        return _name(of_names[0]) if of_names else _visitor(typing.get_args(kind)[0])
    if origin in (typing.Union, types.UnionType):
        return _union(typing.get_args(kind))
    if origin in (list, tuple):
        return _items(_visitor(typing.get_args(kind)[0]))
    if origin is dict:
        return _pairs(*map(_visitor, typing.get_args(kind)))
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _struct(kind)
    return None


def _name(kind: NameKind) -> _Visit:
    return lambda value, change: change(kind, value) if isinstance(value, str) else value


def _union(kinds: tuple[Any, ...]) -> _Visit | None:
    visitors = [visit for visit in map(_visitor, kinds) if visit is not None]
    if not visitors:
        return None
    assert len(visitors) == 1, f"one of {kinds} can hold names, not several"
    visit = visitors[0]
    return lambda value, change: value if value is None or value is msgspec.UNSET else visit(value, change)


def _items(visit: _Visit | None) -> _Visit | None:
    return None if visit is None else lambda values, change: [visit(value, change) for value in values]


def _pairs(of_key: _Visit | None, of_value: _Visit | None) -> _Visit | None:
    if of_key is None and of_value is None:
        return None
    return lambda pairs, change: {
        (of_key(key, change) if of_key else key): (of_value(value, change) if of_value else value)
        for key, value in pairs.items()
    }


def _struct(kind: type[msgspec.Struct]) -> _Visit | None:
    hints = typing.get_type_hints(kind, include_extras=True)
    visitors = [(name, visit) for name in kind.__struct_fields__ if (visit := _visitor(hints[name])) is not None]
    if not visitors:
        return None

    def visit_fields(value: Any, change: Change) -> Any:
        for name, visit in visitors:
            held = getattr(value, name)
            if held is not None:
                setattr(value, name, visit(held, change))
        return value

    return visit_fields


def qualify_names(body: Any, namespace: str) -> None:
    """Put the namespace before every name in the body."""
    visit = _visitor(type(body))
    if visit is not None:
        visit(body, lambda kind, name: _qualified(kind, name, namespace))


def _qualified(kind: NameKind, name: str, namespace: str) -> str:
    if kind is NameKind.ID:
        return name
    if kind is NameKind.QUEUES:
        return ",".join(qualify(namespace, part) if part else "" for part in name.split(","))
    return qualify(namespace, name)


def show_names(body: Any) -> None:
    """The reverse: every name in the body as its tenant knows it."""
    visit = _visitor(type(body))
    if visit is not None:
        visit(body, _shown)


def _shown(kind: NameKind, name: str) -> str:
    if kind is NameKind.ID:
        return name
    return ",".join(map(shown_name, name.split(","))) if kind is NameKind.QUEUES else shown_name(name)


def queues_in(body: Any) -> Iterator[str]:
    """Every queue that the body names."""
    found: list[str] = []

    def note(kind: NameKind, name: str) -> str:
        if kind is NameKind.QUEUE:
            found.append(name)
        elif kind is NameKind.QUEUES:
            found.extend(part for part in name.split(",") if part)
        return name

    visit = _visitor(type(body))
    if visit is not None:
        visit(body, note)
    return iter(found)


def ids_in(body: Any) -> set[str]:
    """Every id that the body names."""
    found: set[str] = set()

    def note(kind: NameKind, name: str) -> str:
        if kind is NameKind.ID:
            found.add(name)
        return name

    visit = None if body is None else _visitor(type(body))
    if visit is not None:
        visit(body, note)
    return found


def refuse_separator(name: str, field: str) -> None:
    """A name from a path has not been compared with a pattern yet, and must not claim a namespace."""
    if SEPARATOR in name:
        raise invalid(field, f"{name[:100]!r} contains {SEPARATOR!r}, which no name can")
