"""BeginBulk: create the record of a bulk operation; a gateway will claim it.

The route for all bulk actions is here too. An action on few jobs is done within its request and leaves no record; the
gateway counts the jobs to decide (`gateway/api/bulk/requests.py`).
"""

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from corvo.endpoint import Body, Endpoint, Operation, PlanContext
from corvo.model.errors import Refusal, invalid
from corvo.model.job import PRIORITY_NAMES, Count, JobId, Priority, QueueName
from corvo.model.lifecycle import STATE_NAMES, State
from corvo.model.limits import BULK_AT_ONCE_MAX, BULKS_OPEN_MAX, BULKS_OPEN_OF_TENANT_MAX
from corvo.model.namespaces import DEFAULT, namespace_of_id
from corvo.ops.jobs.cancel import CancelBody, grace_ms
from corvo.ops.jobs.hold import Reason
from corvo.queries.bulk_view import FailureView, failure_views
from corvo.queries.search import SearchBody
from corvo.rules.bulk import ACTION_NAMES, Action, Bulk, BulkCounts, Order, find_bulk, open_bulks, put_bulk, put_ids
from corvo.state.tables import Tables

# Paging fields of a search, which a bulk action does not accept.
_PAGING = ("cursor", "limit", "sort", "order", "consistent")
_ONLY_FOR: dict[str, tuple[Action, ...]] = {
    "move_to_queue": (Action.MOVE,),
    "reset_attempts": (Action.MOVE,),
    "keep_priority": (Action.MOVE,),
    "priority": (Action.CHANGE_PRIORITY,),
    "reason": (Action.HOLD, Action.REJECT),
    "grace": (Action.CANCEL,),
}


# The permission of the same action on one job. A bulk action needs it too.
ACCESS: dict[Action, str] = {
    Action.RETRY: "jobs:retry",
    Action.REQUEUE: "jobs:requeue",
    Action.DELETE: "jobs:delete",
    Action.CANCEL: "jobs:cancel",
    Action.MOVE: "jobs:move",
    Action.CHANGE_PRIORITY: "jobs:priority",
    Action.HOLD: "jobs:hold",
    Action.APPROVE: "jobs:approve",
    Action.REJECT: "jobs:reject",
}


class BulkBody(Body, kw_only=True):
    action: Literal["retry", "requeue", "delete", "cancel", "move", "change_priority", "hold", "approve", "reject"]
    job_ids: Annotated[list[JobId], Meta(min_length=1, max_length=BULK_AT_ONCE_MAX)] | None = None
    filter: Annotated[SearchBody | None, Meta(description="all jobs that match, as in a search, without paging")] = None
    move_to_queue: Annotated[QueueName | None, Meta(description="of `move`")] = None
    reset_attempts: Annotated[
        bool | None, Meta(description="of `move`: true counts the attempts of each job from zero again")
    ] = None
    keep_priority: Annotated[
        bool | None, Meta(description="of `move`: false gives each job the priority `normal` in its new queue")
    ] = None
    priority: Annotated[Literal["critical", "high", "normal"] | None, Meta(description="of `change_priority`")] = None
    reason: Annotated[Reason, Meta(description="of `hold` and `reject`")] = ""
    grace: Annotated[
        str | float | None, Meta(description="of `cancel`: how long the worker of an active job may take to stop")
    ] = None
    dry_run: Annotated[bool, Meta(description="count, show a few, change nothing")] = False
    is_async: Annotated[bool, Meta(description="run it in the background, however few jobs match")] = msgspec.field(
        name="async", default=False
    )


class SampleJob(msgspec.Struct):
    id: str
    queue: str
    state: str
    priority: int
    attempt: int
    created_at: str


class BulkDone(msgspec.Struct):
    """The result of an action that was done within the request; with `dry_run`, of one that was not done."""

    affected: Annotated[int, Meta(description="jobs that were changed")]
    errors: Annotated[int, Meta(description="jobs that were refused and not changed")]
    duration_ms: float
    matched: Annotated[int, Meta(description="jobs that matched or were listed")]
    matched_is_exact: Annotated[bool, Meta(description="false: there are more")] = True
    dry_run: bool = False
    error_codes: Annotated[dict[str, int], Meta(description="refused jobs by code")] = {}
    error_samples: Annotated[list[FailureView], Meta(description="the first hundred of them")] = []
    sample: Annotated[list[SampleJob], Meta(description="of a dry run: the oldest jobs that match")] = []


class BulkStarted(msgspec.Struct):
    bulk_operation_id: str
    status: Annotated[str, Meta(description="`processing`; `GET /bulk/{id}` shows its progress")]
    estimated_total: Annotated[int, Meta(description="jobs that matched; a lower bound if `total_is_exact` is false")]
    progress_url: str
    total_is_exact: bool = True


class BeginBulk(Operation, tag=60):
    bulk_id: str
    order: Order
    filter: bytes
    job_ids: Annotated[list[str], Meta(max_length=BULK_AT_ONCE_MAX)]
    total: Count
    total_is_exact: bool

    result: ClassVar[Any] = type(None)

    def apply(self, tables: Tables) -> None:
        if find_bulk(tables, self.bulk_id) is not None:
            return  # a repeated request
        waiting = open_bulks(tables)
        namespace = namespace_of_id(self.bulk_id)
        of_tenant = sum(namespace_of_id(bulk.id) == namespace for bulk in waiting)
        if len(waiting) >= BULKS_OPEN_MAX or (namespace != DEFAULT and of_tenant >= BULKS_OPEN_OF_TENANT_MAX):
            raise Refusal(
                "OVERLOADED",
                "too many bulk operations are waiting or running; retry when one of them has ended",
                retry_after_ms=5_000,
            )
        bulk = Bulk(self.bulk_id, self.order, tables.now, self.filter, self.total, self.total_is_exact)
        if self.job_ids:
            put_ids(tables, self.bulk_id, self.job_ids)
        put_bulk(tables, bulk)


def order_of(body: BulkBody, scope: tuple[str, ...] = ()) -> Order:
    """Refuses fields that do not fit the action. `scope` is that of the key that orders it."""
    action = Action(ACTION_NAMES.index(body.action))
    for field, actions in _ONLY_FOR.items():
        if getattr(body, field) not in (None, "") and action not in actions:
            names = " and ".join(ACTION_NAMES[one] for one in actions)
            raise invalid(field, f"is for {names}, not for {body.action}")
    if action is Action.MOVE and body.move_to_queue is None:
        raise invalid("move_to_queue", "missing: the queue that the jobs move to")
    if action is Action.CHANGE_PRIORITY and body.priority is None:
        raise invalid("priority", f"missing: expected {', '.join(PRIORITY_NAMES)}")
    return Order(
        action,
        body.move_to_queue,
        Priority.NORMAL if body.priority is None else Priority(PRIORITY_NAMES.index(body.priority)),
        body.reason,
        grace_ms(CancelBody(body.grace)) if action is Action.CANCEL else 0,
        "" if body.filter is None else body.filter.queue or "",
        () if body.filter is None else tuple(State(STATE_NAMES.index(name)) for name in body.filter.state),
        scope,
        bool(body.reset_attempts),
        body.keep_priority is False,
    )


def check_matching(context: PlanContext, body: BulkBody) -> None:
    """The jobs: a list of ids, or a filter with at least one condition."""
    if (body.job_ids is None) is (body.filter is None):
        which = "neither" if body.filter is None else "both"
        raise invalid("filter", f"{which} of job_ids and filter given; give exactly one of them")
    for number, job_id in enumerate(body.job_ids or ()):
        if not context.is_job_id(job_id):
            raise invalid(f"job_ids[{number}]", f"no job can have the id {job_id!r}")
    if body.filter is not None:
        given = [field.name for field in msgspec.structs.fields(body.filter) if _is_given(body.filter, field)]
        for name in given:
            if name in _PAGING:
                raise invalid(
                    f"filter.{name}", "is for pages of a search; a bulk action applies to all jobs that match"
                )
        if not given:
            raise invalid("filter", "matches every job; give at least one condition, such as created_before")


def _is_given(body: SearchBody, field: msgspec.structs.FieldInfo) -> bool:
    default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    return bool(getattr(body, field.name) != default)


def done_view(tally: BulkCounts, matched: int, duration_ms: float) -> BulkDone:
    return BulkDone(
        affected=tally.affected,
        errors=sum(tally.errors.values()),
        duration_ms=duration_ms,
        matched=matched,
        error_codes=tally.errors,
        error_samples=failure_views(tally.samples),
    )


ENDPOINTS = (
    Endpoint(
        name="bulk",
        access="bulk:write",
        wait_s=60.0,
        method="POST",
        path="/jobs/bulk",
        summary="One action on many jobs on all shards: a list of ids, or all that match a filter",
        body=BulkBody,
        example={"action": "retry", "filter": {"queue": "emails.send", "state": ["dead"]}},
        answers={200: BulkDone, 202: BulkStarted},
        refusals=("READ_DB_UNAVAILABLE",),
    ),
)
