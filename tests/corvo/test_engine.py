"""One entry of operations: results in order, refusals as results, everything else stops the replica."""

import pytest

from corvo.endpoint import Operation
from corvo.engine import apply_entry
from corvo.model.errors import Refused
from corvo.model.lifecycle import State
from corvo.state.kv import MemoryKV
from corvo.state.tables import Tables
from tests.support.builders import NOW, ack, cancel, enqueue, fetch
from tests.support.machine import Machine, nothing_changes


def test_results_come_in_the_order_of_the_operations() -> None:
    machine = Machine()

    born, claims, acked = machine.apply(enqueue(1), fetch(), ack(1))

    assert born == [State.PENDING]
    assert claims[0].lease_token == 1
    assert acked == [None]


def test_a_refusal_is_a_result_and_the_next_operation_goes_on() -> None:
    machine = Machine()

    refused, born = machine.apply(cancel(1), enqueue(1))

    assert isinstance(refused, Refused)
    assert (refused.code, refused.message) == ("JOB_NOT_FOUND", refused.message)
    assert born == [State.PENDING]


def test_an_entry_of_refusals_changes_nothing() -> None:
    machine = Machine()
    machine.apply(enqueue(1))

    with nothing_changes(machine):
        machine.apply(cancel(7), ack(7), cancel(8))


def test_an_empty_entry_moves_the_marker_only() -> None:
    tables = Tables(MemoryKV())

    results, changes = apply_entry(tables, 1, 3, NOW, [])

    assert (results, changes.writes, changes.woken) == ([], {}, set())
    assert (tables.applied.index, tables.applied.term, tables.applied.now) == (1, 3, NOW)


def test_what_is_no_refusal_is_not_caught() -> None:
    class Broken(Operation, tag=99_999):
        def apply(self, tables: Tables) -> None:
            raise KeyError("an invariant")

    with pytest.raises(KeyError):
        apply_entry(Tables(MemoryKV()), 1, 1, NOW, [Broken()])


def test_indexes_may_skip_because_raft_has_entries_of_its_own() -> None:
    tables = Tables(MemoryKV())

    apply_entry(tables, 1, 1, NOW, [])
    apply_entry(tables, 5, 1, NOW, [])

    assert tables.applied.index == 5
