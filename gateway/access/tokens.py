"""JSON Web Tokens of an OpenID Connect issuer: verified, and turned into an identity. Pure.

A token counts only if all of it holds: a signature by a key of the issuer with an algorithm that we chose, our issuer,
our audience, an expiry. Nothing in the token says where its key is found or how it is checked.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from corvo.model.limits import NAMESPACE
from corvo.model.namespaces import DEFAULT

# Asymmetric only. With a symmetric algorithm, whoever knows the public key could sign; `none` signs nothing.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
LEEWAY_S = 60  # between the issuer's clock and ours
TOKEN_BYTES_MAX = 8 * 1024
TIME_MAX = 2**33  # seconds since 1970: the year 2242
_KEYS_FROM_OUTSIDE = ("jku", "x5u", "jwk", "x5c")  # headers by which a token would name its own key
_OF_ID_TOKENS = ("nonce", "at_hash", "c_hash")  # claims that no access token has


class Expected(msgspec.Struct, frozen=True):
    issuer: str
    client_id: str
    audiences: tuple[str, ...]  # one of these must be the token's


class TokenIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """A person or service as the issuer knows it."""

    subject: str
    name: str
    expires_at: int  # seconds since 1970
    namespace: str = DEFAULT
    roles: tuple[str, ...] = ()  # named in the token itself
    groups: tuple[str, ...] = ()


class BadToken(Exception):
    """Why a token does not count, for the log. Clients are told nothing but 401."""


def key_id(token: str) -> str:
    """The key that the token says it was signed with; empty if it names none."""
    kid = _header(token).get("kid", "")
    if not isinstance(kid, str) or len(kid) > 256:
        raise BadToken("its key id is no short text")
    return kid


def _header(token: str) -> dict[str, Any]:
    if len(token) > TOKEN_BYTES_MAX:
        raise BadToken(f"it is longer than {TOKEN_BYTES_MAX} bytes")
    try:
        header = jws.extract_compact(token.encode()).headers()
    except (JoseError, ValueError, TypeError) as error:
        raise BadToken(f"it cannot be read: {error}") from None
    return dict(header)


def verify(
    token: str,
    keys: KeySet,
    expected: Expected,
    now_s: int,
    kind: Literal["access", "id"],
    nonce: str = "",
    group_claim: str = "groups",
) -> TokenIdentity:
    header = _header(token)
    for name in _KEYS_FROM_OUTSIDE:
        if name in header:
            raise BadToken(f"its header names a key of its own ({name})")
    try:
        claims = jwt.decode(token, keys, algorithms=ALGORITHMS).claims
    except (JoseError, ValueError, TypeError) as error:
        raise BadToken(f"its signature does not hold: {error}") from None
    _check_times(claims, now_s)
    _check_parties(claims, expected)
    _check_kind(claims, kind, nonce)
    return _identity(claims, group_claim)


def _check_times(claims: Mapping[str, Any], now_s: int) -> None:
    for name in ("exp", "nbf", "iat"):
        if name in claims and not _is_time(claims[name]):
            raise BadToken(f"{name} is no time")
    if "exp" not in claims:
        raise BadToken("it never expires")
    if claims["exp"] <= now_s - LEEWAY_S:
        raise BadToken("it has expired")
    for name in ("nbf", "iat"):
        if claims.get(name, 0) > now_s + LEEWAY_S:
            raise BadToken(f"{name} is in the future")


def _is_time(value: Any) -> bool:
    """Python's JSON has NaN, which is never over, and infinity."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= TIME_MAX


def _check_parties(claims: Mapping[str, Any], expected: Expected) -> None:
    if claims.get("iss") != expected.issuer:
        raise BadToken("it is of another issuer")
    audience = claims.get("aud")
    audiences = [audience] if isinstance(audience, str) else audience
    if not isinstance(audiences, list) or not any(one in expected.audiences for one in audiences):
        raise BadToken("it is for another audience")
    needs_party = "azp" in claims or len(audiences) > 1
    if needs_party and claims.get("azp") not in (expected.client_id, *expected.audiences):
        raise BadToken("it was issued to another client (azp)")


def _check_kind(claims: Mapping[str, Any], kind: Literal["access", "id"], nonce: str) -> None:
    if kind == "id":
        if not nonce or claims.get("nonce") != nonce:
            raise BadToken("its nonce is not that of this sign-on")
    elif found := [name for name in _OF_ID_TOKENS if name in claims]:
        raise BadToken(f"it is an ID token ({found[0]}); the interface takes access tokens")


def _identity(claims: Mapping[str, Any], group_claim: str) -> TokenIdentity:
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 1 <= len(subject) <= 256:
        raise BadToken("it names no subject")
    names = (claims.get(name) for name in ("email", "preferred_username"))
    namespace = _text(claims, "corvo_namespace") or DEFAULT
    if not NAMESPACE.fullmatch(namespace):
        raise BadToken("its namespace is none")
    role = _text(claims, "corvo_role")  # a plain `role` belongs to other applications of the issuer
    return TokenIdentity(
        subject=subject,
        name=next((name for name in names if isinstance(name, str) and 1 <= len(name) <= 256), subject),
        expires_at=int(claims["exp"]),
        namespace=namespace,
        roles=tuple(dict.fromkeys((*((role,) if role else ()), *_texts(claims, "corvo_roles")))),
        groups=_texts(claims, group_claim),
    )


def _text(claims: Mapping[str, Any], name: str) -> str:
    value = claims.get(name, "")
    return value if isinstance(value, str) and len(value) <= 256 else ""


def _texts(claims: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = claims.get(name, [])
    values = [value] if isinstance(value, str) else value
    return tuple(one for one in values if isinstance(one, str)) if isinstance(values, list) else ()
