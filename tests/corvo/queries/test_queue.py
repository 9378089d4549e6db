"""One queue as its shard knows it."""

import msgspec
import pytest

from corvo.endpoint import Operation
from corvo.model.errors import Refusal
from corvo.model.job import Priority
from corvo.model.lifecycle import STATE_NAMES
from corvo.model.limits import RETENTION_MS_DEFAULT
from corvo.model.sharding import shard_of_queue
from corvo.model.timestamps import to_rfc3339
from corvo.ops.queues.drain_queue import DrainQueue
from corvo.ops.queues.pause_queue import PauseQueue
from corvo.ops.queues.set_concurrency import SetConcurrency
from corvo.ops.queues.set_retention import SetRetention
from corvo.ops.queues.set_throttle import SetThrottle
from corvo.queries.queue import ENDPOINTS, GetQueue, QueueDetail, queue_detail
from tests.support.builders import NOW, SECOND, ack, an_asking, enqueue, fetch, new_job
from tests.support.machine import Machine


def seen(machine: Machine, at: int = NOW) -> QueueDetail:
    return queue_detail(GetQueue("mail", at).read(machine.tables), at)


def test_a_queue_shows_a_count_for_every_state_and_what_is_left() -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2, 3), fetch(count=2), ack(1), enqueue(4, scheduled_at=NOW + SECOND))

    detail = seen(machine)

    assert set(STATE_NAMES) <= set(QueueDetail.__struct_fields__)
    assert (detail.pending, detail.active, detail.completed, detail.scheduled) == (1, 1, 1, 1)
    assert (detail.left, detail.enqueued, detail.completed_total) == (3, 4, 1)
    assert (detail.status, detail.rate_limit, detail.rate_room, detail.max_concurrency) == ("active", None, None, None)
    assert detail.created_at == to_rfc3339(NOW)


@pytest.mark.parametrize(
    ("operations", "status"),
    [
        ([], "active"),
        ([PauseQueue("mail")], "paused"),
        ([DrainQueue("mail")], "draining"),
        ([DrainQueue("mail"), ack(1)], "drained"),
        ([SetConcurrency("mail", 1)], "active"),
    ],
)
def test_the_status_says_whether_jobs_are_given_out(operations: list[Operation], status: str) -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2), fetch(), *operations)

    detail = seen(machine)

    assert detail.status == status
    assert (detail.paused, detail.draining) == (status == "paused", status in ("draining", "drained"))


def test_limits_and_the_room_that_they_leave_are_shown() -> None:
    machine = Machine()
    machine.apply(
        enqueue(1, 2, 3),
        SetConcurrency("mail", 5),
        SetThrottle("mail", 2, 1_000),
        SetRetention("mail", (5_000, 0, -1)),
        fetch(count=1),
    )

    detail = seen(machine)
    assert (detail.max_concurrency, detail.rate_limit, detail.rate_window_ms) == (5, 2, 1_000)
    assert (detail.rate_room, detail.rate_room_at) == (1, None)
    assert msgspec.to_builtins(detail.retention) == {
        "completed_ms": 5_000,
        "dead_ms": None,
        "cancelled_ms": RETENTION_MS_DEFAULT,
    }

    machine.apply(fetch(claim=2))
    assert (seen(machine).rate_room, seen(machine).rate_room_at) == (0, to_rfc3339(NOW + SECOND))
    assert seen(machine, NOW + SECOND).rate_room == 2, "the asker's clock counts, the shard may have been idle"


def test_the_age_is_that_of_the_job_that_has_waited_longest_in_any_line() -> None:
    machine = Machine()
    assert machine.apply(PauseQueue("mail"), at=NOW)
    assert seen(machine).oldest_pending_at is None and seen(machine).oldest_pending_age_ms is None

    machine.apply(enqueue(new_job(1)), at=NOW + SECOND)
    machine.apply(enqueue(new_job(2, priority=Priority.CRITICAL)), at=NOW + 2 * SECOND)
    assert seen(machine, NOW + 5 * SECOND).oldest_pending_at == to_rfc3339(NOW + SECOND)
    assert seen(machine, NOW + 5 * SECOND).oldest_pending_age_ms == 4_000
    assert seen(machine, NOW).oldest_pending_age_ms == 0, "clocks differ; an age is never negative"


def test_an_unknown_queue_is_refused() -> None:
    with pytest.raises(Refusal) as refused:
        GetQueue("mial", NOW).read(Machine().tables)

    assert refused.value.code == "QUEUE_NOT_FOUND"


def test_the_queues_shard_is_asked() -> None:
    [endpoint] = ENDPOINTS
    assert endpoint.plan is not None
    plan = endpoint.plan(an_asking(4), None, "a/b")

    assert plan.calls == [(shard_of_queue("a/b", 4), GetQueue("a/b", NOW))]
    machine = Machine()
    machine.apply(enqueue(1, queue="a/b"))
    assert plan.conclude([GetQueue("a/b", NOW).read(machine.tables)]).body.name == "a/b"
