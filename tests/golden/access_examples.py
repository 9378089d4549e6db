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
    RedactionRules,
    RoleRecord,
    SsoSettings,
)
from corvo.model.granting import Granter
from corvo.ops.access.close_session import CloseSession
from corvo.ops.access.open_session import OpenSession
from corvo.ops.access.set_sso import SetSso
from corvo.ops.queues.set_redaction import SetRedaction
from corvo.queries.access.follow_access import FollowAccess
from corvo.queries.access.keys import GetKey, ListKeys
from corvo.queries.access.namespaces import GetNamespace, ListNamespaces
from corvo.queries.access.roles import ListRoles
from corvo.queries.access.sso import GetSso
from corvo.queries.redaction import GetRedaction
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
    "https://issuer.example",
    "u-1",
)
ROLE = RoleRecord("auditor", (Permission("jobs", ("read", "cancel")),), AT, AT + 1)
NAMESPACE = NamespaceRecord("acme", AT, RateLimit(2000, 4000, 1000, 2000), Quotas(1, 2, 3), NamespaceState.DELETING)
SSO = SsoSettings("oidc", "https://issuer.example", "corvo", True, "teams", {"sre": "admin"}, AT)

REDACTION = RedactionRules({"acme|mail": ("customer.email", "**.note")})

RECORDS: dict[str, Any] = {
    "api_key": KEY,
    "role": ROLE,
    "namespace": NAMESPACE,
    "sso": SSO,
    "redaction": REDACTION,
}
KEYS: dict[str, bytes] = {
    "api_key": keys.api_key(HASH),
    "role": keys.role("auditor"),
    "namespace": keys.namespace("acme"),
    "sso": keys.SSO,
    "redaction": keys.REDACTION,
    "access_version": keys.ACCESS_VERSION,
}
GRANTER = Granter("ops", "acme", (Permission("*", ("*",)),), ("emails.*",), True)
SESSION = ApiKey(
    HASH, "ada", "sk_4bT9xQ2a", "acme", "operator", expires_at=AT, issuer="https://a.example", subject="u-1"
)
OPERATIONS: dict[str, Any] = {
    "set_sso": SetSso(GRANTER, SSO),
    "open_session": OpenSession(SESSION),
    "close_session": CloseSession(HASH),
    "set_redaction": SetRedaction("acme|mail", ("customer.email", "**.note")),
}
QUERIES: dict[str, Any] = {
    "follow_access": FollowAccess(7),
    "list_keys": ListKeys(GRANTER),
    "get_key": GetKey(GRANTER, HASH),
    "list_roles": ListRoles(),
    "list_namespaces": ListNamespaces(),
    "get_namespace": GetNamespace("acme"),
    "get_sso": GetSso(),
    "get_redaction": GetRedaction("acme|mail"),
}
RESULTS: dict[str, Any] = {
    "follow_access": AccessNews(9, True, True, [KEY], [ROLE], [NAMESPACE], SSO, [HASH_2], ["old"], ["gone"], REDACTION),
    "get_sso": SSO,
    "get_redaction": ["customer.email"],
}
