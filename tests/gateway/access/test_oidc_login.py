"""A browser signs on at a real issuer (S48, S49)."""

import asyncio
from collections.abc import Iterator, MutableMapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import msgspec
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from corvo.model.access import Principal
from corvo.model.access_records import SsoSettings
from corvo.model.errors import Refusal
from gateway.access.late_sign_on import CALLBACK_PATH, LOGIN_PATH
from gateway.access.oidc_login import COOKIE, OidcLogin
from gateway.access.sign_on import SignOn
from tests.gateway.access.copies import FixedCopy
from tests.gateway.access.issuer_server import CLIENT, TestIssuer, a_test_issuer


@pytest.fixture
def issuer() -> Iterator[TestIssuer]:
    with a_test_issuer() as made:
        yield made


class Browser:
    """The gateway's two pages, and a browser that keeps cookies."""

    def __init__(self, issuer: TestIssuer, base: str = "http://127.0.0.1:8080", **options: Any) -> None:
        self.issuer = issuer
        sso = SsoSettings(
            provider="oidc",
            oidc_issuer_url=issuer.url,
            oidc_client_id=CLIENT,
            group_role_mappings={"ops": "operator"},
        )
        self.copy = FixedCopy(sso)
        self.sessions: list[tuple[Principal, str, int]] = []
        login = OidcLogin(
            SignOn(self.copy),
            self._open,
            lambda secret, is_secure, seconds: f"session={secret}; HttpOnly{'; Secure' if is_secure else ''}",
            **options,
        )
        app = Starlette(
            routes=[Route(LOGIN_PATH, login.login), Route(CALLBACK_PATH, login.callback)],
            exception_handlers={Refusal: _refusal},
        )
        self.http = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=base)

    async def _open(
        self, principal: Principal, issuer: str, subject: str, ends_at: int, scope: MutableMapping[str, Any]
    ) -> str:
        assert issuer == self.issuer.url and scope["path"] == CALLBACK_PATH
        self.sessions.append((principal, subject, ends_at))
        return "secret"

    async def begin(self, query: str = "") -> httpx.Response:
        return await self.http.get(LOGIN_PATH + query)

    def at_issuer(self, redirect: httpx.Response) -> str:
        """What the browser comes back with."""
        return self.issuer.authorize(parse_qs(urlsplit(redirect.headers["location"]).query))


async def _refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return Response(msgspec.json.encode({"code": error.code, "error": error.message}), error.status)


def test_a_person_signs_on(issuer: TestIssuer) -> None:
    async def play() -> None:
        browser = Browser(issuer)
        redirect = await browser.begin("?next=/ui/jobs")
        asked = parse_qs(urlsplit(redirect.headers["location"]).query)
        assert redirect.status_code == 303 and redirect.headers["location"].startswith(f"{issuer.url}/authorize?")
        assert asked["redirect_uri"] == ["http://127.0.0.1:8080/auth/oidc/callback"]
        page = await browser.http.get(browser.at_issuer(redirect))
        assert page.status_code == 200 and "url=/ui/jobs" in page.text
        assert "session=secret; HttpOnly" in page.headers.get_list("set-cookie")
        assert COOKIE not in browser.http.cookies
        [(principal, subject, ends_at)] = browser.sessions
        assert (principal.name, principal.roles, subject) == ("ada@example.com", ("operator",), "u-1")
        assert ends_at > 10**18

    asyncio.run(play())


def test_s48_a_callback_works_once(issuer: TestIssuer) -> None:
    async def play() -> None:
        browser = Browser(issuer)
        back = browser.at_issuer(await browser.begin())
        assert (await browser.http.get(back)).status_code == 200
        again = await browser.http.get(back)
        assert (again.status_code, again.json()["code"]) == (400, "SIGN_ON_FAILED")
        assert len(browser.sessions) == 1

    asyncio.run(play())


def test_s48_another_browser_cannot_finish_what_this_one_began(issuer: TestIssuer) -> None:
    async def play() -> None:
        back = Browser(issuer).at_issuer(await Browser(issuer).begin())
        victim = Browser(issuer)
        await victim.begin()
        assert (await victim.http.get(back)).status_code == 400
        assert (await Browser(issuer).http.get(back)).status_code == 400
        assert victim.sessions == []

    asyncio.run(play())


def test_s48_state_code_nonce_and_verifier_must_be_right(issuer: TestIssuer) -> None:
    async def play() -> None:
        for change in ("state=x", "state=", "code=", "code=other", "error=access_denied"):
            browser = Browser(issuer)
            back = browser.at_issuer(await browser.begin())
            name = change.partition("=")[0]
            kept = "&".join(part for part in urlsplit(back).query.split("&") if not part.startswith(name))
            reply = await browser.http.get(f"{CALLBACK_PATH}?{kept}&{change}")
            assert (reply.status_code, reply.json()["code"]) == (400, "SIGN_ON_FAILED"), change
        for field in ("nonce", "code_challenge"):
            browser = Browser(issuer)
            back = browser.at_issuer(await browser.begin())
            issuer.codes[parse_qs(urlsplit(back).query)["code"][0]][field] = "forged"
            assert (await browser.http.get(back)).status_code in (400, 401), field
            assert browser.sessions == []

    asyncio.run(play())


@pytest.mark.parametrize(
    "target",
    ["https://evil.example", "//evil.example", "/\\evil.example", "evil", "javascript:alert(1)", "/a b", "/\n"],
)
def test_s48_no_redirect_to_another_site(issuer: TestIssuer, target: str) -> None:
    async def play() -> None:
        reply = await Browser(issuer).http.get(LOGIN_PATH, params={"next": target})
        assert (reply.status_code, reply.json()["code"]) == (400, "BAD_REQUEST")

    asyncio.run(play())


def test_a_target_is_escaped_in_the_page(issuer: TestIssuer) -> None:
    async def play() -> None:
        browser = Browser(issuer)
        page = await browser.http.get(browser.at_issuer(await browser.begin('?next=/"><script>')))
        assert "<script>" not in page.text
        assert "default-src 'none'" in page.headers["content-security-policy"]

    asyncio.run(play())


def test_a_person_without_a_role_gets_no_session(issuer: TestIssuer) -> None:
    async def play() -> None:
        issuer.claims["groups"] = ["strangers"]
        browser = Browser(issuer)
        reply = await browser.http.get(browser.at_issuer(await browser.begin()))
        assert (reply.status_code, reply.json()["code"]) == (403, "FORBIDDEN")
        assert browser.sessions == []

    asyncio.run(play())


def test_s29_the_host_header_names_no_address_elsewhere(issuer: TestIssuer) -> None:
    async def play() -> None:
        reply = await Browser(issuer, base="http://evil.example").begin()
        assert reply.status_code == 400 and "--public-url" in reply.json()["error"]
        public = Browser(issuer, base="http://evil.example", public_url="https://corvo.example/")
        asked = parse_qs(urlsplit((await public.begin()).headers["location"]).query)
        assert asked["redirect_uri"] == ["https://corvo.example/auth/oidc/callback"]

    asyncio.run(play())


def test_s49_cookies_have_their_flags(issuer: TestIssuer) -> None:
    async def play() -> None:
        plain = (await Browser(issuer).begin()).headers["set-cookie"].lower()
        secure = (await Browser(issuer, base="https://localhost").begin()).headers["set-cookie"].lower()
        assert all(flag in plain for flag in ("httponly", "samesite=lax", "path=/auth/oidc", "max-age=600"))
        assert "secure" not in plain and "secure" in secure

    asyncio.run(play())


def test_sign_on_that_is_not_configured_is_not_there(issuer: TestIssuer) -> None:
    async def play() -> None:
        browser = Browser(issuer)
        browser.copy.change(SsoSettings())
        for path in (LOGIN_PATH, CALLBACK_PATH):
            assert (await browser.http.get(path)).status_code == 404

    asyncio.run(play())


def test_an_issuer_that_is_away_is_503(issuer: TestIssuer) -> None:
    async def play() -> None:
        issuer.is_down = True
        reply = await Browser(issuer).begin()
        assert (reply.status_code, reply.json()["code"]) == (503, "SIGN_ON_UNAVAILABLE")

    asyncio.run(play())
