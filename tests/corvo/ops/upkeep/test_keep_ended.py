"""KeepEnded: the span for ended jobs is part of the state, so every replica deletes the same jobs."""

import pytest

from corvo.model.limits import RETENTION_MS_DEFAULT
from corvo.ops.upkeep.keep_ended import KeepEnded
from corvo.ops.upkeep.ring import Ring
from corvo.queries.queue import GetQueue, queue_detail
from tests.support.builders import MS, NOW, ack, enqueue, fetch, job_id
from tests.support.machine import Machine

HOUR_MS = 3_600_000


def test_it_is_kept_and_replaced_and_there_after_a_restart() -> None:
    machine = Machine()
    assert machine.tables.default_retention_ms == RETENTION_MS_DEFAULT

    assert machine.apply(KeepEnded(HOUR_MS), KeepEnded(HOUR_MS)) == [True, False]
    machine.flush()
    machine.restart()

    assert machine.tables.default_retention_ms == HOUR_MS


@pytest.mark.parametrize(("span_ms", "is_gone"), [(HOUR_MS, True), (2 * HOUR_MS, False), (0, False)])
def test_jobs_that_end_afterwards_are_deleted_when_it_is_over(span_ms: int, is_gone: bool) -> None:
    machine = Machine()
    machine.apply(KeepEnded(span_ms))
    machine.apply(enqueue(1), fetch(), ack(1))

    machine.one(Ring(), at=NOW + HOUR_MS * MS)

    assert (machine.tables.find_job(job_id(1)) is None) is is_gone


def test_a_queue_shows_what_counts_for_it() -> None:
    machine = Machine()
    machine.apply(KeepEnded(HOUR_MS))
    machine.apply(enqueue(1))

    def shown() -> int | None:
        return queue_detail(GetQueue("mail", NOW).read(machine.tables), NOW).retention.dead_ms

    assert shown() == HOUR_MS
    machine.apply(KeepEnded(0))
    assert shown() is None
