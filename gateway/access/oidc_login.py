"""Sign-on of a browser: the authorization code flow with PKCE, from `/auth/oidc/login` to a session cookie.

The gateway keeps no state between the two steps, so any gateway can serve either. A short-lived cookie holds the state,
the nonce and the verifier. The callback deletes it, so a callback works once. The session is an API key in the
replicated state: it expires, can be revoked like any other, and works on every node.
"""

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from html import escape
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec
import structlog
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from corvo.model.access import Principal
from corvo.model.errors import Refusal
from gateway.access.issuer import IssuerUnavailable, unavailable
from gateway.access.late_sign_on import CALLBACK_PATH
from gateway.access.sign_on import SignOn

COOKIE = "corvo_sign_on"
LOGIN_S = 600  # from the first step to the second
SESSION_S = 8 * 3_600
HOME = "/"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

log = structlog.get_logger()

# (principal, issuer, subject, when it expires in ns since 1970, scope of the request) → the secret of the session
OpenSession = Callable[[Principal, str, str, int, MutableMapping[str, Any]], Awaitable[str]]


class Attempt(msgspec.Struct, frozen=True):
    """What the browser keeps between the two steps."""

    state: str
    nonce: str
    verifier: str
    target: str


class OidcLogin:
    def __init__(
        self,
        sign_on: SignOn,
        open_session: OpenSession,
        session_cookie: Callable[[str, bool, int], str],
        public_url: str = "",
        client_secret: str = "",
        clock_s: Callable[[], float] = time.time,
    ) -> None:
        """`session_cookie(secret, is_secure, seconds)` is the header that sets it."""
        self._sign_on = sign_on
        self._open_session = open_session
        self._session_cookie = session_cookie
        self._public_url = public_url.rstrip("/")
        self._client_secret = client_secret
        self._clock_s = clock_s

    async def login(self, request: Request) -> Response:
        self._require_on()
        attempt = Attempt(
            state=secrets.token_urlsafe(32),
            nonce=secrets.token_urlsafe(32),
            verifier=secrets.token_urlsafe(48),
            target=_local(request.query_params.get("next", HOME)),
        )
        challenge = base64.urlsafe_b64encode(hashlib.sha256(attempt.verifier.encode()).digest()).rstrip(b"=")
        query = urlencode(
            {
                "response_type": "code",
                "client_id": self._sign_on.client_id,
                "redirect_uri": self._redirect_uri(request),
                "scope": "openid email profile",
                "state": attempt.state,
                "nonce": attempt.nonce,
                "code_challenge": challenge.decode(),
                "code_challenge_method": "S256",
            }
        )
        try:
            endpoint = (await self._sign_on.issuer().description()).authorization_endpoint
        except IssuerUnavailable as error:
            log.warning("sign-on cannot begin", reason=str(error))
            raise unavailable() from None
        response = RedirectResponse(f"{endpoint}{'&' if '?' in endpoint else '?'}{query}", 303)
        self._keep(response, request, base64.urlsafe_b64encode(msgspec.json.encode(attempt)).decode(), LOGIN_S)
        return response

    async def callback(self, request: Request) -> Response:
        self._require_on()
        attempt = _attempt(request.cookies.get(COOKIE, ""))
        given = request.query_params
        if attempt is None or not hmac.compare_digest(given.get("state", "").encode(), attempt.state.encode()):
            raise _failed("this sign-on was not begun here, or is too old; begin again")
        if "error" in given or not given.get("code"):
            log.info("the issuer refused a sign-on", error=given.get("error", "")[:100])
            raise _failed("the issuer refused the sign-on; begin again")
        issuer = self._sign_on.issuer().url
        identity = await self._sign_on.identify(await self._id_token(request, attempt), "id", attempt.nonce)
        principal = self._sign_on.to_principal(identity)
        if not principal.permissions:
            raise Refusal("FORBIDDEN", f"{principal.name} has no role here: an admin maps a group of the issuer to one")
        ends_at = int(self._clock_s()) + SESSION_S
        secret = await self._open_session(principal, issuer, identity.subject, ends_at * 1_000_000_000, request.scope)
        log.info("signed on", person=principal.name, roles=principal.roles, namespace=principal.namespace)
        # A page that leads on, instead of a redirect: after one that began at the issuer's site, the browser would not
        # send the cookie (SameSite=Strict) with the next request.
        target = escape(attempt.target, quote=True)
        response = HTMLResponse(
            f'<!doctype html><meta http-equiv="refresh" content="0;url={target}"><a href="{target}">Continue</a>',
            headers={"content-security-policy": _POLICY, "cache-control": "no-store"},
        )
        self._keep(response, request, "", 0)
        response.headers.append("set-cookie", self._session_cookie(secret, self._is_secure(request), SESSION_S))
        return response

    async def _id_token(self, request: Request, attempt: Attempt) -> str:
        form = {
            "grant_type": "authorization_code",
            "code": request.query_params["code"],
            "redirect_uri": self._redirect_uri(request),
            "client_id": self._sign_on.client_id,
            "code_verifier": attempt.verifier,
        }
        if self._client_secret:
            form["client_secret"] = self._client_secret
        try:
            return (await self._sign_on.issuer().exchange(form)).id_token
        except IssuerUnavailable as error:
            log.warning("a sign-on failed", reason=str(error))
            raise _failed("the issuer did not take the code; begin again") from None

    def _require_on(self) -> None:
        if not self._sign_on.is_on:
            raise Refusal("NOT_FOUND", "sign-on is not configured; an admin does it with POST /api/v1/settings/sso")

    def _redirect_uri(self, request: Request) -> str:
        """From the settings. The host that a request names is believed on this machine only."""
        if self._public_url:
            return self._public_url + CALLBACK_PATH
        host = request.headers.get("host", "")
        if urlsplit(f"//{host}").hostname not in _LOOPBACK:
            raise Refusal("BAD_REQUEST", "sign-on needs the address of this server: start it with --public-url")
        return f"{request.url.scheme}://{host}{CALLBACK_PATH}"

    def _is_secure(self, request: Request) -> bool:
        """Also behind a proxy that speaks TLS for us."""
        return request.url.scheme == "https" or self._public_url.startswith("https://")

    def _keep(self, response: Response, request: Request, value: str, seconds: int) -> None:
        """Lax: the callback is a navigation that another site begins."""
        response.set_cookie(
            COOKIE,
            value,
            max_age=seconds,
            path="/auth/oidc",
            secure=self._is_secure(request),
            httponly=True,
            samesite="lax",
        )
        response.headers["cache-control"] = "no-store"


def _attempt(cookie: str) -> Attempt | None:
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(cookie), type=Attempt)
    except ValueError:  # of base64 and of msgspec
        return None


def _local(target: str) -> str:
    """A path of this server, never an address elsewhere."""
    is_path = target.startswith("/") and not target.startswith(("//", "/\\"))
    if not is_path or len(target) > 1_000 or not target.isascii() or not target.isprintable() or " " in target:
        raise Refusal("BAD_REQUEST", "next must be a path of this server, such as /ui/")
    return target


def _failed(message: str) -> Refusal:
    return Refusal("SIGN_ON_FAILED", message)
