"""Sign-on, loaded when somebody uses it: its libraries take longer to load than the rest of a gateway.

Two pages for browsers, `/auth/oidc/login` and `/auth/oidc/callback`, and bearer tokens for programs.
"""

import asyncio
import importlib
from typing import TYPE_CHECKING, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from corvo.model.access import Principal
from corvo.model.access_records import OIDC
from corvo.model.errors import Refusal
from gateway.access.access_copy import AccessCopy
from gateway.access.person_sessions import PersonSessions
from gateway.access.sessions import set_cookie
from gateway.http.rate_limits import Rate, TokenBuckets

if TYPE_CHECKING:
    from gateway.access.oidc_login import OidcLogin
    from gateway.access.sign_on import SignOn

LOGIN_PATH = "/auth/oidc/login"
CALLBACK_PATH = "/auth/oidc/callback"
# Of one address. Each begins a request to the issuer, and needs no credential.
ATTEMPTS = Rate(1.0, 30.0)


class SignOnOptions(NamedTuple):
    audiences: tuple[str, ...] = ()
    public_url: str = ""
    client_secret: str = ""


class LateSignOn:
    def __init__(self, registry: AccessCopy, sessions: PersonSessions, options: SignOnOptions) -> None:
        self._registry = registry
        self._sessions = sessions
        self._options = options
        self._attempts = TokenBuckets()
        self._loading = asyncio.Lock()
        self._parts: tuple[SignOn, OidcLogin] | None = None

    @property
    def is_on(self) -> bool:
        return self._registry.sso.provider == OIDC

    async def principal(self, token: str) -> Principal:
        """Of an access token."""
        return await (await self._load())[0].principal(token)

    async def login(self, request: Request) -> Response:
        return await (await self._pages(request)).login(request)

    async def callback(self, request: Request) -> Response:
        return await (await self._pages(request)).callback(request)

    async def close(self) -> None:
        if self._parts is not None:
            await self._parts[0].close()

    async def _pages(self, request: Request) -> "OidcLogin":
        if not self.is_on:
            raise Refusal("NOT_FOUND", "sign-on is not configured; an admin does it with POST /api/v1/settings/sso")
        if wait_s := self._attempts.take(request.client.host if request.client else "", 1.0, ATTEMPTS):
            raise Refusal(
                "RATE_LIMITED", "too many sign-ons from this address", retry_after_ms=max(1, round(wait_s * 1000))
            )
        return (await self._load())[1]

    async def _load(self) -> "tuple[SignOn, OidcLogin]":
        if self._parts is None:
            async with self._loading:
                if self._parts is None:
                    self._parts = await self._make()
        return self._parts

    async def _make(self) -> "tuple[SignOn, OidcLogin]":
        """In a thread: other requests are served meanwhile."""
        of_tokens = await asyncio.to_thread(importlib.import_module, "gateway.access.sign_on")
        of_browsers = await asyncio.to_thread(importlib.import_module, "gateway.access.oidc_login")
        options = self._options
        sign_on = of_tokens.SignOn(self._registry, options.audiences)
        login = of_browsers.OidcLogin(
            sign_on, self._sessions.open, set_cookie, options.public_url, options.client_secret
        )
        return sign_on, login
