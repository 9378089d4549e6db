"""The optional conditions of a new job in a request (keys, expiry, dependencies, chain), and their conversion to
`JobExtras`."""

from typing import Annotated, Literal, Protocol

import msgspec
from msgspec import Meta

from corvo.endpoint import Body, PlanContext
from corvo.model.errors import Refusal, invalid
from corvo.model.job import JobId, QueueName
from corvo.model.job_extras import (
    IF_LOST_NAMES,
    UNIQUE_UNTIL_NAMES,
    Chain,
    ChainStep,
    IfLost,
    JobExtras,
    UniqueUntil,
    bytes_of,
)
from corvo.model.json_input import check_numbers
from corvo.model.limits import BODY_BYTES_MAX, CHAIN_BYTES_MAX, DELAY_MS_MAX, DEPENDENCIES_MAX, STEPS_PER_CHAIN_MAX
from corvo.model.namespaces import shown_name
from corvo.model.timestamps import LATEST_NS, parse_duration, parse_rfc3339

KeyText = Annotated[
    str,
    Meta(pattern=r"^[^\x00-\x1f\x7f]{1,256}\Z", description="1 to 256 characters, none of them a control character"),
]
DurationMs = Annotated[int, Meta(ge=0, le=DELAY_MS_MAX)]
ExpiryMs = Annotated[int, Meta(ge=0, le=LATEST_NS // 1_000_000)]

_UNTIL = {name: UniqueUntil(number) for number, name in enumerate(UNIQUE_UNTIL_NAMES)}
_IF_LOST = {name: IfLost(number) for number, name in enumerate(IF_LOST_NAMES)}


class StepBody(Body):
    queue: QueueName
    payload: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"{}"))


class ChainBody(Body):
    steps: Annotated[list[StepBody], Meta(min_length=1, max_length=STEPS_PER_CHAIN_MAX)]
    on_failure: StepBody | None = None
    on_exit: StepBody | None = None


class JobTerms(Body, kw_only=True):
    """Optional fields of an enqueue body. Most jobs have none of them."""

    unique_key: Annotated[
        KeyText | None, Meta(description="no job is created while another job of the queue holds it")
    ] = None
    unique_period: Annotated[
        Annotated[int, Meta(ge=1, le=DELAY_MS_MAX // 1000)] | None,
        Meta(description="seconds that the job holds its key at most; default one hour"),
    ] = None
    unique_until: Annotated[
        Literal["done", "period", "start"],
        Meta(description="when the key is free again: at the job's end, only after the period, or when it is claimed"),
    ] = "done"
    idempotency_key: Annotated[
        KeyText | None, Meta(description="no job is created while another job of the queue with this key is kept")
    ] = None
    expire_after: Annotated[
        str | None, Meta(description="`1h`: the job becomes dead if it is not done an hour after creation; 0: never")
    ] = None
    expire_after_ms: Annotated[ExpiryMs | None, Meta(description="the same in milliseconds; takes precedence")] = None
    retry_jitter: Annotated[
        float, Meta(ge=0, le=1, description="fraction of a retry delay by which it may be shortened at random")
    ] = 0.0
    depends_on: Annotated[
        list[JobId], Meta(max_length=DEPENDENCIES_MAX, description="jobs that must be completed before it runs")
    ] = []
    on_dependency_failure: Annotated[
        Literal["fail", "cancel", "run"],
        Meta(description="what happens to the job when one of them is dead, cancelled or deleted"),
    ] = "fail"
    chain: Annotated[ChainBody | None, Meta(description="jobs that follow one after another")] = None


def extras_of(context: PlanContext, terms: JobTerms, queue: str, chain_id: str, at: str) -> JobExtras | None:
    """None for a job without such fields, which most jobs are."""
    if not (
        terms.unique_key
        or terms.idempotency_key
        or terms.expire_after
        or terms.expire_after_ms
        or terms.retry_jitter
        or terms.depends_on
        or terms.chain
    ):
        return None
    return JobExtras(
        unique_key=terms.unique_key or "",
        unique_period_ms=(terms.unique_period or 0) * 1_000,
        unique_until=_UNTIL[terms.unique_until],
        idempotency_key=terms.idempotency_key or "",
        expire_after_ms=_expire_after_ms(context, terms, f"{at}expire_after"),
        jitter_permille=round(terms.retry_jitter * 1000),
        waits_for=tuple(_dependency(context, other, f"{at}depends_on") for other in dict.fromkeys(terms.depends_on)),
        if_lost=_IF_LOST[terms.on_dependency_failure],
        chain=None if terms.chain is None else _chain(context, terms.chain, queue, chain_id, f"{at}chain"),
    )


def _expire_after_ms(context: PlanContext, terms: JobTerms, field: str) -> int:
    span = terms.expire_after_ms
    if terms.expire_after is not None:
        try:
            text_ms = parse_duration(terms.expire_after)
        except ValueError as error:
            raise invalid(field, str(error)) from None
        span = text_ms if span is None else span
    if span is not None and context.clock_ns() + span * 1_000_000 >= LATEST_NS:
        raise invalid(field, "the job would expire after the year 2199")
    return span or 0


class When(Protocol):
    """A body that names a moment, or a delay from now."""

    @property
    def scheduled_at(self) -> str | None: ...
    @property
    def delay(self) -> str | None: ...
    @property
    def delay_ms(self) -> int | None: ...


def due_at_of(context: PlanContext, when: When, at: str = "") -> int:
    """0: neither is given."""
    if when.scheduled_at is None:
        delay_ms = duration_ms(when.delay, when.delay_ms, 0, f"{at}delay")
        return context.clock_ns() + delay_ms * 1_000_000 if delay_ms else 0
    field = f"{at}scheduled_at"
    if when.delay is not None or when.delay_ms is not None:
        raise invalid(field, "give scheduled_at or a delay, not both")
    try:
        return parse_rfc3339(when.scheduled_at)
    except ValueError as error:
        raise invalid(field, str(error)) from None


def duration_ms(text: str | None, number: int | None, default: int, field: str) -> int:
    """A duration as `10m` or as a number of milliseconds; the number takes precedence."""
    if text is None:
        return default if number is None else number
    try:
        span = parse_duration(text)
    except ValueError as error:
        raise invalid(field, str(error)) from None
    if span > DELAY_MS_MAX:
        raise invalid(field, "longer than a year")
    return span if number is None else number


def step_of(context: PlanContext, body: StepBody, field: str, bytes_max: int = BODY_BYTES_MAX) -> ChainStep:
    payload = bytes(body.payload)
    bytes_max = min(bytes_max, context.payload_bytes_max)
    if len(payload) > bytes_max:
        raise Refusal(
            "PAYLOAD_TOO_LARGE",
            f"{field}.payload: {len(payload)} bytes, at most {bytes_max} are accepted",
            field=f"{field}.payload",
        )
    check_numbers(payload, f"{field}.payload")
    return ChainStep(body.queue, payload)


def _dependency(context: PlanContext, job_id: str, field: str) -> str:
    try:
        context.shard_of_job(job_id)
    except Refusal as refusal:
        raise invalid(field, refusal.message) from None
    return job_id


def _chain(context: PlanContext, body: ChainBody, queue: str, chain_id: str, field: str) -> Chain:
    if body.steps[0].queue != queue:
        raise invalid(f"{field}.steps[0].queue", f"the first step is the job itself, which goes to {shown_name(queue)}")
    chain = Chain(
        id=chain_id,
        step=0,
        steps=tuple(step_of(context, step, f"{field}.steps[{number}]") for number, step in enumerate(body.steps)),
        on_failure=None if body.on_failure is None else step_of(context, body.on_failure, f"{field}.on_failure"),
        on_exit=None if body.on_exit is None else step_of(context, body.on_exit, f"{field}.on_exit"),
    )
    size = bytes_of(JobExtras(chain=chain))
    if size > CHAIN_BYTES_MAX:
        sentence = f"{field}: {size} bytes of payloads in its steps, at most {CHAIN_BYTES_MAX} are accepted in total"
        raise Refusal("PAYLOAD_TOO_LARGE", sentence, field=field)
    return chain
