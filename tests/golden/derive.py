"""An example of any struct, from its types: every field has a value of its own, so that no two can trade places.

For operations and queries that `examples.py` does not name. What needs a meaning is written there by hand.
"""

from itertools import count
from typing import Any

from msgspec import inspect


def example_of(kind: Any) -> Any:
    return _value(inspect.type_info(kind), "value", count(3))


def _value(kind: inspect.Type, name: str, numbers: "count[int]") -> Any:
    match kind:
        case inspect.StructType():
            return kind.cls(**{field.name: _value(field.type, field.name, numbers) for field in kind.fields})
        case inspect.Metadata():
            return _value(kind.type, name, numbers)
        case inspect.UnionType():
            return _value(next(t for t in kind.types if not isinstance(t, inspect.NoneType)), name, numbers)
        case inspect.ListType():
            return [_value(kind.item_type, name, numbers)]
        case inspect.VarTupleType():
            return (_value(kind.item_type, name, numbers),)
        case inspect.EnumType():
            return list(kind.cls)[-1]
        case inspect.LiteralType():
            return kind.values[-1]
        case inspect.BoolType():
            return True
        case inspect.IntType():
            return min(next(numbers), kind.le if kind.le is not None else 1 << 40)
        case inspect.FloatType():
            return next(numbers) + 0.5
        case inspect.StrType():
            return name
        case inspect.BytesType():
            return b'{"n":%d}' % next(numbers)
        case inspect.NoneType():
            return None
    raise AssertionError(f"no example of {kind}: write one in tests/golden/examples.py")


def with_derived(by_hand: dict[str, Any], kinds: dict[str, Any]) -> dict[str, Any]:
    """`kinds` is every name with its type; what is written by hand wins."""
    return {**by_hand, **{name: example_of(kind) for name, kind in kinds.items() if name not in by_hand}}
