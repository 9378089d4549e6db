"""The records of access: API keys, roles, namespaces, sign-on settings. They are part of shard 0's replicated state.

All are msgpack arrays: a field is its position. To change a record: add the field last, with a default, and pin its
bytes in `tests/golden`. Times are nanoseconds since 1970, 0 for "never".

`AccessState` holds all of them, in the shard and as the copy that each gateway keeps.
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import TypeVar

import msgspec

from corvo.model.access import ROLES, Permission, Principal
from corvo.model.namespaces import DEFAULT

T = TypeVar("T")
OIDC = "oidc"  # the provider of the sign-on settings that sign people on here


class ApiKey(msgspec.Struct, array_like=True, frozen=True):
    """The key itself is nowhere: only its SHA-256."""

    key_hash: str  # 64 hexadecimal digits
    name: str
    prefix: str  # of the key, shown to recognise it; empty: a client gave the key
    namespace: str = DEFAULT
    role: str = "readonly"
    roles: tuple[str, ...] = ()  # custom roles that are bound to it, in addition
    queue_scope: tuple[str, ...] = ()  # globs; empty: every queue of the namespace
    is_enabled: bool = True
    created_at: int = 0
    created_by: str = ""
    expires_at: int = 0
    last_used_at: int = 0  # about a minute late; a change of it does not raise the version
    replaces: str = ""  # hash of the key that this one rotates out
    issuer: str = ""  # of a session: who vouched for the person that signed on
    subject: str = ""  # the person's id at the issuer

    @property
    def all_roles(self) -> tuple[str, ...]:
        return (self.role, *(role for role in self.roles if role != self.role))

    @property
    def is_session(self) -> bool:
        """Of a person's browser, made by a sign-on."""
        return bool(self.issuer)

    def is_valid(self, now_ns: int) -> bool:
        return self.is_enabled and (not self.expires_at or now_ns < self.expires_at)


class RoleRecord(msgspec.Struct, array_like=True, frozen=True):
    """A custom role. Roles are the same in every namespace."""

    name: str
    permissions: tuple[Permission, ...]
    created_at: int = 0
    updated_at: int = 0


class RateLimit(msgspec.Struct, array_like=True, frozen=True):
    """Requests of a namespace, on each gateway. None: the server's setting applies."""

    read_rps: float | None = None
    read_burst: float | None = None
    write_rps: float | None = None
    write_burst: float | None = None


class Quotas(msgspec.Struct, array_like=True, frozen=True):
    """What a namespace may store. 0: no limit."""

    jobs_max: int = 0
    payload_bytes_max: int = 0
    queues_max: int = 0


class NamespaceState(IntEnum):
    """Stored by number: never renumber."""

    ACTIVE = 0
    DELETING = 1  # everything in it is being removed, and nothing new gets in


class NamespaceRecord(msgspec.Struct, array_like=True, frozen=True):
    name: str
    created_at: int = 0
    limits: RateLimit | None = None
    quotas: Quotas | None = None
    state: NamespaceState = NamespaceState.ACTIVE


class SsoSettings(msgspec.Struct, array_like=True, frozen=True):
    provider: str = ""  # `oidc`, `saml`, or empty: no sign-on
    oidc_issuer_url: str = ""
    oidc_client_id: str = ""
    saml_enabled: bool = False
    oidc_group_claim: str = "groups"
    group_role_mappings: dict[str, str] = {}
    updated_at: int = 0


class RedactionRules(msgspec.Struct, array_like=True, frozen=True):
    queues: dict[str, tuple[str, ...]] = {}  # inside name of a queue → paths (`corvo/model/redaction.py`)


DEFAULT_NAMESPACE = NamespaceRecord(DEFAULT)  # exists without a record, until it is given limits or quotas


class AccessState(msgspec.Struct):
    """Everything that decides about access."""

    version: int = 0  # raised by every change
    keys: dict[str, ApiKey] = msgspec.field(default_factory=dict)
    roles: dict[str, RoleRecord] = msgspec.field(default_factory=dict)
    namespaces: dict[str, NamespaceRecord] = msgspec.field(default_factory=dict)
    sso: SsoSettings = SsoSettings()
    redaction: RedactionRules = RedactionRules()

    def namespace(self, name: str) -> NamespaceRecord | None:
        return self.namespaces.get(name, DEFAULT_NAMESPACE if name == DEFAULT else None)

    def find_role(self, name: str) -> tuple[Permission, ...] | None:
        """The permissions of a role, built in or custom; None when there is none of this name."""
        built_in = ROLES.get(name)
        if built_in is not None:
            return built_in
        custom = self.roles.get(name)
        return None if custom is None else custom.permissions

    def permissions_of(self, roles: Iterable[str]) -> tuple[Permission, ...]:
        """Of all of them together; a role that does not exist allows nothing."""
        return tuple(permission for role in roles for permission in self.find_role(role) or ())

    def vouches_for(self, key: ApiKey) -> bool:
        """Whether a session is of the issuer that the settings name now. Other keys need none."""
        is_ours = self.sso.provider == OIDC and self.sso.oidc_issuer_url == key.issuer
        return not key.is_session or is_ours

    def principal_of(self, key: ApiKey) -> Principal:
        return Principal(
            name=key.name,
            kind="person" if key.is_session else "key",
            roles=key.all_roles,
            permissions=self.permissions_of(key.all_roles),
            namespace=key.namespace,
            home=key.namespace,
            queue_scope=key.queue_scope,
            key_hash=key.key_hash,
            expires_at=key.expires_at,
        )


class AccessNews(msgspec.Struct, array_like=True):
    """Changes after a version, or everything."""

    version: int
    is_current: bool  # the replica that answers leads, or follows a leader and is not behind
    is_whole: bool = False  # forget what was known before
    keys: list[ApiKey] = []
    roles: list[RoleRecord] = []
    namespaces: list[NamespaceRecord] = []
    sso: SsoSettings | None = None  # None: unchanged
    gone_keys: list[str] = []
    gone_roles: list[str] = []
    gone_namespaces: list[str] = []
    redaction: RedactionRules | None = None  # None: unchanged


def with_news(state: AccessState, news: AccessNews) -> AccessState:
    """The copy with the changes. The old one stays as it is: who reads it sees one version."""
    before = AccessState() if news.is_whole else state
    return AccessState(
        news.version,
        _merged(before.keys, {key.key_hash: key for key in news.keys}, news.gone_keys),
        _merged(before.roles, {role.name: role for role in news.roles}, news.gone_roles),
        _merged(before.namespaces, {one.name: one for one in news.namespaces}, news.gone_namespaces),
        before.sso if news.sso is None else news.sso,
        before.redaction if news.redaction is None else news.redaction,
    )


def _merged(before: dict[str, T], changed: dict[str, T], gone: list[str]) -> dict[str, T]:
    if not changed and not gone:
        return before
    merged = before | changed
    for name in gone:
        merged.pop(name, None)
    return merged
