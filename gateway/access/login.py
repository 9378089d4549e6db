"""`POST /auth/login` and `/auth/logout`: the cookie by which pages of this server use the interface.

A logout ends the session of a person who signed on; a key that a browser was given stays, for programs may use it.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from corvo.endpoint import Answer
from corvo.model.errors import invalid
from corvo.queries.sessions import LoggedIn, LoggedOut, LoginBody
from gateway.access.credentials import SenderClaims, hash_of
from gateway.access.guard import Guard
from gateway.access.person_sessions import PersonSessions
from gateway.access.sessions import SESSION_S, clear_cookie, set_cookie
from gateway.http.messages import Request

Handler = Callable[[Any, Request], Awaitable[Answer]]


class Login:
    def __init__(self, guard: Guard, is_secure: bool, sessions: PersonSessions | None = None) -> None:
        """`is_secure`: whether browsers reach this server by TLS. `sessions`: of people who signed on."""
        self._guard = guard
        self._is_secure = is_secure
        self._sessions = sessions

    def by_name(self) -> dict[str, Handler]:
        return {"login": self.login, "logout": self.logout}

    async def login(self, body: LoginBody, request: Request) -> Answer:
        claims = self._guard.check_page(request)
        if bool(body.key) == bool(body.password):
            raise invalid("key", "give a key or the admin password")
        credential = body.key or body.password
        admission = await self._guard.check(credential, request)
        session = self._guard.session(credential, admission, SESSION_S)
        principal = admission.principal
        view = LoggedIn("ok", principal.name, list(principal.roles), principal.namespace)
        return _with_cookie(view, set_cookie(session, self._must_be_secure(claims), SESSION_S))

    async def logout(self, body: None, request: Request) -> Answer:
        claims = self._guard.check_page(request)
        if self._sessions is not None and claims.credential is not None and claims.is_cookie:
            await self._sessions.close(hash_of(claims.credential), request.scope)
        return _with_cookie(LoggedOut("ok"), clear_cookie(self._must_be_secure(claims)))

    def _must_be_secure(self, claims: SenderClaims) -> bool:
        """Also behind a proxy that speaks TLS for us: the page says how it was loaded."""
        return self._is_secure or (claims.origin or b"").startswith(b"https://")


def _with_cookie(view: LoggedIn | LoggedOut, cookie: str) -> Answer:
    return Answer(200, view, headers=((b"set-cookie", cookie.encode("latin-1")),))
