"""What clients see of the records of access."""

from typing import Annotated

import msgspec
from msgspec import Meta

from corvo.model.access import Permission
from corvo.model.access_records import ApiKey, NamespaceRecord, Quotas, RateLimit, RoleRecord
from corvo.model.timestamps import to_rfc3339, to_rfc3339_or_none

Globs = Annotated[str, Meta(description="globs of queue names, separated by commas; none: every queue")]


class KeyView(msgspec.Struct, kw_only=True, omit_defaults=True):
    key_hash: Annotated[str, Meta(description="SHA-256 of the key; the name of the key in paths")]
    name: str
    prefix: Annotated[str, Meta(description="how the key begins; only of keys that the server made")] = ""
    namespace: str
    role: str
    roles: Annotated[list[str], Meta(description="custom roles that are bound to it, in addition")] = []
    queue_scope: Globs = ""
    enabled: bool
    created_at: str
    created_by: str = ""
    last_used_at: Annotated[str | None, Meta(description="about a minute late")] = None
    expires_at: str | None = None
    replaces: Annotated[str, Meta(description="hash of the key that it rotates out")] = ""
    issuer: Annotated[str, Meta(description="of the session of a person: who signed the person on")] = ""


class RoleView(msgspec.Struct, kw_only=True, omit_defaults=True):
    name: str
    permissions: list[Permission]
    built_in: bool = False
    created_at: str | None = None
    updated_at: str | None = None


class RateLimitView(msgspec.Struct, omit_defaults=True):
    read_rps: float | None = None
    read_burst: float | None = None
    write_rps: float | None = None
    write_burst: float | None = None


class QuotasView(msgspec.Struct):
    max_jobs: Annotated[int, Meta(description="jobs that are stored; 0: no limit")] = 0
    max_payload_bytes: Annotated[int, Meta(description="of all stored jobs together; 0: no limit")] = 0
    max_queues: Annotated[int, Meta(description="0: no limit")] = 0


class NamespaceView(msgspec.Struct, kw_only=True, omit_defaults=True):
    name: str
    state: Annotated[str, Meta(description="`active` or `deleting`")]
    created_at: str | None = None
    rate_limit: RateLimitView | None = None
    quotas: QuotasView | None = None


class SsoView(msgspec.Struct):
    provider: Annotated[str, Meta(description="`oidc`, `saml`, or empty: no sign-on")]
    oidc_issuer_url: str
    oidc_client_id: str
    saml_enabled: bool
    oidc_group_claim: str
    group_role_mappings: dict[str, str]
    updated_at: str | None


def key_view(key: ApiKey) -> KeyView:
    return KeyView(
        key_hash=key.key_hash,
        name=key.name,
        prefix=key.prefix,
        namespace=key.namespace,
        role=key.role,
        roles=list(key.roles),
        queue_scope=",".join(key.queue_scope),
        enabled=key.is_enabled,
        created_at=to_rfc3339(key.created_at),
        created_by=key.created_by,
        last_used_at=to_rfc3339_or_none(key.last_used_at),
        expires_at=to_rfc3339_or_none(key.expires_at),
        replaces=key.replaces,
        issuer=key.issuer,
    )


def role_view(role: RoleRecord) -> RoleView:
    return RoleView(
        name=role.name,
        permissions=list(role.permissions),
        created_at=to_rfc3339_or_none(role.created_at),
        updated_at=to_rfc3339_or_none(role.updated_at),
    )


def namespace_view(namespace: NamespaceRecord) -> NamespaceView:
    return NamespaceView(
        name=namespace.name,
        state=namespace.state.name.lower(),
        created_at=to_rfc3339_or_none(namespace.created_at),
        rate_limit=None if namespace.limits is None else rate_limit_view(namespace.limits),
        quotas=None if namespace.quotas is None else quotas_view(namespace.quotas),
    )


def rate_limit_view(limits: RateLimit) -> RateLimitView:
    return RateLimitView(limits.read_rps, limits.read_burst, limits.write_rps, limits.write_burst)


def quotas_view(quotas: Quotas) -> QuotasView:
    return QuotasView(quotas.jobs_max, quotas.payload_bytes_max, quotas.queues_max)
