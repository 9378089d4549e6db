"""Redaction: values that people must not see are replaced in documents, found by their names. Pure.

Everywhere a name is hidden when one of its words is in `WORDS`: `password`, `db_password`, `apiToken`. Each queue may
name more by paths: `customer.email`, `items.*.iban`, `**.note`. Lists are passed through; `*` is any one name, `**` at
the beginning any depth. A document without such a name stays as it is, byte for byte.
"""

import re
from itertools import pairwise
from typing import Any

import msgspec

from corvo.model.limits import REDACTION_PATH_CHARS_MAX

REDACTED = "(redacted)"
WORDS = frozenset(
    {
        *("password", "passwd", "passphrase", "secret", "token", "authorization", "cookie"),
        *("credential", "credentials", "apikey", "privatekey", "card", "cvv", "cvc", "iban", "ssn", "pin"),
    }
)
_PAIRS = frozenset((("api", "key"), ("private", "key"), ("access", "key")))
_SPLIT = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
# A quick look: whether a document can hold any of these names. An escape in a name could hide one.
_HINT = re.compile(
    rb"pass(?:word|wd|phrase)|secret|token|authoriz|cookie|credential|key|card|cv[vc]|iban|ssn|pin|\\u", re.IGNORECASE
)
_PIECE = re.compile(r"[^.*\x00-\x1f\x7f]{1,100}|\*")

Path = tuple[str, ...]


def parse_path(text: str) -> Path:
    """ValueError with a sentence."""
    pieces = tuple(text.split("."))
    inner = pieces[1:] if pieces[0] == "**" else pieces
    if len(text) > REDACTION_PATH_CHARS_MAX or not inner or not all(_PIECE.fullmatch(piece) for piece in inner):
        raise ValueError(
            f"{text[:100]!r} is no path; expected names with dots between them, such as customer.email,"
            " items.*.iban or **.note"
        )
    return pieces


def is_secret_name(name: str) -> bool:
    words = [word.lower() for word in _SPLIT.findall(name)]
    if not WORDS.isdisjoint(words) or name.lower() in WORDS:
        return True
    return any(pair in _PAIRS for pair in pairwise(words))


def redacted(document: bytes, paths: tuple[Path, ...]) -> bytes:
    """What people see of a JSON document. One that cannot be read is hidden as a whole."""
    if not paths and _HINT.search(document) is None:
        return document
    try:
        value = msgspec.json.decode(document)
        shown, is_changed = _walk(value, tuple((path, 0) for path in paths))
        return msgspec.json.encode(shown) if is_changed else document
    except (ValueError, RecursionError):
        return b'"%b"' % REDACTED.encode()


_Place = tuple[Path, int]  # a path, and how many of its names lie behind


def _walk(value: Any, places: tuple[_Place, ...]) -> tuple[Any, bool]:
    if isinstance(value, list):
        walked = [_walk(item, places) for item in value]
        return [item for item, _ in walked], any(changed for _, changed in walked)
    if not isinstance(value, dict):
        return value, False
    shown, is_changed = {}, False
    for name, inner in value.items():
        inside, is_hit = _enter(name, places)
        if is_hit or is_secret_name(name):
            shown[name], changed = REDACTED, True
        else:
            shown[name], changed = _walk(inner, inside)
        is_changed = is_changed or changed
    return shown, is_changed


def _enter(name: str, places: tuple[_Place, ...]) -> tuple[tuple[_Place, ...], bool]:
    """The paths that go on below a name, and whether one of them ends at it."""
    inside: list[_Place] = []
    is_hit = False
    for path, at in places:
        if path[at] == "**":
            inside.append((path, at))
            at += 1
        if path[at] in ("*", name):
            is_hit = is_hit or at + 1 == len(path)
            if at + 1 < len(path):
                inside.append((path, at + 1))
    return tuple(inside), is_hit
