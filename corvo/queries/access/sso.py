"""The settings of single sign-on (linearizable)."""

from typing import Any, ClassVar

from corvo.endpoint import Answer, Endpoint, Plan, PlanContext, Query, Read
from corvo.model.access_records import SsoSettings
from corvo.model.timestamps import to_rfc3339_or_none
from corvo.queries.access.views import SsoView
from corvo.state.tables import Tables


class GetSso(Read, tag=1076):
    result: ClassVar[Any] = SsoSettings

    def read(self, tables: Tables) -> SsoSettings:
        return tables.access.state.sso


def _plan(context: PlanContext, body: None) -> Plan:
    return Plan([(0, GetSso())], lambda results: Answer(200, sso_view(results[0])))


def sso_view(sso: SsoSettings) -> SsoView:
    return SsoView(
        sso.provider,
        sso.oidc_issuer_url,
        sso.oidc_client_id,
        sso.saml_enabled,
        sso.oidc_group_claim,
        sso.group_role_mappings,
        to_rfc3339_or_none(sso.updated_at),
    )


QUERIES: tuple[type[Query], ...] = (GetSso,)

ENDPOINTS = (
    Endpoint(
        name="sso_settings",
        access="sso:read",
        method="GET",
        path="/settings/sso",
        summary="The settings of single sign-on",
        answers={200: SsoView},
        plan=_plan,
    ),
)
