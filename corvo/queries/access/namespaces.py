"""Namespaces, their rate limits and quotas (linearizable). A tenant sees its own namespace only."""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from corvo.endpoint import Answer, Endpoint, Plan, PlanContext, Query, Read
from corvo.model.access import CHOOSE_NAMESPACE, Principal
from corvo.model.access_records import DEFAULT_NAMESPACE, NamespaceRecord, Quotas, RateLimit
from corvo.model.errors import Refusal
from corvo.model.namespaces import DEFAULT
from corvo.queries.access.views import NamespaceView, QuotasView, namespace_view, quotas_view
from corvo.rules.access import require_namespace
from corvo.state.tables import Tables


class ListNamespaces(Read, tag=1074):
    result: ClassVar[Any] = list[NamespaceRecord]

    def read(self, tables: Tables) -> list[NamespaceRecord]:
        known = tables.access.state.namespaces
        return list(({DEFAULT: DEFAULT_NAMESPACE} | known).values())


class GetNamespace(Read, tag=1075):
    name: str

    result: ClassVar[Any] = NamespaceRecord

    def read(self, tables: Tables) -> NamespaceRecord:
        return require_namespace(tables.access.state, self.name)


class RateLimitAnswer(msgspec.Struct, omit_defaults=True):
    using_defaults: Annotated[bool, Meta(description="the server's settings apply")]
    read_rps: float | None = None
    read_burst: float | None = None
    write_rps: float | None = None
    write_burst: float | None = None


def _plan_all(context: PlanContext, body: None) -> Plan:
    principal = context.principal

    def conclude(results: list[list[NamespaceRecord]]) -> Answer:
        found = [one for one in results[0] if _is_seen(principal, one.name)]
        return Answer(200, [namespace_view(one) for one in sorted(found, key=lambda one: one.name)])

    return Plan([(0, ListNamespaces())], conclude)


def _is_seen(principal: Principal, name: str) -> bool:
    """Those who run the cluster, or may act in any namespace, see all of them."""
    return name == principal.namespace or principal.may("cluster:write") or principal.may(CHOOSE_NAMESPACE)


def _ask_one(context: PlanContext, name: str) -> GetNamespace:
    if not _is_seen(context.principal, name):
        raise Refusal("NAMESPACE_NOT_FOUND", f"there is no namespace {name[:100]!r}; create it with POST /namespaces")
    return GetNamespace(name)


def _plan_rate_limit(context: PlanContext, body: None, name: str) -> Plan:
    def conclude(results: list[NamespaceRecord]) -> Answer:
        limits = results[0].limits or RateLimit()
        return Answer(200, RateLimitAnswer(results[0].limits is None, *msgspec.structs.astuple(limits)))

    return Plan([(0, _ask_one(context, name))], conclude)


def _plan_quotas(context: PlanContext, body: None, name: str) -> Plan:
    def conclude(results: list[NamespaceRecord]) -> Answer:
        return Answer(200, quotas_view(results[0].quotas or Quotas()))

    return Plan([(0, _ask_one(context, name))], conclude)


QUERIES: tuple[type[Query], ...] = (ListNamespaces, GetNamespace)

ENDPOINTS = (
    Endpoint(
        name="namespaces",
        access="namespaces:read",
        method="GET",
        path="/namespaces",
        summary="Namespaces by name; a tenant sees its own",
        answers={200: list[NamespaceView]},
        plan=_plan_all,
        needs_principal=True,
    ),
    Endpoint(
        name="namespace_rate_limit",
        access="namespaces:read",
        method="GET",
        path="/namespaces/{namespace}/rate-limit",
        summary="How many requests a namespace may send",
        answers={200: RateLimitAnswer},
        refusals=("NAMESPACE_NOT_FOUND",),
        plan=_plan_rate_limit,
        needs_principal=True,
    ),
    Endpoint(
        name="namespace_quotas",
        access="namespaces:read",
        method="GET",
        path="/namespaces/{namespace}/quotas",
        summary="How much a namespace may store",
        answers={200: QuotasView},
        refusals=("NAMESPACE_NOT_FOUND",),
        plan=_plan_quotas,
        needs_principal=True,
    ),
)
