"""Sentences that say what a field of a request may hold. msgspec's own messages only say that a value is wrong.

Used only for refusals, so speed does not matter.
"""

import functools
import re
from typing import Any

from msgspec import inspect

_PIECE = re.compile(r"\.([^.\[\]]+)|\[[^\]]*\]")


def expected(kind: Any, path: str) -> str | None:
    """The choices or the form of the field at a path as msgspec writes it (`$.jobs[0].priority`). None for numbers and
    lengths, where msgspec's message is enough."""
    places = [_info(kind)]
    for piece in _PIECE.finditer(path):
        places = [inner for place in places for inner in _inside(place, piece[1])]
    for place in places:
        for words, bare in _bare(place):
            if isinstance(bare, inspect.LiteralType):
                *others, last = map(str, bare.values)
                return f"{', '.join(others)} or {last}" if others else last
            if isinstance(bare, inspect.BoolType):
                return "true or false"
            if isinstance(bare, inspect.StrType) and bare.pattern is not None and words:
                return words
    return None


@functools.cache
def _info(kind: Any) -> inspect.Type:
    return inspect.type_info(kind)


def _bare(place: inspect.Type, words: str = "") -> list[tuple[str, inspect.Type]]:
    """The types allowed there, without annotations and unions, each with its description."""
    if isinstance(place, inspect.Metadata):
        own = (place.extra_json_schema or {}).get("description", "")
        return _bare(place.type, own or words)
    if isinstance(place, inspect.UnionType):
        return [bare for one in place.types for bare in _bare(one, words)]
    return [(words, place)]


def _inside(place: inspect.Type, name: str | None) -> list[inspect.Type]:
    """The type of a field by its name; without a name, of a list's items or an object's values."""
    found: list[inspect.Type] = []
    for _, bare in _bare(place):
        if name is not None and isinstance(bare, inspect.StructType):
            found += [field.type for field in bare.fields if field.encode_name == name]
        elif name is None and isinstance(bare, inspect.ListType):
            found.append(bare.item_type)
        elif name is None and isinstance(bare, inspect.DictType):
            found.append(bare.value_type)
    return found
