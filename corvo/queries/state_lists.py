"""Lists of dead and of held jobs: pages of a search with an optional queue."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from corvo.endpoint import Endpoint
from corvo.model.job import QueueName
from corvo.queries.search import LIMIT_MAX, SearchAnswer, SearchBody


class StateListQuery(msgspec.Struct, forbid_unknown_fields=True):
    queue: QueueName | None = None
    order: Annotated[Literal["asc", "desc"], Meta(description="by creation")] = "desc"
    limit: Annotated[int, Meta(ge=1, le=LIMIT_MAX)] = 50
    cursor: Annotated[str, Meta(max_length=512, description="`cursor` of the previous page")] | None = None
    consistent: Annotated[bool, Meta(description="include every change that was acknowledged before this request")] = (
        False
    )


def search_body(state: Literal["dead", "held"], query: StateListQuery) -> SearchBody:
    return SearchBody(
        queue=query.queue,
        state=[state],
        order=query.order,
        limit=query.limit,
        cursor=query.cursor,
        consistent=query.consistent,
    )


def _endpoint(state: str, summary: str) -> Endpoint:
    return Endpoint(
        name=state,
        access="jobs:list",
        method="GET",
        path=f"/jobs/{state}",
        aliases=(f"/{state}",),
        summary=summary,
        query=StateListQuery,
        answers={200: SearchAnswer},
        refusals=("VALIDATION_ERROR", "READ_DB_UNAVAILABLE"),
    )


ENDPOINTS = (
    _endpoint("dead", "Jobs that have no attempts left"),
    _endpoint("held", "Jobs that wait for approval"),
)
