"""The credential of a request, read from its headers. Pure, and on the path of every request.

In this order: `X-API-Key`, `Authorization: Bearer`, the cookie `corvo_api_key`. A header that is there twice, or holds
what no credential can be, is refused like an unknown credential: a proxy and we must not read two different ones. A key
in the address is not looked for, because addresses end up in logs.

Nobody may learn from an answer why a credential was refused: missing, malformed, unknown, disabled and expired ones get
the same one.
"""

import re
from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple

from corvo.model.errors import Refusal

COOKIE = "corvo_api_key"
LENGTH_MAX = 8 * 1024  # a token of an issuer is the longest

API_KEY = b"x-api-key"
AUTHORIZATION = b"authorization"
COOKIES = b"cookie"
NAMESPACE = b"x-corvo-namespace"
ORIGIN = b"origin"
HOST = b"host"
FETCH_SITE = b"sec-fetch-site"
_READ = frozenset({API_KEY, AUTHORIZATION, COOKIES, NAMESPACE, ORIGIN, HOST, FETCH_SITE})
_TEXT = re.compile(rb"[!-~]{1,%d}" % LENGTH_MAX)
_COOKIE_NAME = COOKIE.encode()


class SenderClaims(NamedTuple):
    """What the head of a request says about its sender; None: nothing."""

    credential: bytes | None
    is_cookie: bool  # a browser sent it by itself
    namespace: bytes | None
    origin: bytes | None
    host: bytes | None
    fetch_site: bytes | None


def refused() -> Refusal:
    return Refusal("UNAUTHORIZED", "the credential is missing, unknown, disabled or expired")


def hash_of(credential: bytes) -> str:
    """As records name it."""
    return sha256(credential).hexdigest()


def looks_like_token(credential: bytes) -> bool:
    """Of an issuer: three parts. Keys of ours and passwords have no dots at these places."""
    return credential.startswith(b"ey") and credential.count(b".") == 2


def claims_of(credential: str) -> SenderClaims:
    """Of a login, whose credential is in the body."""
    return SenderClaims(_checked(credential.encode("utf-8", "replace")), False, None, None, None, None)


def read_claims(headers: Iterable[tuple[bytes, bytes]]) -> SenderClaims:
    found: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in _READ:
            if name not in found:
                found[name] = value
            elif name == COOKIES:
                found[name] += b"; " + value  # HTTP/2 may send each cookie on its own
            else:
                raise refused()
    credential, is_cookie = None, False
    if API_KEY in found:
        credential = _checked(found[API_KEY])
    elif (bearer := _bearer(found.get(AUTHORIZATION))) is not None:
        credential = _checked(bearer)
    elif COOKIES in found and (cookie := _cookie(found[COOKIES])) is not None:
        credential, is_cookie = _checked(cookie), True
    return SenderClaims(
        credential, is_cookie, found.get(NAMESPACE), found.get(ORIGIN), found.get(HOST), found.get(FETCH_SITE)
    )


def _checked(value: bytes) -> bytes:
    if _TEXT.fullmatch(value) is None:
        raise refused()
    return value


def _bearer(value: bytes | None) -> bytes | None:
    """None for other schemes: a proxy in front may have one of its own."""
    if value is None:
        return None
    scheme, _, credential = value.partition(b" ")
    return credential.strip(b" ") if scheme.lower() == b"bearer" else None


def _cookie(value: bytes) -> bytes | None:
    """Two of that name: another site of the same domain may have set one, and which is ours cannot be known."""
    found = None
    for pair in value.split(b";"):
        name, separator, held = pair.strip(b" \t").partition(b"=")
        if separator and name == _COOKIE_NAME:
            if found is not None:
                raise refused()
            found = held.strip(b'"')
    return found or None  # empty: what a logout leaves
