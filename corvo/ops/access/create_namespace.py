"""CreateNamespace: a tenant with queues, jobs and keys of its own. One that exists is answered as it is."""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from corvo.endpoint import Answer, Body, Endpoint, Operation, Plan, PlanContext
from corvo.model.access_records import NamespaceRecord
from corvo.model.errors import Refusal
from corvo.model.limits import NAMESPACES_MAX
from corvo.model.namespaces import checked_namespace
from corvo.rules.access import require_active
from corvo.state.tables import Tables


class CreateNamespaceBody(Body):
    name: Annotated[str, Meta(description="1 to 63 lower-case letters, digits and hyphens, no hyphen at the ends")]


class NamespaceMade(msgspec.Struct):
    name: str
    status: Annotated[str, Meta(description="`created`, or `exists`")]


class NamespaceChange(msgspec.Struct, array_like=True):
    version: int
    is_new: bool


class CreateNamespace(Operation, tag=78):
    name: str

    result: ClassVar[Any] = NamespaceChange

    def apply(self, tables: Tables) -> NamespaceChange:
        access = tables.access
        is_new = access.state.namespace(self.name) is None
        if is_new:
            if len(access.state.namespaces) >= NAMESPACES_MAX:
                raise Refusal("TOO_MANY_NAMESPACES", f"a cluster has at most {NAMESPACES_MAX} namespaces")
            access.put_namespace(NamespaceRecord(self.name, tables.now))
        else:
            require_active(access.state, self.name)
        return NamespaceChange(access.state.version, is_new)


def _plan(context: PlanContext, body: CreateNamespaceBody) -> Plan:
    name = checked_namespace(body.name, "name")

    def conclude(results: list[NamespaceChange]) -> Answer:
        change = results[0]
        made = NamespaceMade(name, "created" if change.is_new else "exists")
        return Answer(201 if change.is_new else 200, made, change.version)

    return Plan([(0, CreateNamespace(name))], conclude)


ENDPOINTS = (
    Endpoint(
        name="create_namespace",
        access="namespaces:write",
        method="POST",
        repeats="freely",
        path="/namespaces",
        summary="Create a namespace: a tenant with queues, jobs and keys of its own",
        body=CreateNamespaceBody,
        example={"name": "acme"},
        answers={201: NamespaceMade, 200: NamespaceMade},
        refusals=("NAMESPACE_IN_USE", "TOO_MANY_NAMESPACES"),
        plan=_plan,
    ),
)
