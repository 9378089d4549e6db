"""Throttle of a queue: at most `rate` claims within any span of the given length (an exact sliding window).

Every claim counts, also the second claim of a job that failed. Claims from before the throttle was set, or from outside
its former window, are not known and do not count.
"""

from typing import Annotated, Any, ClassVar

from msgspec import Meta

from corvo.endpoint import Answer, Body, Endpoint, Operation, Plan, PlanContext
from corvo.model.errors import invalid
from corvo.model.events import EventKind
from corvo.model.job import Count, SpanMs
from corvo.model.limits import RATE_MAX, WINDOW_MS_MAX, WINDOW_MS_MIN
from corvo.model.timestamps import parse_duration
from corvo.ops.queues.control import QueueChanged, ask_queue, control
from corvo.queries.queue_names import require_queue
from corvo.state.tables import Tables


class ThrottleBody(Body):
    rate: Annotated[int, Meta(ge=1, le=RATE_MAX, description="claims")]
    window_ms: Annotated[
        Annotated[int, Meta(ge=WINDOW_MS_MIN, le=WINDOW_MS_MAX)] | None,
        Meta(description="within any period of this length, 1 s to 1 day"),
    ] = None
    period: Annotated[str | None, Meta(description="the same as a duration: `1m`; window_ms takes precedence")] = None


class SetThrottle(Operation, tag=16):
    queue: str
    rate: Count  # 0: no throttle
    window_ms: SpanMs

    result: ClassVar[Any] = type(None)

    def apply(self, tables: Tables) -> None:
        if not self.rate:
            require_queue(tables, self.queue)
        data = b'{"rate_limit":%d,"rate_window_ms":%d}' % (self.rate, self.window_ms)
        control(tables, self.queue, EventKind.QUEUE_CHANGED, data, rate=self.rate, window_ms=self.window_ms)


def _plan(context: PlanContext, body: ThrottleBody, name: str) -> Plan:
    window_ms = _window_ms(body)
    return ask_queue(context, name, lambda queue: SetThrottle(queue, body.rate, window_ms), _conclude)


def _window_ms(body: ThrottleBody) -> int:
    if body.window_ms is not None:
        return body.window_ms
    if body.period is None:
        raise invalid("window_ms", "give the length of the window, as `window_ms` or as `period`")
    try:
        window_ms = parse_duration(body.period)
    except ValueError as error:
        raise invalid("period", str(error)) from None
    if not WINDOW_MS_MIN <= window_ms <= WINDOW_MS_MAX:
        raise invalid("period", "must be between 1s and 1d")
    return window_ms


def _plan_removal(context: PlanContext, body: None, name: str) -> Plan:
    return ask_queue(context, name, lambda queue: SetThrottle(queue, 0, 0), _conclude)


def _conclude(result: None) -> Answer:
    return Answer(200, QueueChanged("ok"))


ENDPOINTS = (
    Endpoint(
        name="set_throttle",
        access="queues:write",
        method="POST",
        repeats="freely",
        path="/queues/{name}/throttle",
        summary="Limit the rate of claims from a queue",
        body=ThrottleBody,
        example={"rate": 5, "window_ms": 1_000},
        answers={200: QueueChanged},
        plan=_plan,
    ),
    Endpoint(
        name="remove_throttle",
        access="queues:write",
        method="DELETE",
        repeats="freely",
        path="/queues/{name}/throttle",
        summary="Remove the throttle of a queue",
        answers={200: QueueChanged},
        refusals=("VALIDATION_ERROR", "QUEUE_NOT_FOUND"),
        plan=_plan_removal,
    ),
)
