"""SetRateLimit: how many requests a namespace may send, on each gateway. What is null is the server's setting."""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from corvo.endpoint import Answer, Body, Endpoint, Operation, Plan, PlanContext
from corvo.model.access_records import RateLimit
from corvo.model.limits import RATE_MAX
from corvo.ops.access.fields import AccessChanged
from corvo.rules.access import require_namespace
from corvo.state.tables import Tables

Rps = Annotated[float, Meta(gt=0, le=RATE_MAX)]
_PER_SECOND = "requests a second; null: the server's setting"
_AT_ONCE = "requests at once; null: the server's setting"


class RateLimitBody(Body):
    read_rps: Annotated[Rps | None, Meta(description=_PER_SECOND)] = None
    read_burst: Annotated[Rps | None, Meta(description=_AT_ONCE)] = None
    write_rps: Annotated[Rps | None, Meta(description=_PER_SECOND)] = None
    write_burst: Annotated[Rps | None, Meta(description=_AT_ONCE)] = None


class SetRateLimit(Operation, tag=80):
    namespace: str
    limits: RateLimit | None

    result: ClassVar[Any] = int

    def apply(self, tables: Tables) -> int:
        """The version with it."""
        access = tables.access
        before = require_namespace(access.state, self.namespace)
        after = msgspec.structs.replace(before, limits=self.limits)
        if after != before:
            access.put_namespace(after)
        return access.state.version


def _plan(context: PlanContext, body: RateLimitBody, namespace: str) -> Plan:
    limits = RateLimit(body.read_rps, body.read_burst, body.write_rps, body.write_burst)

    def conclude(results: list[int]) -> Answer:
        return Answer(200, AccessChanged("updated"), results[0])

    return Plan([(0, SetRateLimit(namespace, None if limits == RateLimit() else limits))], conclude)


ENDPOINTS = (
    Endpoint(
        name="set_namespace_rate_limit",
        access="namespaces:write",
        method="PUT",
        repeats="freely",
        path="/namespaces/{namespace}/rate-limit",
        summary="Set how many requests a namespace may send",
        body=RateLimitBody,
        example={"read_rps": 500, "read_burst": 1000, "write_rps": 100, "write_burst": 200},
        answers={200: AccessChanged},
        refusals=("NAMESPACE_NOT_FOUND",),
        plan=_plan,
    ),
)
