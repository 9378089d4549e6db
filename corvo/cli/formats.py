"""Answers as text for programs: JSON, JSON lines, YAML. Pure.

Numbers keep all their digits: JSON becomes YAML without passing through floats of fewer digits. The YAML is block style
and quotes every string that a reader of YAML 1.1 or 1.2 could take for something else.
"""

import json
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

import msgspec

JSON, NDJSON, YAML, TABLE = "json", "ndjson", "yaml", "table"

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*", re.ASCII)
_WORDS = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))  # of YAML, in any case
# In double quotes YAML folds other line ends, and forbids the second set of control characters.
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")
_STEP = "  "


def encoded(value: Any, output: str) -> str:
    """Without the last line end. Of a list, NDJSON has an element a line; of anything else, the whole."""
    content = msgspec.json.encode(value)
    if output == YAML:
        return "\n".join(_block(json.loads(content, parse_float=Decimal), ""))
    if output == NDJSON:
        if content[:1] != b"[":
            return content.decode()
        return "\n".join(bytes(one).decode() for one in msgspec.json.decode(content, type=list[msgspec.Raw]))
    return msgspec.json.format(content).decode()


def listed(values: Iterable[Any], output: str) -> Iterator[str]:
    """The pieces of a list, as its elements come. Of JSON an element a line, in one array: without the last piece a
    reader sees that it was cut off."""
    if output != JSON:
        for value in values:
            yield encoded([value], output) + "\n"
        return
    opening = "["
    for value in values:
        yield f"{opening}\n{msgspec.json.encode(value).decode()}"
        opening = ","
    yield "[]\n" if opening == "[" else "\n]\n"


def _block(value: Any, indent: str) -> list[str]:
    """Lines; the first one is indented like all others."""
    lines: list[str] = []
    if isinstance(value, dict) and value:
        for key, item in value.items():
            if isinstance(item, dict | list) and item:
                lines += [f"{indent}{_scalar(key)}:", *_block(item, indent + _STEP)]
            else:
                lines.append(f"{indent}{_scalar(key)}: {_scalar(item)}")
    elif isinstance(value, list) and value:
        for item in value:
            first, *rest = _block(item, indent + _STEP)
            lines += [f"{indent}- {first.removeprefix(indent + _STEP)}", *rest]
    else:
        lines.append(f"{indent}{_scalar(value)}")
    return lines


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
            return value
        quoted = json.dumps(value, ensure_ascii=False)
        return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)
    if isinstance(value, Decimal):
        return _number(value)
    return json.dumps(value)  # null, true, an integer, {} or []


def _number(value: Decimal) -> str:
    """YAML 1.1 takes 1e5 for a text: it wants a point and a sign."""
    text = str(value).lower()
    mantissa, e, exponent = text.partition("e")
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}e{exponent if exponent[:1] in '+-' else '+' + exponent}" if e else mantissa
