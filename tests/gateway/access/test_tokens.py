"""Which tokens count (S45)."""

import base64
import hmac
import json
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import pytest
from joserfc.jwk import KeySet, RSAKey

from gateway.access.tokens import TOKEN_BYTES_MAX, BadToken, Expected, TokenIdentity, key_id, verify
from tests.gateway.access.issuer_server import CLIENT, TestIssuer

NOW = 1_790_000_000


@pytest.fixture(scope="module")
def issuer() -> Iterator[TestIssuer]:
    made = TestIssuer()
    made.url = "https://issuer.example"
    made.clock_s = lambda: NOW
    yield made


def check(issuer: TestIssuer, token: str, **options: Any) -> TokenIdentity:
    keys = KeySet.import_key_set({"keys": [key.as_dict(private=False) for key in issuer.keys.values()]})
    expected = Expected(issuer.url, CLIENT, (CLIENT, "corvo-api"))
    return verify(token, keys, expected, NOW, options.pop("kind", "access"), **options)


def test_a_good_token_gives_an_identity(issuer: TestIssuer) -> None:
    token = issuer.token(corvo_role="operator", corvo_roles=["billing", "operator"], corvo_namespace="acme")

    identity = check(issuer, token)

    assert identity == TokenIdentity(
        subject="u-1",
        name="ada@example.com",
        expires_at=identity.expires_at,
        namespace="acme",
        roles=("operator", "billing"),
        groups=("ops",),
    )
    assert NOW + 500 < identity.expires_at < NOW + 700


def test_the_group_claim_has_the_name_of_the_settings(issuer: TestIssuer) -> None:
    assert check(issuer, issuer.token(teams="one"), group_claim="teams").groups == ("one",)


def test_names_of_other_applications_give_no_role(issuer: TestIssuer) -> None:
    identity = check(issuer, issuer.token(role="admin", namespace="acme", groups=None))

    assert (identity.roles, identity.groups, identity.namespace) == ((), (), "default")


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://other.example"},
        {"iss": None},
        {"aud": "another-client"},
        {"aud": None},
        {"aud": []},
        {"aud": {"corvo-console": 1}},
        {"aud": [CLIENT, "another"], "azp": "another"},
        {"aud": [CLIENT, "another"]},
        {"azp": "another"},
        {"exp": NOW - 61},
        {"exp": None},
        {"exp": "tomorrow"},
        {"exp": float("nan")},
        {"exp": float("inf")},
        {"nbf": float("nan")},
        {"exp": True},
        {"nbf": NOW + 120},
        {"iat": NOW + 120},
        {"nonce": "n"},
        {"at_hash": "h"},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"corvo_namespace": "Not/One"},
    ],
    ids="-".join,  # not the values: each worker of the test run has its own time
)
def test_s45_a_token_with_a_wrong_claim_is_refused(issuer: TestIssuer, claims: dict[str, Any]) -> None:
    with pytest.raises(BadToken):
        check(issuer, issuer.token(**claims))


@pytest.mark.parametrize("claims", [{"exp": NOW - 30}, {"nbf": NOW + 30}, {"aud": [CLIENT]}, {"aud": "corvo-api"}])
def test_clocks_may_differ_by_a_little(issuer: TestIssuer, claims: dict[str, Any]) -> None:
    assert check(issuer, issuer.token(**claims)).subject == "u-1"


@pytest.mark.parametrize("name", ["jku", "x5u", "jwk", "x5c"])
def test_s45_a_token_cannot_name_its_own_key(issuer: TestIssuer, name: str) -> None:
    key = RSAKey.generate_key(2048)
    value: Any = {"jwk": key.as_dict(private=False), "x5c": ["MIIB"]}.get(name, "https://evil.example/keys")

    with pytest.raises(BadToken):
        check(issuer, issuer.token(header={name: value}))


def _signed(header: dict[str, Any], claims: dict[str, Any], secret: bytes | None) -> str:
    def part(value: Any) -> bytes:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=")

    body = part(header) + b"." + part(claims)
    signature = b"" if secret is None else hmac.new(secret, body, sha256).digest()
    return (body + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")).decode()


def good_claims(issuer: TestIssuer) -> dict[str, Any]:
    return {"iss": issuer.url, "aud": CLIENT, "exp": NOW + 600, "sub": "u-1"}


def test_s45_an_unsigned_token_is_refused(issuer: TestIssuer) -> None:
    for alg in ("none", "None", "NONE", ""):
        with pytest.raises(BadToken):
            check(issuer, _signed({"alg": alg, "kid": "first"}, good_claims(issuer), None))


def test_s45_the_public_key_is_no_secret_to_sign_with(issuer: TestIssuer) -> None:
    key = issuer.keys["first"]
    for secret in (
        key.as_pem(private=False),
        key.as_der(private=False),
        json.dumps(key.as_dict(private=False)).encode(),
    ):
        with pytest.raises(BadToken):
            check(issuer, _signed({"alg": "HS256", "kid": "first"}, good_claims(issuer), secret))


def test_s45_a_key_that_nobody_published_is_refused(issuer: TestIssuer) -> None:
    other = TestIssuer()
    other.url = issuer.url
    other.clock_s = issuer.clock_s
    with pytest.raises(BadToken):
        check(issuer, other.token())
    with pytest.raises(BadToken):
        check(issuer, other.token(header={"kid": "unknown"}))


def test_a_token_whose_last_part_was_changed_is_refused(issuer: TestIssuer) -> None:
    head, body, signature = issuer.token().split(".")
    forged = base64.urlsafe_b64encode(json.dumps(good_claims(issuer) | {"corvo_role": "admin"}).encode()).rstrip(b"=")

    for broken in (f"{head}.{forged.decode()}.{signature}", f"{head}.{body}.", f"{head}.{body}.{signature[:-4]}AAAA"):
        with pytest.raises(BadToken):
            check(issuer, broken)


@pytest.mark.parametrize(
    "text", ["", "a", "..", "a.b.c", "ey.ey.ey", "e30.e30.e30", "ey" * TOKEN_BYTES_MAX, "\xff.\xff.\xff"]
)
def test_what_is_no_token_is_refused(issuer: TestIssuer, text: str) -> None:
    with pytest.raises(BadToken):
        key_id(text)
        check(issuer, text)


def test_s48_an_id_token_counts_for_its_own_sign_on_only(issuer: TestIssuer) -> None:
    token = issuer.token(nonce="n-1")

    assert check(issuer, token, kind="id", nonce="n-1").subject == "u-1"
    for nonce in ("n-2", ""):
        with pytest.raises(BadToken, match="nonce"):
            check(issuer, token, kind="id", nonce=nonce)
    with pytest.raises(BadToken, match="nonce"):
        check(issuer, issuer.token(), kind="id", nonce="n-1")
