"""Splits the text into tokens, each with its column. Strings and numbers follow JSON.

Columns count characters from 1, as editors do. `mistake` makes every refusal, so that all read alike.
"""

import json
import re
from typing import Literal, NamedTuple, TypeAlias

from corvo.model.errors import Refusal, invalid
from corvo.model.limits import JQ_BYTES_MAX, JQ_TOKENS_MAX

FIELD = "payload_jq"
Kind: TypeAlias = Literal["field", "name", "string", "number", "sign", "end"]

_PLAIN = re.compile(
    r"(?P<field>\.[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<sign>==|!=|<=|>=|[<>|()\[\],.])"
)
_SPACE = re.compile(r"[ \t\r\n]*")
_read_string = json.JSONDecoder().raw_decode
_INT64 = range(-(2**63), 2**63)


class Token(NamedTuple):
    kind: Kind
    value: str | int | float  # a field without its dot, a string unquoted, a number as a number
    column: int
    text: str  # as written


def mistake(column: int, sentence: str) -> Refusal:
    return invalid(FIELD, f"column {column}: {sentence}")


def tokens_of(text: str) -> list[Token]:
    """All tokens, then an end token. Refuses unknown characters and texts that are too long."""
    size = len(text.encode(errors="surrogatepass"))
    if size > JQ_BYTES_MAX:
        raise invalid(FIELD, f"{size} bytes long; at most {JQ_BYTES_MAX} are allowed")
    found: list[Token] = []
    place = _SPACE.match(text).end()  # type: ignore[union-attr]  # matches the empty string, too
    while place < len(text):
        if len(found) == JQ_TOKENS_MAX:
            raise mistake(place + 1, f"more than {JQ_TOKENS_MAX} words and signs; shorten the expression")
        token = _string(text, place) if text[place] == '"' else _plain(text, place)
        found.append(token)
        place = _SPACE.match(text, place + len(token.text)).end()  # type: ignore[union-attr]
    found.append(Token("end", "", len(text) + 1, ""))
    return found


def number_of(text: str) -> int | float:
    """64-bit integers are exact; every other number is a double, as in SQLite."""
    if text.lstrip("-").isdecimal():
        whole = int(text) if len(text) <= 20 else None
        return whole if whole is not None and whole in _INT64 else float(text)
    return float(text)


def _string(text: str, place: int) -> Token:
    try:
        value, end = _read_string(text, place)
        value.encode()
    except json.JSONDecodeError as error:
        raise mistake(
            error.pos + 1, f"expected the rest of a JSON string: {error.msg[0].lower()}{error.msg[1:]}"
        ) from None
    except UnicodeEncodeError:
        raise mistake(place + 1, "expected a valid string; it has a lone surrogate") from None
    return Token("string", value, place + 1, text[place:end])


def _plain(text: str, place: int) -> Token:
    match = _PLAIN.match(text, place)
    if match is None:
        raise mistake(place + 1, f"expected a path, a value or an operator, found {shown(text[place])}")
    written = match[0]
    if match["field"]:
        return Token("field", written[1:], place + 1, written)
    if match["name"]:
        return Token("name", written, place + 1, written)
    if match["number"]:
        return Token("number", number_of(written), place + 1, written)
    return Token("sign", written, place + 1, written)


def shown(text: str) -> str:
    """The text for an error sentence: shortened, and without control characters."""
    return json.dumps(text if len(text) <= 40 else text[:39] + "…", ensure_ascii=not text.isprintable())
