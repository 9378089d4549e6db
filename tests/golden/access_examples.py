"""The same for the records of access."""

from typing import Any

from corvo.model.access import Permission
from corvo.model.access_records import (
    AccessNews,
    ApiKey,
    NamespaceRecord,
    NamespaceState,
    Quotas,
    RateLimit,
    RoleRecord,
    SsoSettings,
)
from corvo.queries.access.follow_access import FollowAccess
from corvo.state import keys

AT = 1_767_225_600_000_000_000
HASH, HASH_2 = "1f" * 32, "2e" * 32

KEY = ApiKey(
    HASH,
    "mailer",
    "sk_4bT9xQ2a",
    "acme",
    "worker",
    ("auditor",),
    ("emails.*",),
    True,
    AT,
    "ops",
    AT + 1,
    AT + 2,
    HASH_2,
)
ROLE = RoleRecord("auditor", (Permission("jobs", ("read", "cancel")),), AT, AT + 1)
NAMESPACE = NamespaceRecord("acme", AT, RateLimit(2000, 4000, 1000, 2000), Quotas(1, 2, 3), NamespaceState.DELETING)
SSO = SsoSettings("oidc", "https://issuer.example", "corvo", True, "teams", {"sre": "admin"}, AT)

RECORDS: dict[str, Any] = {"api_key": KEY, "role": ROLE, "namespace": NAMESPACE, "sso": SSO}
KEYS: dict[str, bytes] = {
    "api_key": keys.api_key(HASH),
    "role": keys.role("auditor"),
    "namespace": keys.namespace("acme"),
    "sso": keys.SSO,
    "access_version": keys.ACCESS_VERSION,
}
QUERIES: dict[str, Any] = {"follow_access": FollowAccess(7)}
RESULTS: dict[str, Any] = {
    "follow_access": AccessNews(9, True, True, [KEY], [ROLE], [NAMESPACE], SSO, [HASH_2], ["old"], ["gone"])
}
