"""Building the read database anew, because somebody wants it: no job is affected, and no list is away meanwhile."""

from typing import Annotated

import msgspec
from msgspec import Meta

from corvo.endpoint import Endpoint


class RebuildQuery(msgspec.Struct, forbid_unknown_fields=True):
    wait: Annotated[
        bool | None,
        Meta(description="answer when it is over, or after a minute; left out: yes for `rebuild-sqlite`, no otherwise"),
    ] = None


class RebuildView(msgspec.Struct):
    status: Annotated[str, Meta(description="`building`, or `ok` when it is over")]
    rebuilt: bool
    generation: Annotated[str, Meta(description="of the read database that is read now; another one when it is over")]
    duration_ms: Annotated[float | None, Meta(description="how long the rebuild took, when it is over")] = None


def _endpoint(name: str, path: str, summary: str) -> Endpoint:
    return Endpoint(
        name=name,
        method="POST",
        path=path,
        summary=summary,
        query=RebuildQuery,
        answers={200: RebuildView, 202: RebuildView},
    )


ENDPOINTS = (
    _endpoint(
        "rebuild_read_db",
        "/admin/rebuild-read-db",
        "Build this node's read database anew, beside the one that is read, and put it in its place",
    ),
    _endpoint("rebuild_sqlite", "/admin/rebuild-sqlite", "The same, under the name that older clients know"),
)
