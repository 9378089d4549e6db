"""JSON as it comes from outside: bytes that are checked, then passed on untouched.

A payload is never decoded and encoded again: what a producer sent is what a worker gets, to the byte. msgspec's `Raw`
checks the grammar; what it does not look at is checked here: UTF-8, depth, size.
"""

import re
from typing import Any, TypeVar

import msgspec

from corvo.model.errors import Refusal, invalid
from corvo.model.limits import JSON_DEPTH_MAX, SMALL_JSON_BYTES_MAX
from corvo.model.null_fields import without_nulls
from corvo.model.validation_messages import expected

T = TypeVar("T")

_ESCAPES = re.compile(rb"\\.", re.DOTALL)
_EXTREME_NUMBER = re.compile(rb"[0-9][eE][+-]?[0-9]{3}|[0-9]{300}")
_ALL_BUT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_TOO_DEEP = b"[" * (JSON_DEPTH_MAX + 1)
_FIELD_PATH = re.compile(r"(.*) - at `\$(.*)`$", re.DOTALL)
_FIELD_NAME = re.compile(r"(?:required|unknown) field `(.*)`$", re.DOTALL)
_SAYS_LITTLE = re.compile(r"Invalid enum value |Expected `str` matching regex |Expected `bool`, got `str`")
EMPTY_RAW = msgspec.Raw(b"")
_decode_keys = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def no_document() -> msgspec.Raw:
    """The default of optional documents. A factory, because the schema generator cannot show a `Raw` default."""
    return EMPTY_RAW


def decode_body(decoder: "msgspec.json.Decoder[T]", body: bytes) -> T:
    """A body as its struct, or the refusal that names what is wrong and where."""
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise Refusal("PARSE_ERROR", f"the body is not UTF-8 at byte {error.start}") from None
    check_depth(body)
    try:
        return _decode(decoder, body)
    except msgspec.ValidationError as error:
        raise validation_refusal(error, decoder.type) from None
    except msgspec.DecodeError as error:
        raise Refusal("PARSE_ERROR", f"the body is not JSON: {error}") from None
    except (RecursionError, UnicodeDecodeError, OverflowError) as error:
        raise Refusal("PARSE_ERROR", f"the body cannot be read: {error}") from None


def _decode(decoder: "msgspec.json.Decoder[T]", body: bytes) -> T:
    try:
        return decoder.decode(body)
    except msgspec.ValidationError:
        shorter = without_nulls(body, decoder.type)
        if shorter is body:
            raise
    return decoder.decode(shorter)


def check_depth(body: bytes) -> None:
    """Counting brackets settles a small body; a larger one loses its strings, then its innermost brackets, a level a
    round: all at the speed of C, because every batch comes this way."""
    if body.count(b"[") + body.count(b"{") <= JSON_DEPTH_MAX:
        return
    plain = _ESCAPES.sub(b"", body) if b"\\" in body else body
    brackets = b"".join(plain.split(b'"')[::2]).translate(None, _ALL_BUT_BRACKETS)
    brackets = brackets.replace(b"{", b"[").replace(b"}", b"]")
    is_deep = _TOO_DEEP in brackets  # a tower: one level a round would be sixty copies of it for nothing
    for _ in range(0 if is_deep else JSON_DEPTH_MAX):
        if b"[]" not in brackets:
            break
        brackets = brackets.replace(b"[]", b"")
    if is_deep or b"[]" in brackets or brackets.count(b"[") > JSON_DEPTH_MAX:
        raise Refusal("PARSE_ERROR", f"the body is nested deeper than {JSON_DEPTH_MAX} levels")


def check_numbers(text: bytes, field: str) -> None:
    """A number that no double can hold would pass through us and break whoever reads it, our own tools among them.
    Only a text that could hold one is looked at closely."""
    if _EXTREME_NUMBER.search(text):
        try:
            msgspec.json.decode(text)
        except msgspec.ValidationError as error:
            raise invalid(field, str(error)[0].lower() + str(error)[1:]) from None


def document(raw: msgspec.Raw, field: str, bytes_max: int = SMALL_JSON_BYTES_MAX) -> bytes:
    """An optional JSON document: `null` and absence are both none."""
    if raw is EMPTY_RAW:
        return b""
    text = bytes(raw)
    if text == b"null":
        return b""
    check_numbers(text, field)
    if len(text) > bytes_max:
        raise Refusal("PAYLOAD_TOO_LARGE", f"{field}: {len(text)} bytes of JSON, at most {bytes_max} are taken", field)
    return text


def object_document(raw: msgspec.Raw, field: str) -> bytes:
    text = document(raw, field)
    if text and text[:1] != b"{":
        raise invalid(field, "expected a JSON object")
    return text


def keys_of(stored: bytes) -> dict[str, msgspec.Raw]:
    """A stored document, to be merged with other keys: its own keys with their bytes untouched. A document that is no
    object has no room for others and stands under `payload`."""
    if not stored:
        return {}
    return _decode_keys(stored) if stored.lstrip()[:1] == b"{" else {"payload": msgspec.Raw(stored)}


def to_raw(stored: bytes) -> Any:
    """A stored document for an answer: None where there is none."""
    return msgspec.Raw(stored) if stored else None


def validation_refusal(error: msgspec.ValidationError, kind: Any) -> Refusal:
    """Names the field, and what it may hold where msgspec's own words leave that open."""
    message, place = str(error), ""
    match = _FIELD_PATH.match(message)
    if match is not None:
        message, place = match[1], match[2]
    path = place.lstrip(".")
    named = _FIELD_NAME.search(message)
    if named is not None:
        path = f"{path}.{named[1]}" if path else named[1]
    elif _SAYS_LITTLE.match(message) and (words := expected(kind, place)):
        shown = message.removeprefix("Invalid enum value ") if message.startswith("Invalid enum") else ""
        message = f"expected {words}" + (f", not {shown}" if shown else "")
    field = path or "body"
    return Refusal("VALIDATION_ERROR", f"{field}: {message}", field=field)
