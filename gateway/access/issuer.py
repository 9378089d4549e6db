"""An OpenID Connect issuer over HTTP: its description, its keys, and the exchange of a code for tokens.

Keys are kept for `KEYS_S`. A token that names an unknown key makes us fetch them again, at most once a minute, however
many such tokens come. A fetch that failed is tried again after `RETRY_S`. While the issuer cannot be reached, known
keys are used until they are `KEYS_OLDEST_S` old; after that no token counts.
"""

import asyncio
import ssl
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec
import structlog
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from corvo.model.errors import Refusal

ANSWER_BYTES_MAX = 512 * 1024
ASK_S = 5.0
KEYS_S = 3_600.0
KEYS_OLDEST_S = 24 * 3_600.0
AGAIN_S = 60.0  # between two fetches for tokens that name an unknown key
RETRY_S = 5.0  # after a fetch that failed
_LOOPBACK = ("localhost", "127.0.0.1", "::1")

log = structlog.get_logger()


class Description(msgspec.Struct):
    """The parts of `/.well-known/openid-configuration` that we use."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str


class Tokens(msgspec.Struct):
    id_token: str


class IssuerUnavailable(Exception):
    """It cannot be reached, or what it says cannot be used. For the log."""


def _authorities() -> ssl.SSLContext:
    """Those of `SSL_CERT_FILE`, of the machine and of httpx: a company's issuer may have an authority of its own."""
    context = httpx.create_ssl_context()
    context.load_default_certs()
    return context


def unavailable() -> Refusal:
    return Refusal("SIGN_ON_UNAVAILABLE", "the sign-on issuer does not answer; try again", retry_after_ms=5_000)


def check_address(url: str, what: str) -> None:
    """HTTPS; plain HTTP only to this machine, where nobody listens in between."""
    parts = urlsplit(url)
    is_local = parts.scheme == "http" and parts.hostname in _LOOPBACK
    if not parts.hostname or not (parts.scheme == "https" or is_local) or parts.username or parts.fragment:
        raise IssuerUnavailable(f"{what} is {url[:200]!r}; expected an https address")


class Issuer:
    def __init__(
        self,
        url: str,
        client: httpx.AsyncClient | None = None,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.url = url
        # No redirects and no proxy from the environment: the address that an admin gave is the one that is asked.
        self._client = client or httpx.AsyncClient(
            timeout=ASK_S, follow_redirects=False, trust_env=False, verify=_authorities()
        )
        self._clock_s = clock_s
        self._description: Description | None = None
        self._keys: KeySet | None = None
        self._fetched_at = float("-inf")
        self._tried_at = float("-inf")
        self._looked_at = float("-inf")  # when keys were last fetched because a token named an unknown one
        self._turn = asyncio.Lock()  # one fetch at a time; the others wait for it

    async def description(self) -> Description:
        if self._description is None:
            check_address(self.url, "the issuer")
            found = await self._get(self.url.rstrip("/") + "/.well-known/openid-configuration")
            try:
                description = msgspec.json.decode(found, type=Description)
            except msgspec.MsgspecError as error:
                raise IssuerUnavailable(f"its description cannot be read: {error}") from None
            if description.issuer != self.url:
                raise IssuerUnavailable(f"it calls itself {description.issuer[:200]!r}, not {self.url!r}")
            for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
                check_address(getattr(description, name), name)
            self._description = description
        return self._description

    async def keys(self, kid: str) -> KeySet:
        """All keys of the issuer, fetched anew if `kid` is not among them or they are old."""
        if self._must_fetch(kid):
            async with self._turn:
                if self._must_fetch(kid):
                    is_known = self._keys is None or self._knows(kid)
                    await self._fetch()
                    if not is_known:
                        self._looked_at = self._clock_s()
        age_s = self._clock_s() - self._fetched_at
        if self._keys is None or age_s > KEYS_OLDEST_S:
            raise IssuerUnavailable("its keys are unknown, or too old")
        return self._keys

    def _must_fetch(self, kid: str) -> bool:
        now = self._clock_s()
        if self._keys is None or now - self._fetched_at >= KEYS_S:
            return now - self._tried_at >= RETRY_S
        return now - self._looked_at >= AGAIN_S and not self._knows(kid)

    def _knows(self, kid: str) -> bool:
        return self._keys is not None and any(key.kid == kid for key in self._keys.keys)

    async def _fetch(self) -> None:
        try:
            raw = await self._get((await self.description()).jwks_uri)
            keys = KeySet.import_key_set(_signing(msgspec.json.decode(raw)))
        except (IssuerUnavailable, JoseError, ValueError, TypeError, KeyError) as error:
            log.warning("the keys of the sign-on issuer cannot be fetched", issuer=self.url, reason=str(error))
        else:
            self._keys, self._fetched_at = keys, self._clock_s()
        finally:
            self._tried_at = self._clock_s()  # at the end: requests that come meanwhile wait for this fetch

    async def exchange(self, form: dict[str, str]) -> Tokens:
        """A code for tokens. The form holds the client's proof."""
        raw = await self._ask("POST", (await self.description()).token_endpoint, form)
        try:
            return msgspec.json.decode(raw, type=Tokens)
        except msgspec.MsgspecError as error:
            raise IssuerUnavailable(f"its tokens cannot be read: {error}") from None

    async def _get(self, url: str) -> bytes:
        return await self._ask("GET", url, None)

    async def _ask(self, method: str, url: str, form: dict[str, str] | None) -> bytes:
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(ASK_S), self._client.stream(method, url, data=form) as answer:
                if answer.status_code != 200:
                    raise IssuerUnavailable(f"{url} answered {answer.status_code}")
                async for part in answer.aiter_bytes():
                    size += len(part)
                    if size > ANSWER_BYTES_MAX:
                        raise IssuerUnavailable(f"{url} answered more than {ANSWER_BYTES_MAX} bytes")
                    parts.append(part)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            raise IssuerUnavailable(f"{url}: {error or 'no answer'}") from None
        return b"".join(parts)

    async def close(self) -> None:
        await self._client.aclose()


def _signing(found: Any) -> Any:
    """The key set without keys that are meant for encryption, and without symmetric ones."""
    keys = [key for key in found["keys"] if key.get("use", "sig") == "sig" and key.get("kty") != "oct"]
    return {"keys": keys}
