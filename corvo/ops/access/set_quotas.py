"""SetQuotas: how much a namespace may store."""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from corvo.endpoint import Answer, Body, Endpoint, Operation, Plan, PlanContext
from corvo.model.access_records import Quotas
from corvo.model.job import Count
from corvo.ops.access.fields import AccessChanged
from corvo.rules.access import require_namespace
from corvo.state.tables import Tables


class QuotasBody(Body):
    max_jobs: Annotated[Count, Meta(description="jobs that are stored; 0: no limit")] = 0
    max_payload_bytes: Annotated[Count, Meta(description="of all stored jobs together; 0: no limit")] = 0
    max_queues: Annotated[Count, Meta(description="0: no limit")] = 0


class SetQuotas(Operation, tag=81):
    namespace: str
    quotas: Quotas | None

    result: ClassVar[Any] = int

    def apply(self, tables: Tables) -> int:
        """The version with them."""
        access = tables.access
        before = require_namespace(access.state, self.namespace)
        after = msgspec.structs.replace(before, quotas=self.quotas)
        if after != before:
            access.put_namespace(after)
        return access.state.version


def _plan(context: PlanContext, body: QuotasBody, namespace: str) -> Plan:
    quotas = Quotas(body.max_jobs, body.max_payload_bytes, body.max_queues)

    def conclude(results: list[int]) -> Answer:
        return Answer(200, AccessChanged("updated"), results[0])

    return Plan([(0, SetQuotas(namespace, None if quotas == Quotas() else quotas))], conclude)


ENDPOINTS = (
    Endpoint(
        name="set_namespace_quotas",
        access="namespaces:write",
        method="PUT",
        repeats="freely",
        path="/namespaces/{namespace}/quotas",
        summary="Set how much a namespace may store; what is not given has no limit",
        body=QuotasBody,
        example={"max_jobs": 1_000_000, "max_queues": 100},
        answers={200: AccessChanged},
        refusals=("NAMESPACE_NOT_FOUND",),
        plan=_plan,
    ),
)
