"""The same log gives the same bytes, wherever it was flushed, interrupted or taken up again."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.model.errors import Corrupt
from corvo.state import pending, tables
from tests.support.builders import NOW, ack, enqueue, fetch
from tests.support.machine import Machine, told
from tests.support.strategies import logs


@pytest.fixture(autouse=True, scope="module")
def tiny_caches() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pending, "WINDOW_JOBS", 2)
        patch.setattr(pending, "WINDOWS_KEPT", 1)
        patch.setattr(tables, "JOBS_CACHED", 2)
        patch.setattr(tables, "WORKERS_CACHED", 1)
        yield


def original(log: list) -> tuple[Machine, list]:
    machine, at, results = Machine(), NOW, []
    for step_ns, operations in log:
        at += step_ns
        results.append(machine.apply(*operations, at=at))
    return machine, results


@given(logs, st.lists(st.booleans(), min_size=25, max_size=25), st.sets(st.integers(1, 25)))
def test_any_flushes_and_any_crashes_give_byte_equal_state(log: list, flushes: list[bool], crashes: set[int]) -> None:
    first, _ = original(log)

    replica = Machine()
    for count in range(1, len(first.log) + 1):
        replica.follow(first.log[:count])
        if flushes[count - 1]:
            replica.flush()
        if count in crashes:
            replica.restart()

    assert replica.state() == first.state()
    replica.flush()
    assert replica.tables.overlay.changes == {}
    assert replica.state() == first.state(), "what is on disk is what was seen before"


@given(logs, st.integers(0, 25))
def test_a_log_that_is_applied_twice_changes_nothing_the_second_time(log: list, flushed: int) -> None:
    first, _ = original(log)
    replica = Machine()
    replica.follow(first.log[:flushed])
    replica.flush()

    replica.restart()
    replica.follow(first.log)
    once = replica.state()
    replica.follow(first.log)

    assert replica.state() == once == first.state()


@given(logs)
def test_operations_agree_whether_they_share_an_entry_or_have_one_each(log: list) -> None:
    together, results = original(log)

    alone, at, each = Machine(), NOW, []
    for step_ns, operations in log:
        at += step_ns
        each.append([alone.one(operation, at=at) for operation in operations])

    assert each == results
    assert told(alone.records()) == told(together.records())
    assert alone.tables.applied.position == together.tables.applied.position
    assert alone.tables.now == together.tables.now


def test_an_entry_that_was_applied_is_refused_as_corruption_and_nothing_changes() -> None:
    machine = Machine()
    machine.apply(enqueue(1))
    before = machine.state()

    with pytest.raises(Corrupt, match="applied already"):
        machine.replay(machine.log[0], 1)

    assert machine.state() == before


def test_what_was_not_flushed_is_gone_after_a_crash_until_the_log_brings_it_back() -> None:
    machine = Machine()
    machine.apply(enqueue(1))
    machine.flush()
    machine.apply(fetch(), ack(1))
    before = machine.state()

    log, machine.log = machine.log, machine.log[:1]
    machine.restart()
    assert machine.state() != before
    machine.follow(log)

    assert machine.state() == before
