"""Admits requests: finds the principal of each, and the namespace that it acts in.

The principal is found before the body is read. For a credential that was seen before, that is one hash and one look
into a table. Admissions are kept until the records of access change; then those that do not hold any more are ended,
and with them the streams and waits that they opened.

Without a credential a server is open only if the setting says so, or while it is on loopback and no credential exists
at all. State that cannot be read is never taken for that.
"""

import time
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Literal, NamedTuple, Protocol
from weakref import WeakSet

from corvo.endpoint import PlanContext
from corvo.model.access import ANONYMOUS, CHOOSE_NAMESPACE, NOBODY, Principal, built_in
from corvo.model.access_records import NamespaceState, SsoSettings
from corvo.model.errors import Refusal
from corvo.model.namespaces import checked_namespace
from gateway.access.admitted import Admitted
from gateway.access.contexts import Contexts
from gateway.access.credentials import SenderClaims, claims_of, hash_of, looks_like_token, read_claims, refused
from gateway.access.failures import FailedCredentials
from gateway.access.origins import SAFE, is_loopback_name, is_own_page, refuse_foreign_page
from gateway.access.registry import Registry
from gateway.access.sessions import AdminPassword
from gateway.http.messages import Request, is_json
from gateway.http.rate_limits import client_of

KNOWN_MAX = 20_000  # admissions; more than there may be keys
UNAVAILABLE_MS = 1_000
_ADMIN = built_in("admin password", "password", "admin")


class Policy(NamedTuple):
    auth: Literal["auto", "on", "off"]
    is_loopback: bool = False  # whether only this machine reaches the server
    password: AdminPassword | None = None
    origins: frozenset[str] = frozenset()  # of other servers' pages that may use this one


class BearerTokens(Protocol):
    """Bearer tokens of an issuer."""

    @property
    def is_on(self) -> bool: ...

    async def principal(self, token: str) -> Principal: ...


class Proxies(Protocol):
    """Proxies that vouch for people by headers."""

    def principal(self, headers: Iterable[tuple[bytes, bytes]], client: str) -> Principal | None: ...


class Guard:
    def __init__(
        self,
        context: PlanContext,
        registry: Registry | None,
        policy: Policy,
        sign_on: BearerTokens | None = None,
        proxies: Proxies | None = None,
        note_use: Callable[[str], None] = lambda key_hash: None,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """Only a server that is open in any case may do without a registry. `note_use` is told the hash of each key
        that is used."""
        assert registry is not None or policy.auth == "off"
        self._contexts = Contexts(context)
        self._registry = registry
        self._policy = policy
        self._sign_on = sign_on
        self._proxies = proxies
        self._note_use = note_use
        self._clock_ns = clock_ns
        self._sso = SsoSettings() if registry is None else registry.sso
        self._known: dict[tuple[bytes, bytes | None], Admitted] = {}  # by hash of the credential, and namespace header
        self._alive: WeakSet[Admitted] = WeakSet()  # also those that only an open stream still holds
        self.failures = FailedCredentials()
        self._anonymous = self._admission(ANONYMOUS)
        if registry is not None:
            registry.on_change(self._follow)

    @classmethod
    def open(cls, context: PlanContext) -> "Guard":
        """Every client is an admin: `--auth off`, and tests of everything else."""
        return cls(context, None, Policy("off"))

    @property
    def has_password(self) -> bool:
        return self._policy.password is not None

    # Requests

    async def admit(self, request: Request) -> None:
        """Set the request's principal and context, or refuse it."""
        claims = read_claims(request.scope["headers"])
        admission = self._recall(claims, request)
        if admission is None:
            admission = await self._find(claims, request)
        request.principal, request.context = admission.principal, admission.context
        if self._policy.auth != "off":
            request.admission = admission
        if admission.principal.key_hash:
            self._note_use(admission.principal.key_hash)

    def pass_by(self, request: Request) -> None:
        """For an endpoint that needs no credential."""
        request.principal, request.context = NOBODY, self._contexts.default

    def sees_details(self, request: Request) -> bool:
        """Whether an open page may tell everything. Asks nobody: such pages must answer whatever else fails."""
        try:
            claims = read_claims(request.scope["headers"])
            if self._may_be_open:
                return self._policy.auth == "off" or is_loopback_name(claims.host)
            admission = self._recall(claims, request)
        except Refusal:
            return False
        return admission is not None and admission.principal.may("cluster:read")

    def check_page(self, request: Request) -> SenderClaims:
        """Refuse to let the page of another origin log a browser in or out."""
        claims = read_claims(request.scope["headers"])
        refuse_foreign_page(claims, self._policy.origins)
        return claims

    async def check(self, credential: str, request: Request) -> Admitted:
        """A credential from the body of a login. It counts, or is refused, also where none is needed."""
        claims = claims_of(credential)
        await self._require_records()
        return await self._by_credential(claims, request)

    def known_key(self, request: Request) -> str:
        """The name of the key that a refused request has: disabled, or expired. Empty for all others."""
        try:
            credential = read_claims(request.scope["headers"]).credential
        except Refusal:
            return ""
        key = None if credential is None or self._registry is None else self._registry.key(hash_of(credential))
        return "" if key is None else key.name

    def session(self, credential: str, admission: Admitted, seconds: int) -> str:
        """What the cookie of a browser holds after a login with this credential."""
        if admission.principal is _ADMIN and self._policy.password is not None:
            return self._policy.password.session(self._clock_ns() // 1_000_000_000 + seconds)
        return credential

    def context_of(self, principal: Principal) -> PlanContext:
        return self._contexts.of(principal)

    # How a principal is found

    def _recall(self, claims: SenderClaims, request: Request) -> Admitted | None:
        """Without asking anybody."""
        if self._policy.auth == "off":
            return self._open(claims, request)
        if claims.credential is None:
            return self._open(claims, request) if self._is_open else None
        digest = sha256(claims.credential).digest()
        admission = self._known.get((digest, claims.namespace))
        if admission is None or admission.is_over:
            admission = self._by_password(digest, claims, request)
        elif self._registry is not None and not self._registry.is_fresh:
            return None
        if admission is not None and claims.is_cookie:
            self._check_cookie(claims, request)
        return admission

    async def _find(self, claims: SenderClaims, request: Request) -> Admitted:
        if not self._is_open:
            await self._require_records()
        if self._is_open:
            return self._open(claims, request)
        if claims.credential is None:
            return self._by_proxy(claims, request)
        admission = await self._by_credential(claims, request)
        if claims.is_cookie:
            self._check_cookie(claims, request)
        return admission

    async def _require_records(self) -> None:
        registry = self._registry
        if registry is not None and not registry.is_fresh:
            await registry.refresh()
        if registry is None or not registry.is_fresh:
            raise Refusal(
                "ACCESS_UNAVAILABLE",
                "the records of access cannot be read at the moment; try again",
                retry_after_ms=UNAVAILABLE_MS,
            )

    async def _by_credential(self, claims: SenderClaims, request: Request) -> Admitted:
        assert claims.credential is not None
        digest = sha256(claims.credential).digest()
        return (
            self._by_password(digest, claims, request)
            or await self._by_token(digest, claims)
            or await self._by_key(digest, claims, request)
        )

    def _by_proxy(self, claims: SenderClaims, request: Request) -> Admitted:
        client = request.scope.get("client")
        address = str(client[0]) if client else ""
        principal = None if self._proxies is None else self._proxies.principal(request.scope["headers"], address)
        if principal is None:
            raise refused()
        if _is_change(request):
            refuse_foreign_page(claims, self._policy.origins)  # a proxy adds its headers whichever page asks
        return self._chosen(principal, claims)

    def _open(self, claims: SenderClaims, request: Request) -> Admitted:
        if self._policy.auth != "off" and not is_loopback_name(claims.host):
            raise Refusal(
                "FORBIDDEN",
                "this server has no credentials, and answers only to a loopback name such as localhost;"
                " give it --admin-password-file, or make an API key",
            )
        if _is_change(request):
            refuse_foreign_page(claims, self._policy.origins)
        return self._anonymous if claims.namespace is None else self._chosen(ANONYMOUS, claims)

    def _by_password(self, digest: bytes, claims: SenderClaims, request: Request) -> Admitted | None:
        """The password, or a session that began with it. Needs no records: it is the way in when they are lost."""
        password = self._policy.password
        if password is None or claims.credential is None:
            return None
        if claims.namespace is not None and (self._registry is None or not self._registry.is_fresh):
            return None  # whether it exists must be known
        if password.is_it(digest):
            self.failures.refuse_password(client_of(request))
            return self._chosen(_ADMIN, claims)
        ends_at_s = password.end_of(claims.credential)
        if ends_at_s is None or ends_at_s * 1_000_000_000 <= self._clock_ns():
            return None
        name, expires_at = f"{_ADMIN.name} (session)", ends_at_s * 1_000_000_000
        principal = Principal(
            name=name, kind="password", roles=_ADMIN.roles, permissions=_ADMIN.permissions, expires_at=expires_at
        )
        return self._remember(digest, claims, self._chosen(principal, claims))

    async def _by_token(self, digest: bytes, claims: SenderClaims) -> Admitted | None:
        assert claims.credential is not None
        if self._sign_on is None or not self._sign_on.is_on or not looks_like_token(claims.credential):
            return None
        principal = await self._sign_on.principal(claims.credential.decode("latin-1"))
        return self._remember(digest, claims, self._chosen(principal, claims))

    async def _by_key(self, digest: bytes, claims: SenderClaims, request: Request) -> Admitted:
        assert claims.credential is not None and self._registry is not None
        principal = self._principal_of(digest.hex())
        if principal is None:
            self.failures.refuse_guesses(digest, claims.credential, client_of(request))
            if not self.failures.is_known(digest):
                await self._registry.refresh()  # it may have been made a moment ago, on another node
                principal = self._principal_of(digest.hex())
        if principal is None:
            self.failures.note(digest)
            raise refused()
        return self._remember(digest, claims, self._chosen(principal, claims))

    def _principal_of(self, key_hash: str) -> Principal | None:
        """None for a key that does not count, whatever the reason."""
        assert self._registry is not None
        key = self._registry.key(key_hash)
        if key is None or not key.is_valid(self._clock_ns()) or not self._is_active(key.namespace):
            return None
        if not self._registry.state.vouches_for(key):
            return None  # a session of an issuer that the settings do not name any more
        return self._registry.principal_of(key)

    def _chosen(self, principal: Principal, claims: SenderClaims) -> Admitted:
        """In the namespace that the header names. Whether one exists is told only to those who may choose."""
        if claims.namespace is None:
            return self._admission(principal)
        name = claims.namespace.decode("latin-1")
        if name != principal.namespace:
            principal.require(CHOOSE_NAMESPACE)
            if not self._is_active(checked_namespace(name, "X-Corvo-Namespace")):
                raise Refusal("NAMESPACE_NOT_FOUND", f"there is no namespace {name!r}")
        return self._admission(principal.within(name))

    def _check_cookie(self, claims: SenderClaims, request: Request) -> None:
        """A browser sends the cookie whichever page asks. A change needs proof that the page is ours."""
        if not _is_change(request):
            return
        is_stream = _is_stream(request)
        if not is_own_page(claims, self._policy.origins) or (is_stream and claims.origin is None):
            raise Refusal("FORBIDDEN", "a cookie counts for changes only from a page of this server")
        if not is_stream and not is_json(request.content_type):
            raise Refusal("FORBIDDEN", "a cookie counts for changes only with content-type: application/json")

    # Whether anybody gets in

    @property
    def _may_be_open(self) -> bool:
        """Also while that cannot be known."""
        policy, registry = self._policy, self._registry
        if policy.auth != "auto" or registry is None:
            return policy.auth == "off"
        if not policy.is_loopback or policy.password is not None:
            return False
        return not registry.has_keys and not registry.sso.provider and not registry.sso.saml_enabled

    @property
    def _is_open(self) -> bool:
        """Only where the records said so. An old copy is enough: without credentials there is none to revoke, and a
        cluster that has lost its quorum must still tell those on the machine why."""
        is_known = self._policy.auth == "off" or (self._registry is not None and self._registry.is_known)
        return is_known and self._may_be_open

    def _is_active(self, namespace: str) -> bool:
        if self._registry is None:
            return True
        record = self._registry.namespace(namespace)
        return record is not None and record.state is NamespaceState.ACTIVE

    # Admissions

    def _admission(self, principal: Principal) -> Admitted:
        admission = Admitted(principal, self.context_of(principal), self._clock_ns)
        self._alive.add(admission)
        return admission

    def _remember(self, digest: bytes, claims: SenderClaims, admission: Admitted) -> Admitted:
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[digest, claims.namespace] = admission
        return admission

    def _follow(self) -> None:
        """The records have changed: end what does not hold any more."""
        for admission in list(self._alive):
            if not self._holds(admission.principal):
                admission.end()
        self._known = {key: admission for key, admission in self._known.items() if not admission.is_over}
        self._anonymous = self._anonymous if not self._anonymous.is_over else self._admission(ANONYMOUS)
        if self._registry is not None:
            self._sso = self._registry.sso

    def _holds(self, principal: Principal) -> bool:
        registry = self._registry
        assert registry is not None
        if not self._is_active(principal.namespace):
            return False
        if principal.kind == "anonymous":
            return self._may_be_open
        if principal.kind == "password":
            return True
        if principal.key_hash:
            now = self._principal_of(principal.key_hash)
            return now is not None and _has_same_rights(now, principal)
        return self._sso == registry.sso and registry.permissions_of(principal.roles) == principal.permissions


def _is_stream(request: Request) -> bool:
    return request.scope.get("type") == "websocket"


def _is_change(request: Request) -> bool:
    """Whether it may change something. A stream may."""
    return request.method not in SAFE or _is_stream(request)


def _has_same_rights(one: Principal, other: Principal) -> bool:
    return (one.home, one.permissions, one.queue_scope, one.expires_at) == (
        other.home,
        other.permissions,
        other.queue_scope,
        other.expires_at,
    )
