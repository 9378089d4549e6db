"""Cursors: where a page of a list ended, as text that the next request sends back.

A cursor holds a key, not an offset, so jobs added or removed between two pages shift nothing. The text is opaque but
not secret: an altered cursor gives another page or an error, nothing worse.
"""

import base64
import binascii
from typing import Any, Literal

import msgspec

from corvo.model.errors import Refusal, invalid
from corvo.model.timestamps import parse_rfc3339, to_rfc3339

Order = Literal["asc", "desc"]


class PageCursor(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """A position in the order of creation."""

    order: Order
    created_at: str
    id: str


class SearchCursor(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """A position in the order of a search: the value of the sorted column, if any, then the creation, then the id."""

    question: str  # the search that it belongs to: a digest of filters, sort and order
    value: str | int | None
    created_at: str
    id: str


_decode = msgspec.msgpack.Decoder(PageCursor).decode
_decode_search = msgspec.msgpack.Decoder(SearchCursor).decode
_encode = msgspec.msgpack.Encoder().encode


def to_cursor(place: PageCursor | SearchCursor) -> str:
    return base64.urlsafe_b64encode(_encode(place)).decode().rstrip("=")


def to_place(cursor: str | None, order: Order) -> PageCursor | None:
    if cursor is None:
        return None
    place: PageCursor = _read(cursor, _decode)
    if not _is_moment(place.created_at):
        raise _foreign()
    if place.order != order:
        raise invalid("cursor", f"this cursor belongs to order {place.order!r}")
    return place


def to_search_place(cursor: str | None, question: str) -> SearchCursor | None:
    if cursor is None:
        return None
    place: SearchCursor = _read(cursor, _decode_search)
    if not _is_moment(place.created_at):
        raise _foreign()
    if place.question != question:
        raise invalid("cursor", "this cursor belongs to a search with other filters, another sort or another order")
    return place


def _read(cursor: str, decode: Any) -> Any:
    try:
        return decode(base64.b64decode(cursor.encode() + b"=" * (-len(cursor) % 4), b"-_", validate=True))
    except (binascii.Error, UnicodeError, ValueError, msgspec.MsgspecError):
        raise _foreign() from None


def _is_moment(text: str) -> bool:
    try:
        return to_rfc3339(parse_rfc3339(text)) == text
    except ValueError:
        return False


def _foreign() -> Refusal:
    return invalid("cursor", "invalid cursor; send the cursor of the previous page unchanged")
