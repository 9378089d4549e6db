"""Rebuild of the read database on request. Jobs are not affected, and lists stay available."""

from typing import Annotated

import msgspec
from msgspec import Meta

from corvo.endpoint import Endpoint


class RebuildQuery(msgspec.Struct, forbid_unknown_fields=True):
    wait: Annotated[
        bool | None,
        Meta(description="answer at the end, or after a minute; default: true for `rebuild-sqlite`, otherwise false"),
    ] = None


class RebuildView(msgspec.Struct):
    status: Annotated[str, Meta(description="`building`, or `ok` at the end")]
    rebuilt: bool
    generation: Annotated[str, Meta(description="of the read database in use; changes at the end of the rebuild")]
    duration_ms: Annotated[float | None, Meta(description="how long the rebuild took, at its end")] = None


def _endpoint(name: str, path: str, summary: str) -> Endpoint:
    return Endpoint(
        name=name,
        access="admin:write",
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
        "Rebuild this node's read database beside the one in use, then replace it",
    ),
    _endpoint("rebuild_sqlite", "/admin/rebuild-sqlite", "The same, under the path of older clients"),
)
