"""Who asks, and how this server authenticates. Answered by the gateway."""

from typing import Annotated

import msgspec
from msgspec import Meta

from corvo.endpoint import Endpoint
from corvo.model.access import OWN, Permission, Principal
from corvo.queries.access.views import Globs


class AuthStatus(msgspec.Struct):
    admin_password_set: bool
    has_keys: Annotated[bool, Meta(description="whether any API key is enabled")]
    sso_provider: Annotated[str, Meta(description="`oidc`, `saml`, or empty")]


class PrincipalView(msgspec.Struct, kw_only=True, omit_defaults=True):
    name: str
    kind: Annotated[str, Meta(description="`key`, `password`, `person`, `proxy`, or `anonymous`")]
    roles: list[str]
    permissions: list[Permission]
    namespace: Annotated[str, Meta(description="that it acts in")]
    home: Annotated[str, Meta(description="the namespace that it belongs to")]
    cluster_admin: Annotated[bool, Meta(description="manages keys of every namespace, roles, namespaces, sign-on")]
    queue_scope: Globs = ""
    key_hash: str = ""


def principal_view(principal: Principal, is_cluster_admin: bool) -> PrincipalView:
    return PrincipalView(
        name=principal.name,
        kind=principal.kind,
        roles=list(principal.roles),
        permissions=list(principal.permissions),
        namespace=principal.namespace,
        home=principal.home,
        cluster_admin=is_cluster_admin,
        queue_scope=",".join(principal.queue_scope),
        key_hash=principal.key_hash,
    )


ENDPOINTS = (
    Endpoint(
        name="auth_status",
        access="auth:read",
        method="GET",
        path="/auth/status",
        summary="How this server authenticates",
        answers={200: AuthStatus},
    ),
    Endpoint(
        name="whoami",
        access=OWN,
        method="GET",
        path="/auth/whoami",
        summary="The principal of this request: its roles, permissions, namespace and scope",
        answers={200: PrincipalView},
    ),
)
