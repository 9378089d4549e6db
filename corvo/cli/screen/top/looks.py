"""What the server answered at one moment, and what two moments tell: rates."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from corvo.cli.screen.figures import per_second
from corvo.client.answers import (
    ClusterStatus,
    ErrorGroupsAnswer,
    JobView,
    QueueView,
    SearchAnswer,
    WhyView,
    WorkerView,
)

SAMPLES_MAX = 60  # of a sparkline


class Look(msgspec.Struct, frozen=True):
    """None stands where nothing was asked, or where the server refused; then `refusals` has its sentence by part."""

    taken_s: float  # monotonic
    now_ns: int  # since 1970, for ages
    status: ClusterStatus | None
    queues: list[QueueView] | None
    workers: list[WorkerView] | None
    jobs: SearchAnswer | None = None
    errors: ErrorGroupsAnswer | None = None
    job: JobView | None = None
    why: WhyView | None = None
    refusals: Mapping[str, str] = {}


class Rates(msgspec.Struct, frozen=True):
    """Per second, over all queues."""

    enqueued: float = 0.0
    completed: float = 0.0
    failed: float = 0.0


class Past(NamedTuple):
    """The newest look, the one before it, and the rates of those that were."""

    before: Look | None
    look: Look
    history: tuple[Rates, ...] = ()

    @property
    def span_s(self) -> float:
        return self.look.taken_s - self.before.taken_s if self.before else 0.0

    def then(self, look: Look) -> "Past":
        return Past(self.look, look, (*self.history, rates(self.look, look))[-SAMPLES_MAX:])

    @property
    def rates(self) -> Rates:
        return self.history[-1] if self.history else rates(None, self.look)


def rates(before: Look | None, after: Look) -> Rates:
    """The first look has no other to be compared with: it uses the server's own rates, of the last minute."""
    queues = after.queues or []
    if before is None or before.queues is None:
        return Rates(
            sum(queue.enqueued_per_s for queue in queues),
            sum(queue.completed_per_s for queue in queues),
            sum(queue.failed_per_s for queue in queues),
        )
    named = {queue.name: queue for queue in before.queues}
    span_s = after.taken_s - before.taken_s
    enqueued = completed = failed = 0.0
    for queue in queues:
        then = named.get(queue.name)  # a queue that is new in this look started at zero
        enqueued += per_second(then.enqueued if then else 0, queue.enqueued, span_s)
        completed += per_second(then.completed_total if then else 0, queue.completed_total, span_s)
        failed += per_second(then.failed if then else 0, queue.failed, span_s)
    return Rates(enqueued, completed, failed)
