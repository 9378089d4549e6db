"""`null` in an optional field means that the field is absent.

Most fields accept no null, and nearly all bodies hold none: msgspec decodes them at once, and only a body that it
refuses comes here. The type alone decides: a null is dropped where the field has a default and its type accepts no
null. A document (`payload`, `progress`) may itself be null, and stays. All other bytes of the body are unchanged.
"""

import functools
from typing import Any

import msgspec
from msgspec import inspect

_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
_TAKES_NULL = (inspect.NoneType, inspect.AnyType, inspect.RawType)


def without_nulls(body: bytes, kind: Any) -> bytes:
    """The body without nulls that mean absence; the same object when it has none, or is not JSON."""
    try:
        return _without(body, _info(kind))
    except msgspec.MsgspecError:
        return body


def _without(text: bytes, kind: inspect.Type) -> bytes:
    if b"null" not in text:
        return text
    first = text.lstrip()[:1]
    for bare in _bare(kind):
        if first == b"{" and isinstance(bare, inspect.StructType):
            return _without_in_struct(text, bare)
        if first == b"{" and isinstance(bare, inspect.DictType):
            values = {name: _piece(value, bare.value_type) for name, value in _decode_object(text).items()}
            return msgspec.json.encode(values)
        if first == b"[" and isinstance(bare, inspect.ListType):
            return msgspec.json.encode([_piece(value, bare.item_type) for value in _decode_list(text)])
    return text


def _without_in_struct(text: bytes, struct: inspect.StructType) -> bytes:
    fields = {field.encode_name: field for field in struct.fields}
    kept: dict[str, msgspec.Raw] = {}
    for name, value in _decode_object(text).items():
        field = fields.get(name)
        if field is None:
            kept[name] = value
        elif field.required or bytes(value) != b"null" or _takes_null(field.type):
            kept[name] = _piece(value, field.type)
    return msgspec.json.encode(kept)


def _piece(value: msgspec.Raw, kind: inspect.Type) -> msgspec.Raw:
    return msgspec.Raw(_without(bytes(value), kind))


def _takes_null(kind: inspect.Type) -> bool:
    return any(isinstance(bare, _TAKES_NULL) for bare in _bare(kind))


def _bare(kind: inspect.Type) -> list[inspect.Type]:
    if isinstance(kind, inspect.Metadata):
        return _bare(kind.type)
    if isinstance(kind, inspect.UnionType):
        return [bare for one in kind.types for bare in _bare(one)]
    return [kind]


@functools.cache
def _info(kind: Any) -> inspect.Type:
    return inspect.type_info(kind)
