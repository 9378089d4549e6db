"""Sign-on through a real server, at an issuer of the tests over HTTP (S45 to S50)."""

import base64
import hmac
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from chaos.node import Node, wait_until
from tests.gateway.access.issuer_server import CLIENT, TestIssuer, a_test_issuer

pytestmark = pytest.mark.system

PASSWORD = "a password of an admin".replace(" ", "-")
JSON = {"content-type": "application/json"}


class Place(NamedTuple):
    node: Node
    issuer: TestIssuer
    log: Path

    def api(self, credential: str = PASSWORD, **headers: str) -> httpx.Client:
        headers = {"authorization": f"Bearer {credential}", **headers} if credential else headers
        return httpx.Client(base_url=f"{self.node.url}/api/v1", headers=headers, timeout=30.0)

    def whoami(self, token: str) -> httpx.Response:
        with self.api(token) as client:
            return client.get("/auth/whoami")

    def set_up(self, **changes: Any) -> None:
        body = {
            "provider": "oidc",
            "oidc_issuer_url": self.issuer.url,
            "oidc_client_id": CLIENT,
            "saml_enabled": True,
            "group_role_mappings": {"ops": "operator"},
            **changes,
        }
        with self.api() as client:
            client.post("/settings/sso", json=body).raise_for_status()

    def browser(self) -> httpx.Client:
        return httpx.Client(base_url=self.node.url, timeout=30.0)

    def sign_on(self, browser: httpx.Client, query: str = "") -> httpx.Response:
        redirect = browser.get(f"/auth/oidc/login{query}")
        assert redirect.status_code == 303, redirect.text
        return browser.get(self.issuer.authorize(parse_qs(urlsplit(redirect.headers["location"]).query)))


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="corvo-") as folder, a_test_issuer() as issuer:
        password = Path(folder) / "password"
        password.write_text(PASSWORD)
        password.chmod(0o600)
        flags = ("--admin-password-file", str(password), "--trusted-proxies", "127.0.0.0/8")
        log = Path(folder) / "log"
        node = Node.start(Path(folder) / "data", *flags, log=log)
        try:
            place = Place(node, issuer, log)
            place.set_up()
            yield place
        finally:
            node.stop()


def test_s47_an_issuer_that_is_down_lets_nobody_in_and_is_asked_again(place: Place) -> None:
    place.issuer.is_down = True
    refused = place.whoami(place.issuer.token())
    assert (refused.status_code, refused.json()["code"]) == (503, "SIGN_ON_UNAVAILABLE")
    assert place.browser().get("/auth/oidc/login").status_code == 503
    place.issuer.is_down = False
    token = place.issuer.token()
    wait_until(lambda: place.whoami(token).status_code == 200, "the issuer to be asked again", 30.0)
    place.issuer.is_down = True
    assert place.whoami(token).status_code == 200, "it was verified before"
    assert place.whoami(place.issuer.token(sub="u-2")).status_code == 200, "its key is known"
    place.issuer.is_down = False


def test_a_token_acts_with_the_roles_of_its_groups(place: Place) -> None:
    token = place.issuer.token(groups=["ops", "other"])
    found = place.whoami(token).json()
    assert (found["name"], found["kind"], found["roles"]) == ("ada@example.com", "person", ["operator"])
    with place.api(token) as client:
        client.post("/queues/signed.on/pause").raise_for_status()
        assert client.get("/auth/keys").status_code == 200
        assert client.post("/auth/keys", json={"name": "x"}).status_code == 403
    stranger = place.issuer.token(groups=[])
    with place.api(stranger) as client:
        assert client.get("/jobs/s00_job_18a1f0c2d3e4f5a60a1b2c3d4e").status_code == 403


def _part(value: Any) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _hs256(claims: Any, secret: bytes) -> str:
    """By hand: the library refuses to."""
    text = f"{_part({'alg': 'HS256', 'kid': 'first'})}.{_part(claims)}"
    return f"{text}.{_part(hmac.digest(secret, text.encode(), 'sha256'))}"


def test_s45_a_token_that_is_wrong_in_any_way_is_401(place: Place) -> None:
    issuer = place.issuer
    known, now = issuer.keys["first"], int(issuer.clock_s())
    assert isinstance(known, RSAKey)
    claims = {"iss": issuer.url, "aud": CLIENT, "exp": now + 600, "sub": "u-1", "groups": ["ops"]}
    head, body, signature = issuer.token().split(".")
    unsigned = _part({"alg": "none", "kid": "first"})
    stranger = RSAKey.generate_key(2048, parameters={"kid": "first"})
    wrong = {
        "alg none": f"{unsigned}.{body}.",
        "HS256 with the public key": _hs256(claims, known.as_pem(private=False)),
        "a key of somebody else": jwt.encode({"alg": "RS256", "kid": "first"}, claims, stranger),
        "another body": f"{head}.{_part({**claims, 'sub': 'u-2'})}.{signature}",
        "iss": issuer.token(iss="https://other.example"),
        "aud": issuer.token(aud="another-client"),
        "azp": issuer.token(aud=[CLIENT, "other"], azp="other"),
        "expired": issuer.token(exp=now - 3600),
        "nbf ahead": issuer.token(nbf=now + 3600),
        "no exp": issuer.token(exp=None),
        "jku": issuer.token(header={"jku": "https://evil.example/keys"}),
        "x5u": issuer.token(header={"x5u": "https://evil.example/cert"}),
        "ID token": issuer.token(nonce="n"),
        "unknown kid": issuer.token(header={"kid": "unknown"}),
    }
    answers = {name: place.whoami(token) for name, token in wrong.items()}
    assert {name: answer.status_code for name, answer in answers.items()} == dict.fromkeys(wrong, 401)
    assert len({answer.json()["error"] for answer in answers.values()}) == 1, "nobody learns why"
    assert place.whoami(issuer.token()).status_code == 200


def test_s46_random_key_ids_cost_one_fetch_and_rotated_keys_count(place: Place) -> None:
    place.set_up(oidc_issuer_url="http://127.0.0.1:9")  # forget what earlier tests made it fetch
    assert place.whoami(place.issuer.token(sub="other")).status_code == 503
    place.set_up()
    assert place.whoami(place.issuer.token(sub="back")).status_code == 200
    fetches = place.issuer.requests["/keys"]
    place.issuer.rotate("second")
    assert place.whoami(place.issuer.token("second")).status_code == 200
    assert place.issuer.requests["/keys"] == fetches + 1
    for number in range(100):
        assert place.whoami(place.issuer.token(header={"kid": f"random-{number}"})).status_code == 401
    assert place.issuer.requests["/keys"] == fetches + 1


def test_a_browser_signs_on_acts_and_logs_out(place: Place) -> None:
    with place.browser() as browser, place.api() as admin:
        page = place.sign_on(browser, "?next=/docs")
        assert page.status_code == 200 and "url=/docs" in page.text
        cookie = next(value for value in page.headers.get_list("set-cookie") if value.startswith("corvo_api_key="))
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie  # S49
        found = browser.get("/api/v1/auth/whoami").json()
        assert (found["name"], found["kind"], found["roles"]) == ("ada@example.com", "person", ["operator"])

        pause = "/api/v1/queues/browsers/pause"
        assert browser.post(pause, headers=JSON).status_code == 403, "S49: no page of ours"
        assert browser.post(pause, headers={**JSON, "origin": "https://evil.example"}).status_code == 403
        assert browser.post(pause, headers={**JSON, "origin": place.node.url}).status_code == 200

        sessions = [key for key in admin.get("/auth/keys").json() if key.get("issuer") == place.issuer.url]
        assert [key["name"] for key in sessions] == ["ada@example.com"]
        secret = browser.cookies["corvo_api_key"]
        assert browser.post("/api/v1/auth/logout", headers={"origin": place.node.url}).status_code == 200
        assert "corvo_api_key" not in browser.cookies
        assert place.whoami(secret).status_code == 401, "the session has ended, not only the cookie"

        logs = admin.get("/audit-logs", params={"consistent": "true", "path_prefix": "/auth/oidc"}).json()
        assert [(log["route"], log["principal"]) for log in logs["audit_logs"]] == [("sign_on", "ada@example.com")]
        logs = admin.get("/audit-logs", params={"consistent": "true", "path_prefix": "/api/v1/auth/logout"}).json()
        assert [(log["route"], log["outcome"]) for log in logs["audit_logs"]] == [("sign_off", "ok")]
    assert secret not in place.log.read_text()


def test_s48_a_callback_needs_what_this_browser_began_and_counts_once(place: Place) -> None:
    with place.browser() as browser, place.browser() as other:
        redirect = browser.get("/auth/oidc/login")
        back = place.issuer.authorize(parse_qs(urlsplit(redirect.headers["location"]).query))
        for who, address in (
            (other, back),
            (browser, back.replace("state=", "state=x")),
            (browser, back.replace("code=", "code=x")),
        ):
            refused = who.get(address)
            assert (refused.status_code, refused.json()["code"]) == (400, "SIGN_ON_FAILED"), address
        assert browser.get(back).status_code == 200
        again = browser.get(back)
        assert (again.status_code, again.json()["code"]) == (400, "SIGN_ON_FAILED")
        for target in ("https://evil.example", "//evil.example", "/\\evil.example"):
            assert browser.get("/auth/oidc/login", params={"next": target}).status_code == 400


def test_s50_a_session_ends_with_its_key_and_with_the_settings(place: Place) -> None:
    with place.browser() as browser, place.api() as admin:
        place.sign_on(browser)
        key_hash = browser.get("/api/v1/auth/whoami").json()["key_hash"]
        admin.delete(f"/auth/keys/{key_hash}").raise_for_status()
        assert browser.get("/api/v1/auth/whoami").status_code == 401
        place.sign_on(browser)
        token = place.issuer.token("first", sub="settings")
        assert place.whoami(token).status_code == 200
        place.set_up(provider="")
        assert browser.get("/api/v1/auth/whoami").status_code == 401
        assert place.whoami(token).status_code == 401
        assert browser.get("/auth/oidc/login").status_code == 404
        place.set_up()


def test_a_trusted_proxy_vouches_for_people_while_the_settings_say_so(place: Place) -> None:
    said = {"x-corvo-saml-subject": "grace", "x-corvo-saml-roles": "readonly"}
    with place.api("", **said) as client:
        found = client.get("/auth/whoami").json()
        assert (found["name"], found["kind"], found["roles"]) == ("grace", "proxy", ["readonly"])
        assert client.post("/queues/a/pause").status_code == 403
        assert client.get("/auth/whoami", headers={"origin": "https://evil.example"}).status_code == 200
        place.set_up(saml_enabled=False)
        assert client.get("/auth/whoami").status_code == 401
        place.set_up()
