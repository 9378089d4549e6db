"""Sign-on: principals of people and services that an OpenID Connect issuer vouches for.

The interface takes access tokens as bearers. A verified token is remembered by its hash until it expires, or until the
settings change, so that a client pays for one signature, not for one a request.
"""

import hashlib
import time
from collections.abc import Callable

import structlog

from corvo.model.access import Principal
from corvo.model.access_records import OIDC
from gateway.access.access_copy import AccessCopy
from gateway.access.credentials import refused
from gateway.access.issuer import Issuer, IssuerUnavailable, unavailable
from gateway.access.tokens import BadToken, Expected, TokenIdentity, key_id, verify

TOKENS_MAX = 10_000  # remembered

log = structlog.get_logger()


class SignOn:
    def __init__(
        self,
        registry: AccessCopy,
        audiences: tuple[str, ...] = (),
        make_issuer: Callable[[str], Issuer] = Issuer,
        clock_s: Callable[[], float] = time.time,
    ) -> None:
        """`audiences`: further values of `aud` that access tokens for this server may have, beside the client id."""
        self._registry = registry
        self._audiences = audiences
        self._make_issuer = make_issuer
        self._clock_s = clock_s
        self._issuer: Issuer | None = None
        self._known: dict[bytes, tuple[Principal, int]] = {}  # hash of a token → principal, when it ends
        self._version = -1

    @property
    def is_on(self) -> bool:
        return self._registry.sso.provider == OIDC

    @property
    def client_id(self) -> str:
        return self._registry.sso.oidc_client_id

    def recall(self, token: str) -> Principal | None:
        """The principal of a token that was verified before."""
        self._follow()
        known = self._known.get(_digest(token))
        return known[0] if known is not None and known[1] > self._clock_s() else None

    async def principal(self, token: str) -> Principal:
        """Of an access token. Refused with 401 if it does not count, with 503 if that cannot be known."""
        known = self.recall(token)
        if known is not None:
            return known
        identity = await self.identify(token, "access")
        principal = self.to_principal(identity)
        if len(self._known) >= TOKENS_MAX:
            self._known = dict(list(self._known.items())[TOKENS_MAX // 2 :])
        self._known[_digest(token)] = (principal, identity.expires_at)
        return principal

    async def identify(self, token: str, kind: str, nonce: str = "") -> TokenIdentity:
        sso = self._registry.sso
        if not self.is_on:
            raise refused()
        expected = Expected(sso.oidc_issuer_url, sso.oidc_client_id, (sso.oidc_client_id, *self._audiences))
        try:
            keys = await self.issuer().keys(key_id(token))
            return verify(
                token,
                keys,
                expected,
                int(self._clock_s()),
                "id" if kind == "id" else "access",
                nonce,
                sso.oidc_group_claim,
            )
        except IssuerUnavailable as error:
            log.warning("a token cannot be verified", issuer=sso.oidc_issuer_url, reason=str(error))
            raise unavailable() from None
        except BadToken as error:
            log.info("a token was refused", issuer=sso.oidc_issuer_url, reason=str(error))
            raise refused() from None

    def to_principal(self, identity: TokenIdentity) -> Principal:
        """Roles from the token, then from its groups. A person without any may do nothing."""
        registry = self._registry
        if registry.namespace(identity.namespace) is None:
            log.info("a token was refused", reason=f"there is no namespace {identity.namespace!r}")
            raise refused()
        mapped = registry.sso.group_role_mappings
        roles = tuple(
            dict.fromkeys((*identity.roles, *(mapped[group] for group in identity.groups if group in mapped)))
        )
        return Principal(
            name=identity.name,
            kind="person",
            roles=roles,
            permissions=registry.permissions_of(roles),
            namespace=identity.namespace,
            home=identity.namespace,
            expires_at=identity.expires_at * 1_000_000_000,
        )

    def issuer(self) -> Issuer:
        self._follow()
        if self._issuer is None:
            self._issuer = self._make_issuer(self._registry.sso.oidc_issuer_url)
        return self._issuer

    async def close(self) -> None:
        if self._issuer is not None:
            await self._issuer.close()

    def _follow(self) -> None:
        """Changed roles, namespaces or settings count at once, also for tokens that were verified before."""
        if self._version != self._registry.version:
            self._version = self._registry.version
            self._known = {}
            if self._issuer is not None and self._issuer.url != self._registry.sso.oidc_issuer_url:
                self._issuer = None  # its connections end with it


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
