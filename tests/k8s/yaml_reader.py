"""A strict reader for the plain YAML of our manifests: block mappings, block lists, scalars, JSON lists on one line.

What it does not know it refuses, so a manifest cannot hide anything from the tests. No anchors, no folded text, no
tabs, no duplicate keys.
"""

import json
import re
from typing import Any

_KEY = re.compile(r'(?P<key>[A-Za-z0-9_./-]+|"[^"]+"):(?: +(?P<value>.*))?')
_PLAIN = re.compile(r"[A-Za-z0-9_./:-][A-Za-z0-9_./:=@, -]*")


class Unreadable(ValueError):
    """What is not understood, and where."""


def documents(text: str) -> list[Any]:
    return [_Reader(part).read() for part in re.split(r"^---$", text, flags=re.MULTILINE) if part.strip()]


class _Reader:
    def __init__(self, text: str) -> None:
        self._lines: list[tuple[int, str]] = []
        for raw in text.splitlines():
            line = re.sub(r"(^|\s+)# .*$", "", raw).rstrip()
            if not line.strip():
                continue
            if "\t" in line:
                raise Unreadable(f"a tab in {raw!r}")
            self._lines.append((len(line) - len(line.lstrip()), line.strip()))
        self._at = 0

    def read(self) -> Any:
        value = self._block(0)
        if self._at != len(self._lines):
            raise Unreadable(f"indentation of {self._lines[self._at][1]!r}")
        return value

    def _block(self, indent: int) -> Any:
        if self._lines[self._at][1].startswith("- "):
            return self._list(indent)
        return self._mapping(indent)

    def _list(self, indent: int) -> list[Any]:
        items = []
        while self._at < len(self._lines) and self._lines[self._at][0] == indent:
            line = self._lines[self._at][1]
            if not line.startswith("- "):
                break
            rest = line[2:]
            if _KEY.fullmatch(rest):
                self._lines[self._at] = (indent + 2, rest)  # a mapping that begins on the line of its dash
                items.append(self._mapping(indent + 2))
            else:
                items.append(_scalar(rest))
                self._at += 1
        return items

    def _mapping(self, indent: int) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        while self._at < len(self._lines) and self._lines[self._at][0] == indent:
            line = self._lines[self._at][1]
            match = _KEY.fullmatch(line)
            if match is None:
                raise Unreadable(f"no key in {line!r}")
            key = match["key"].strip('"')
            if key in mapping:
                raise Unreadable(f"{key!r} twice")
            self._at += 1
            mapping[key] = _scalar(match["value"]) if match["value"] else self._block(self._deeper(indent, key))
        return mapping

    def _deeper(self, indent: int, key: str) -> int:
        if self._at == len(self._lines) or self._lines[self._at][0] != indent + 2:
            raise Unreadable(f"nothing, two deeper, below {key!r}")
        return indent + 2


def _scalar(text: str) -> Any:
    if text[0] in '["':
        return json.loads(text)
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"0[0-7]+", text):  # as YAML 1.1, and so Kubernetes, reads it
        return int(text, 8)
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if not _PLAIN.fullmatch(text) or text in ("null", "yes", "no", "on", "off"):
        raise Unreadable(f"the scalar {text!r}: quote it")
    return text
