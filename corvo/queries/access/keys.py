"""API keys, without the keys themselves (linearizable)."""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from corvo.endpoint import Answer, Endpoint, Plan, PlanContext, Query, Read
from corvo.model.access_records import ApiKey
from corvo.model.errors import invalid
from corvo.model.granting import Granter, granter_of
from corvo.model.limits import NAMESPACE
from corvo.queries.access.views import KeyView, key_view
from corvo.rules.access import require_key
from corvo.state.tables import Tables


class ListKeys(Read, tag=1071):
    granter: Granter

    result: ClassVar[Any] = list[ApiKey]

    def read(self, tables: Tables) -> list[ApiKey]:
        return [key for key in tables.access.state.keys.values() if self.granter.reaches(key.namespace)]


class GetKey(Read, tag=1072):
    granter: Granter
    key_hash: str

    result: ClassVar[Any] = ApiKey

    def read(self, tables: Tables) -> ApiKey:
        return require_key(tables.access.state, self.granter, self.key_hash)


class KeysQuery(msgspec.Struct, forbid_unknown_fields=True):
    namespace: Annotated[str, Meta(description="only keys of this namespace")] = ""


class KeyRoles(msgspec.Struct):
    key_hash: str
    roles: Annotated[list[str], Meta(description="custom roles that are bound to it, in addition to its role")]


def _plan_all(context: PlanContext, query: KeysQuery) -> Plan:
    if query.namespace and not NAMESPACE.fullmatch(query.namespace):
        raise invalid("namespace", "this is no name of a namespace")

    def conclude(results: list[list[ApiKey]]) -> Answer:
        found = [key for key in results[0] if query.namespace in ("", key.namespace)]
        return Answer(200, [key_view(key) for key in sorted(found, key=lambda key: (key.created_at, key.key_hash))])

    return Plan([(0, ListKeys(granter_of(context.principal)))], conclude)


def _plan_roles(context: PlanContext, body: None, key_hash: str) -> Plan:
    def conclude(results: list[ApiKey]) -> Answer:
        return Answer(200, KeyRoles(results[0].key_hash, list(results[0].roles)))

    return Plan([(0, GetKey(granter_of(context.principal), key_hash))], conclude)


QUERIES: tuple[type[Query], ...] = (ListKeys, GetKey)

ENDPOINTS = (
    Endpoint(
        name="api_keys",
        access="auth:read",
        method="GET",
        path="/auth/keys",
        summary="API keys, oldest first: a cluster administrator sees all, others those of their namespace",
        query=KeysQuery,
        answers={200: list[KeyView]},
        plan=_plan_all,
        needs_principal=True,
    ),
    Endpoint(
        name="key_roles",
        access="auth:read",
        method="GET",
        path="/auth/keys/{key_hash}/roles",
        summary="Custom roles that are bound to an API key",
        answers={200: KeyRoles},
        refusals=("KEY_NOT_FOUND",),
        plan=_plan_roles,
        needs_principal=True,
    ),
)
