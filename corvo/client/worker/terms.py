"""The terms of a job: what a task or a call says beside the payload. Pure.

A `TaskCall` is one job to be: a queue, a payload and its terms. It becomes the body of an enqueue, or a step.
"""

import hashlib
from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypedDict

import msgspec

from ..bodies import EnqueueBody, StepBody
from .arguments import to_json
from .outcomes import Duration, milliseconds

Unique = bool | str | Callable[..., str]


class Terms(TypedDict, total=False):
    """Keyword arguments of `app.task` and of `task.configure`."""

    priority: Literal["critical", "high", "normal"] | int
    max_retries: int  # attempts in total
    retry_backoff: Literal["none", "fixed", "linear", "exponential"]
    retry_base_delay: Duration
    retry_max_delay: Duration
    retry_jitter: float
    # True: one job with the same arguments at a time; text: a key, with arguments in braces; or a function of them
    unique: Unique
    unique_period: Duration
    unique_until: Literal["done", "period", "start"]
    idempotency_key: str
    expire_after: Duration
    tags: dict[str, Any]
    depends_on: list[str]
    on_dependency_failure: Literal["fail", "cancel", "run"]
    batch_id: str
    delay: Duration
    at: datetime


_DURATIONS = {"retry_base_delay", "retry_max_delay", "expire_after", "delay"}  # sent in milliseconds


class TaskCall(NamedTuple):
    """A job to be: `task.s(…)`."""

    queue: str
    payload: dict[str, Any]
    terms: Terms

    def body(self) -> EnqueueBody:
        fields: dict[str, Any] = {}
        for name, value in self.terms.items():
            if name in _DURATIONS:
                fields[f"{name}_ms"] = milliseconds(value)  # type: ignore[arg-type]  # a TypedDict forgets which is which
            elif name == "unique_period":
                fields[name] = max(1, round(milliseconds(value) / 1000))  # type: ignore[arg-type]
            elif name == "at":
                fields["scheduled_at"] = _moment(value)  # type: ignore[arg-type]
            elif name == "unique":
                if value:
                    fields["unique_key"] = unique_key(value, self.payload)  # type: ignore[arg-type]
            else:
                fields[name] = value
        return EnqueueBody(queue=self.queue, payload=msgspec.Raw(to_json(self.payload)), **fields)

    def step(self) -> StepBody:
        """As a later step of a chain, or a callback."""
        return StepBody(self.queue, msgspec.Raw(to_json(self.payload)))


def unique_key(rule: Unique, payload: dict[str, Any]) -> str:
    if callable(rule):
        return rule(**payload)
    if isinstance(rule, str):
        try:
            return rule.format_map(payload)
        except KeyError as error:
            raise ValueError(f"the unique key {rule!r} names {error}, which is not among the arguments") from None
    # Hashed: a key has at most 256 characters. Through JSON and back, so that the order of names does not count.
    plain = msgspec.json.encode(msgspec.json.decode(to_json(payload)), order="deterministic")
    return hashlib.sha256(plain).hexdigest()


def _moment(at: datetime) -> str:
    if at.tzinfo is None:
        raise ValueError(f"{at} has no time zone: give one, such as datetime.now(UTC)")
    return at.isoformat()
