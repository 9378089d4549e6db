"""Which values of a queue's documents are hidden from people, beside those that always are (linearizable)."""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from corvo.endpoint import Answer, Endpoint, Plan, PlanContext, Query, Read
from corvo.model.redaction import WORDS
from corvo.queries.queue_names import checked_name
from corvo.state.tables import Tables


class RedactionView(msgspec.Struct):
    paths: Annotated[list[str], Meta(description="of this queue")]
    words: Annotated[list[str], Meta(description="a value is hidden everywhere when its name has one of these words")]


class GetRedaction(Read, tag=1077):
    queue: str

    result: ClassVar[Any] = list[str]

    def read(self, tables: Tables) -> list[str]:
        return list(tables.access.state.redaction.queues.get(self.queue, ()))


def _plan(context: PlanContext, body: None, name: str) -> Plan:
    def conclude(results: list[list[str]]) -> Answer:
        return Answer(200, RedactionView(results[0], sorted(WORDS)))

    return Plan([(0, GetRedaction(checked_name(name)))], conclude)


QUERIES: tuple[type[Query], ...] = (GetRedaction,)

ENDPOINTS = (
    Endpoint(
        name="redaction",
        access="redaction:read",
        method="GET",
        path="/queues/{name}/redaction",
        summary="Which values of its jobs' documents people do not see",
        answers={200: RedactionView},
        plan=_plan,
    ),
)
