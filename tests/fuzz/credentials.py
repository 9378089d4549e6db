"""Credentials: headers, API keys, and tokens of an issuer. Unreadable ones are refused with the one answer; no token
counts that our issuer did not sign; and claims that it did sign never lead to an error."""

import base64
import json
from typing import Any

from joserfc import jws
from joserfc.jwk import ECKey, KeySet, OctKey

from corvo.model.api_key_text import KEY_BYTES, has_checksum, key_text
from corvo.model.errors import Refusal
from corvo.model.limits import NAMESPACE
from gateway.access.credentials import looks_like_token, read_claims
from gateway.access.tokens import BadToken, Expected, key_id, verify

NOW = 1_790_000_000
EXPECTED = Expected("https://issuer.example", "console", ("console", "api"))
KEY = ECKey.generate_key("P-256", parameters={"kid": "k"})
KEYS = KeySet([KEY])
GOOD: dict[str, Any] = {"iss": EXPECTED.issuer, "aud": "api", "exp": NOW + 60, "sub": "u", "groups": ["ops"]}


def signed(claims: bytes) -> str:
    return jws.serialize_compact({"alg": "ES256", "kid": "k"}, claims, KEY, algorithms=["ES256"])


def beginnings() -> list[bytes]:
    none = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=") + b".e30."
    hs256 = jws.serialize_compact({"alg": "HS256", "kid": "k"}, json.dumps(GOOD), OctKey.generate_key(256))
    claims = [
        GOOD,
        {**GOOD, "exp": 1e300, "nbf": -1, "iat": 1.5},
        {**GOOD, "aud": ["api", "x"], "azp": "console", "corvo_roles": ["a", 1], "corvo_namespace": "acme"},
        {**GOOD, "exp": "1", "sub": ""},
        [],
    ]
    return [
        *(b"c" + json.dumps(one).encode() for one in claims),
        b"t" + signed(json.dumps(GOOD).encode())[:-4].encode(),
        b"t" + none,
        b"t" + hs256.encode(),
        b"k" + key_text(bytes(KEY_BYTES)).encode(),
        b"hx-api-key: a\nauthorization: Bearer b\ncookie: corvo_api_key=c; a=b\norigin: x",
    ]


def play(data: bytes) -> None:
    kind, rest = data[:1], data[1:]
    if kind == b"c":
        _claims(rest)
    elif kind == b"t":
        _token(rest)
    elif kind == b"k":
        _key(rest)
    else:
        _headers(rest)


def _claims(claims: bytes) -> None:
    """Signed, whatever they say: an identity, or refused."""
    try:
        identity = verify(signed(claims), KEYS, EXPECTED, NOW, "access")
    except BadToken:
        return
    said = json.loads(claims)
    audiences = said["aud"] if isinstance(said["aud"], list) else [said["aud"]]
    assert said["iss"] == EXPECTED.issuer and set(audiences) & set(EXPECTED.audiences)
    assert said["exp"] > NOW - 60 and "nonce" not in said
    assert 1 <= len(identity.subject) <= 256 and NAMESPACE.fullmatch(identity.namespace)
    assert isinstance(identity.expires_at, int)


def _token(text: bytes) -> None:
    """A credential has passed `read_claims`: it is visible ASCII. None of these is signed by our key."""
    token = text.decode("latin-1")
    try:
        key_id(token)
        identity = verify(token, KEYS, EXPECTED, NOW, "access")
    except BadToken:
        return
    raise AssertionError(f"a token counts that nobody signed: {identity}")


def _key(text: bytes) -> None:
    key = text.decode("latin-1")
    if has_checksum(key):
        assert key.startswith("sk_") and len(key) == 52 and not looks_like_token(text)


def _headers(text: bytes) -> None:
    lines = [line.partition(b": ") for line in text.split(b"\n")]
    try:
        claims = read_claims([(name, value) for name, _, value in lines])
    except Refusal as refusal:
        assert refusal.code == "UNAUTHORIZED"
        return
    if claims.credential is not None:
        assert claims.credential and claims.credential.isascii() and claims.credential in text
