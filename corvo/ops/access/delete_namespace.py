"""DeleteNamespace: nothing new gets into the namespace, and what is in it is removed.

It must have no keys, so that nobody works in it. The record stays, in the state `deleting`, until everything is gone:
otherwise a new namespace of the same name would find the jobs of the old one.
"""

from typing import Any, ClassVar

from corvo.endpoint import Answer, Endpoint, Operation, Plan, PlanContext
from corvo.model.access_records import NamespaceRecord, NamespaceState
from corvo.model.errors import Refusal, invalid
from corvo.model.namespaces import DEFAULT
from corvo.ops.access.fields import AccessChanged
from corvo.rules.access import require_namespace
from corvo.state.tables import Tables


class DeleteNamespace(Operation, tag=79):
    name: str

    result: ClassVar[Any] = int

    def apply(self, tables: Tables) -> int:
        """The version in which it is being deleted."""
        access = tables.access
        namespace = require_namespace(access.state, self.name)
        if namespace.state is NamespaceState.ACTIVE:
            keys = sum(key.namespace == self.name for key in access.state.keys.values())
            if keys:
                raise Refusal("NAMESPACE_IN_USE", f"the namespace {self.name} has {keys} API keys; delete them first")
            fields = (namespace.name, namespace.created_at, namespace.limits, namespace.quotas)
            access.put_namespace(NamespaceRecord(*fields, NamespaceState.DELETING))
        return access.state.version


def _plan(context: PlanContext, body: None, namespace: str) -> Plan:
    if namespace == DEFAULT:
        raise invalid("namespace", "the namespace default cannot be deleted")

    def conclude(results: list[int]) -> Answer:
        return Answer(200, AccessChanged("deleting"), results[0])

    return Plan([(0, DeleteNamespace(namespace))], conclude)


ENDPOINTS = (
    Endpoint(
        name="delete_namespace",
        access="namespaces:delete",
        method="DELETE",
        path="/namespaces/{namespace}",
        summary="Delete a namespace that has no keys",
        answers={200: AccessChanged},
        refusals=("NAMESPACE_IN_USE", "NAMESPACE_NOT_FOUND"),
        plan=_plan,
    ),
)
