"""KeepWorkers: the span for silent workers is part of the state, so every replica removes the same workers."""

from corvo.model.limits import WORKER_TIMEOUT_MS_DEFAULT
from corvo.ops.upkeep.keep_workers import KeepWorkers
from corvo.ops.upkeep.ring import Ring
from tests.support.builders import MS, NOW, enqueue, fetch
from tests.support.machine import Machine

MINUTE_MS = 60_000


def test_it_is_kept_and_there_after_a_restart() -> None:
    machine = Machine()
    assert machine.tables.worker_timeout_ms == WORKER_TIMEOUT_MS_DEFAULT

    assert machine.apply(KeepWorkers(MINUTE_MS), KeepWorkers(MINUTE_MS)) == [True, False]
    machine.flush()
    machine.restart()

    assert machine.tables.worker_timeout_ms == MINUTE_MS


def test_a_worker_that_is_silent_for_longer_is_removed() -> None:
    machine = Machine()
    machine.apply(KeepWorkers(MINUTE_MS), enqueue(1), fetch())

    machine.one(Ring(), at=NOW + MINUTE_MS * MS - 1)
    assert machine.tables.find_worker("w1") is not None
    machine.one(Ring(), at=NOW + MINUTE_MS * MS)
    assert machine.tables.find_worker("w1") is None


def test_a_worker_that_was_known_before_is_kept_as_long_as_the_new_span_says() -> None:
    machine = Machine()
    machine.apply(enqueue(1), fetch())
    machine.apply(KeepWorkers(2 * WORKER_TIMEOUT_MS_DEFAULT))

    machine.one(Ring(), at=NOW + WORKER_TIMEOUT_MS_DEFAULT * MS)
    assert machine.tables.find_worker("w1") is not None
    machine.one(Ring(), at=NOW + 2 * WORKER_TIMEOUT_MS_DEFAULT * MS)
    assert machine.tables.find_worker("w1") is None
