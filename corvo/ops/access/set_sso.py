"""SetSso: the settings of single sign-on. Who sets them must have every role that a group is mapped to."""

from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from corvo.endpoint import Answer, Body, Endpoint, Operation, Plan, PlanContext
from corvo.model.access_records import SsoSettings
from corvo.model.errors import invalid
from corvo.model.granting import Granter, granter_of
from corvo.model.job import ShortText
from corvo.model.limits import GROUP_MAPPINGS_MAX
from corvo.ops.access.fields import AccessChanged, RoleName
from corvo.rules.access import require_role
from corvo.state.tables import Tables

GroupName = Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f]{1,256}\Z")]


class SsoBody(Body):
    provider: Annotated[Literal["", "oidc", "saml"], Meta(description="empty: no sign-on")] = ""
    oidc_issuer_url: Annotated[str, Meta(max_length=2048, description="begins with https:// or http://")] = ""
    oidc_client_id: ShortText = ""
    saml_enabled: Annotated[bool, Meta(description="trust a proxy's headers, from the addresses in the settings")] = (
        False
    )
    oidc_group_claim: ShortText = "groups"
    group_role_mappings: Annotated[
        dict[GroupName, RoleName], Meta(max_length=GROUP_MAPPINGS_MAX, description="group → role")
    ] = {}


class SetSso(Operation, tag=82):
    granter: Granter
    settings: SsoSettings  # without its time

    result: ClassVar[Any] = int

    def apply(self, tables: Tables) -> int:
        """The version with them."""
        access = tables.access
        before = access.state.sso
        for settings in (before, self.settings):
            for role in sorted(set(settings.group_role_mappings.values())):
                self.granter.require_permissions(require_role(access.state, role), f"the role {role}")
        if msgspec.structs.replace(before, updated_at=0) != self.settings:
            access.put_sso(msgspec.structs.replace(self.settings, updated_at=tables.now))
        return access.state.version


def _plan(context: PlanContext, body: SsoBody) -> Plan:
    if body.provider == "oidc":
        _check_issuer(body.oidc_issuer_url)
        if not body.oidc_client_id:
            raise invalid("oidc_client_id", "OIDC needs a client id")
    settings = SsoSettings(
        body.provider,
        body.oidc_issuer_url,
        body.oidc_client_id,
        body.saml_enabled,
        body.oidc_group_claim or "groups",
        body.group_role_mappings,
    )

    def conclude(results: list[int]) -> Answer:
        return Answer(200, AccessChanged("ok"), results[0])

    return Plan([(0, SetSso(granter_of(context.principal), settings))], conclude)


def _check_issuer(url: str) -> None:
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.username
    except ValueError:
        is_url = False
    if not is_url or parts.query or parts.fragment:
        raise invalid("oidc_issuer_url", "OIDC needs the issuer's address, such as https://login.example.com")


ENDPOINTS = (
    Endpoint(
        name="set_sso_settings",
        access="sso:write",
        method="POST",
        repeats="freely",
        path="/settings/sso",
        summary="Change the settings of single sign-on",
        body=SsoBody,
        example={
            "provider": "oidc",
            "oidc_issuer_url": "https://login.example.com",
            "oidc_client_id": "corvo",
            "group_role_mappings": {"sre": "operator"},
        },
        answers={200: AccessChanged},
        refusals=("FORBIDDEN", "ROLE_NOT_FOUND"),
        plan=_plan,
        needs_principal=True,
    ),
)
