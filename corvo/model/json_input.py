"""JSON from clients: checked, then passed on unchanged.

A payload is never decoded and encoded again: a worker gets the bytes that the producer sent. msgspec's `Raw` checks the
grammar; this module checks the rest: UTF-8, depth, size.
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
    """A body as its struct. Refuses with the field and the fault."""
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
    """A body with few brackets cannot be deep. From a larger one, strip the strings, then the innermost brackets, one
    level a round. Every batch passes here, so all of it runs in C."""
    if body.count(b"[") + body.count(b"{") <= JSON_DEPTH_MAX:
        return
    plain = _ESCAPES.sub(b"", body) if b"\\" in body else body
    brackets = b"".join(plain.split(b'"')[::2]).translate(None, _ALL_BUT_BRACKETS)
    brackets = brackets.replace(b"{", b"[").replace(b"}", b"]")
    is_deep = _TOO_DEEP in brackets  # opening brackets only: no need to strip it level by level
    for _ in range(0 if is_deep else JSON_DEPTH_MAX):
        if b"[]" not in brackets:
            break
        brackets = brackets.replace(b"[]", b"")
    if is_deep or b"[]" in brackets or brackets.count(b"[") > JSON_DEPTH_MAX:
        raise Refusal("PARSE_ERROR", f"the body is nested deeper than {JSON_DEPTH_MAX} levels")


def check_numbers(text: bytes, field: str) -> None:
    """Refuse a number that no double can hold: it would break every reader, our own tools included. Only a text that
    could contain such a number is decoded."""
    if _EXTREME_NUMBER.search(text):
        try:
            msgspec.json.decode(text)
        except msgspec.ValidationError as error:
            raise invalid(field, str(error)[0].lower() + str(error)[1:]) from None


def document(raw: msgspec.Raw, field: str, bytes_max: int = SMALL_JSON_BYTES_MAX) -> bytes:
    """An optional JSON document: both `null` and absence mean none."""
    if raw is EMPTY_RAW:
        return b""
    text = bytes(raw)
    if text == b"null":
        return b""
    check_numbers(text, field)
    if len(text) > bytes_max:
        raise Refusal(
            "PAYLOAD_TOO_LARGE", f"{field}: {len(text)} bytes of JSON, at most {bytes_max} are accepted", field
        )
    return text


def object_document(raw: msgspec.Raw, field: str) -> bytes:
    text = document(raw, field)
    if text and text[:1] != b"{":
        raise invalid(field, "expected a JSON object")
    return text


def keys_of(stored: bytes) -> dict[str, msgspec.Raw]:
    """The keys of a stored document, values unchanged, to be merged with others. A document that is no object becomes
    the value of `payload`."""
    if not stored:
        return {}
    return _decode_keys(stored) if stored.lstrip()[:1] == b"{" else {"payload": msgspec.Raw(stored)}


def to_raw(stored: bytes) -> Any:
    """A stored document for an answer, None when there is none."""
    return msgspec.Raw(stored) if stored else None


def validation_refusal(error: msgspec.ValidationError, kind: Any) -> Refusal:
    """Names the field, and the allowed values where msgspec's message does not."""
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
