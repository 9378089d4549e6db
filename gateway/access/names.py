"""The names in a request: compared with the scope of its principal, and qualified with its namespace.

Fields of bodies and queries are found by their types (`corvo/model/name_fields.py`), parameters of paths by the names
that the routes give them. In the namespace `default`, a principal without a scope skips nearly all of it.
"""

from typing import Any

from corvo.endpoint import Endpoint
from corvo.model.access import Principal
from corvo.model.limits import SCHEDULE_ID
from corvo.model.name_fields import NameKind, qualify_names, queues_in, refuse_separator
from corvo.model.namespaces import DEFAULT, qualify

# Parameters of paths that hold a name or an id of a tenant.
PARAMETERS = {
    "name": NameKind.QUEUE,
    "worker_id": NameKind.WORKER,
    "schedule_id": NameKind.SCHEDULE,
    "job_id": NameKind.ID,
    "batch_id": NameKind.ID,
    "bulk_id": NameKind.ID,
}


def parameter_kinds(endpoint: Endpoint) -> tuple[NameKind | None, ...]:
    pieces = (piece for piece in endpoint.path.split("/") if piece.startswith("{"))
    return tuple(PARAMETERS.get(piece.strip("{}")) for piece in pieces)


def enter_body(asked: Any, principal: Principal) -> None:
    """Check and qualify the names in a decoded body or query, in place."""
    if asked is None:
        return
    if principal.queue_scope:
        principal.require_queues(queues_in(asked))
    if principal.namespace != DEFAULT:
        qualify_names(asked, principal.namespace)


def enter_path(
    kinds: tuple[NameKind | None, ...], parameters: tuple[str, ...], principal: Principal
) -> tuple[str, ...]:
    """The same for the parameters of a path. No client's name may claim a namespace."""
    return tuple(
        value if kind is None else _enter(kind, value, principal) for kind, value in zip(kinds, parameters, strict=True)
    )


def _enter(kind: NameKind, value: str, principal: Principal) -> str:
    if kind is NameKind.ID:
        return value
    refuse_separator(value, "name")
    if kind is NameKind.SCHEDULE and SCHEDULE_ID.fullmatch(value):
        return value
    if kind is NameKind.QUEUE:
        principal.require_queues([value])
    return qualify(principal.namespace, value)
