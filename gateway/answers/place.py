"""Where a page of a list ended, as text that the next request hands back.

A place is a key (moment, id) and no offset: what comes and goes between two pages shifts nothing. The text is opaque;
whoever alters it gets another page or a refusal, nothing more.
"""

import base64
import binascii
from typing import Literal

import msgspec

from corvo.errors import invalid
from corvo.moments import parse_rfc3339, to_rfc3339

Order = Literal["asc", "desc"]


class Place(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    order: Order
    created_at: str
    id: str


_decode = msgspec.msgpack.Decoder(Place).decode
_encode = msgspec.msgpack.Encoder().encode


def to_cursor(place: Place) -> str:
    return base64.urlsafe_b64encode(_encode(place)).decode().rstrip("=")


def to_place(cursor: str | None, order: Order) -> Place | None:
    if cursor is None:
        return None
    try:
        raw = base64.b64decode(cursor.encode() + b"=" * (-len(cursor) % 4), b"-_", validate=True)
        place = _decode(raw)
        is_moment = to_rfc3339(parse_rfc3339(place.created_at)) == place.created_at
    except (binascii.Error, UnicodeError, ValueError, msgspec.MsgspecError):
        is_moment = False
    if not is_moment:
        raise invalid("cursor", "this is no cursor of ours; send the one of the page before, unaltered")
    if place.order != order:
        raise invalid("cursor", f"this cursor belongs to order {place.order!r}")
    return place
