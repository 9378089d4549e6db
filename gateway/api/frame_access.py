"""What a frame may do: its parts compared with the permissions and the scope of the stream's principal.

A part that needs a permission which the principal lacks is refused item by item, like any other fault in a frame.
Names in the rest are qualified with the namespace.
"""

from typing import Any

from msgspec import UNSET

from corvo.model.access import Principal
from corvo.model.errors import Refusal
from corvo.model.name_fields import ids_in
from corvo.model.namespaces import DEFAULT
from gateway.access.names import enter_body
from gateway.api.frames import Frame

# Part of a frame → the permission that it needs: that of the endpoint that does the same.
ACCESS = {
    "enqueue": "jobs:enqueue",
    "ack": "jobs:ack",
    "fail": "jobs:fail",
    "heartbeat": "jobs:heartbeat",
    "fetch": "jobs:fetch",
}


def needs_check(principal: Principal) -> bool:
    """False for the principal that most streams have: every item may pass as it is."""
    return (
        principal.namespace != DEFAULT
        or bool(principal.queue_scope)
        or not all(principal.may(access) for access in ACCESS.values())
    )


def enter_frame(frame: Frame, principal: Principal) -> None:
    for part, access in ACCESS.items():
        asked: Any = getattr(frame, part)
        if asked is UNSET:
            continue
        if part == "fetch":
            frame.fetch = _entered(asked, principal, access)
        elif part == "heartbeat":
            frame.heartbeat = {job_id: _entered(one, principal, access) for job_id, one in asked.items()}
        else:
            setattr(frame, part, [_entered(one, principal, access) for one in asked])


def ids_of(frame: Frame) -> set[str]:
    """Every id that the frame names."""
    ids: set[str] = set()
    for part in (frame.enqueue, frame.ack, frame.fail):
        if part is not UNSET:
            ids.update(*(ids_in(item) for item in part if not isinstance(item, Refusal)))
    return ids if frame.heartbeat is UNSET else ids | set(frame.heartbeat)


def _entered(item: Any, principal: Principal, access: str) -> Any:
    """The item with qualified names, or the refusal that takes its place."""
    if isinstance(item, Refusal):
        return item
    try:
        principal.require(access)
        enter_body(item, principal)
    except Refusal as refusal:
        return refusal
    return item
