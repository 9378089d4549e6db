"""Requests that a page in a browser makes: whether it is a page of this server. Pure.

A browser sends cookies, and reaches servers on loopback or in a private network, whichever page makes it do so. It also
says where the page is from: `Sec-Fetch-Site` and `Origin` cannot be set by the page.
"""

from functools import lru_cache

from corvo.model.errors import Refusal
from corvo.runtime.addresses import is_loopback
from corvo.runtime.origins import ANY_ORIGIN
from gateway.access.credentials import SenderClaims

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITE = (b"same-origin", b"none")  # none: a person typed the address


def is_own_page(claims: SenderClaims, allowed: frozenset[str]) -> bool:
    """Whether it is proven that the request is from a page of this server, or of an origin that the settings name."""
    if claims.origin is not None:
        return _is_known(claims.origin, claims.host, allowed)
    return claims.fetch_site in _OWN_SITE


def refuse_foreign_page(claims: SenderClaims, allowed: frozenset[str]) -> None:
    """For requests that need no credential. Programs send neither header."""
    if claims.origin is None:
        is_foreign = claims.fetch_site is not None and claims.fetch_site not in _OWN_SITE
    else:
        is_foreign = ANY_ORIGIN not in allowed and not _is_known(claims.origin, claims.host, allowed)
    if is_foreign:
        raise Refusal(
            "FORBIDDEN", "a web page of another origin may not do this; the setting cors_origins lists those that may"
        )


def _is_known(origin: bytes, host: bytes | None, allowed: frozenset[str]) -> bool:
    scheme, separator, authority = origin.partition(b"://")
    is_own = bool(separator) and scheme in (b"http", b"https") and host is not None and authority == host.lower()
    return is_own or origin.decode("latin-1") in allowed


@lru_cache(maxsize=256)  # on the path of every request without a credential
def is_loopback_name(host: bytes | None) -> bool:
    """Whether a `Host` header names this machine: `localhost:8080`, `127.0.0.1`, `[::1]:80`. A name that resolves to
    loopback does not: a page can make its own name do so (DNS rebinding)."""
    if host is None:
        return False
    text = host.decode("latin-1").lower()
    if ":" not in text or text.endswith("]"):
        text += ":0"
    try:
        return is_loopback(text)
    except ValueError:
        return False
