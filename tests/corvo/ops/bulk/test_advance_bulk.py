"""AdvanceBulk: one slice counted once, the next one put down; the end, and how long it is remembered."""

import pytest

from corvo.model.limits import BULK_ERRORS_KEPT, BULKS_ENDED_KEPT, RETENTION_MS_DEFAULT
from corvo.rules.bulk import Status, find_ids
from tests.corvo.ops.bulk.records import (
    a_running_bulk,
    a_tally,
    advance,
    an_ended_bulk,
    begin,
    bulk_id,
    claim,
    listed,
    look,
)
from tests.support.builders import NOW, SECOND, job_id, ring
from tests.support.machine import Machine, nothing_changes

KEPT_NS = RETENTION_MS_DEFAULT * 1_000_000


def test_a_slice_is_put_down_before_it_is_done_and_counted_with_the_next() -> None:
    machine = a_running_bulk()

    assert machine.one(advance(1, "a", "b"), at=NOW + SECOND) is Status.RUNNING
    assert look(machine).tally.processed == 0
    assert machine.one(advance(2, "c", tally=a_tally(1, WRONG_STATE=1)), at=NOW + 2 * SECOND) is Status.RUNNING

    bulk = machine.one(claim(2, gateway=12))
    assert (bulk.slice, bulk.cursor, bulk.step, bulk.updated_at) == (["c"], "behind 2", 2, NOW + 2 * SECOND)
    assert (bulk.tally.affected, bulk.tally.errors) == (1, {"WRONG_STATE": 1})


def test_the_same_report_again_counts_nothing_twice() -> None:
    machine = a_running_bulk()
    machine.apply(advance(1, "a"), advance(2, "b", tally=a_tally(1)))

    with nothing_changes(machine):
        assert machine.one(advance(2, "b", tally=a_tally(1))) is Status.RUNNING
    machine.apply(advance(3, tally=a_tally(1), is_last=True))
    with nothing_changes(machine):
        assert machine.one(advance(3, tally=a_tally(1), is_last=True)) is Status.COMPLETED
    assert look(machine).tally.affected == 2


def test_a_report_of_one_that_was_succeeded_is_refused() -> None:
    machine = a_running_bulk()
    machine.apply(advance(1, "a"), claim(2, gateway=12))

    with nothing_changes(machine):
        assert machine.one(advance(2, "b", tally=a_tally(1))).code == "LEASE_LOST"
    assert machine.one(advance(2, "b", claim=2, tally=a_tally(1))) is Status.RUNNING


@pytest.mark.parametrize("step", [0, 2, 3])
def test_a_report_out_of_turn_is_refused(step: int) -> None:
    machine = a_running_bulk()
    machine.apply(advance(1, "a"))
    machine.apply(advance(2, "b"), advance(3, "c"), advance(4, "d"))

    with nothing_changes(machine):
        assert machine.one(advance(step, "x")).code == "LEASE_LOST"


def test_an_unknown_operation_is_refused() -> None:
    machine = Machine()

    assert machine.one(advance(1, "a")).code == "BULK_NOT_FOUND"


def test_an_empty_slice_is_no_end_while_more_may_follow() -> None:
    machine = a_running_bulk()

    assert machine.one(advance(1)) is Status.RUNNING
    assert machine.one(advance(2, "a", is_last=True)) is Status.RUNNING, "the last slice is yet to be done"
    assert machine.one(advance(3, tally=a_tally(1), is_last=True), at=NOW + SECOND) is Status.COMPLETED

    bulk = look(machine)
    assert (bulk.status, bulk.finished_at, bulk.slice) == (Status.COMPLETED, NOW + SECOND, [])


def test_one_that_cannot_go_on_fails_and_says_why() -> None:
    machine = a_running_bulk()
    machine.apply(advance(1, "a"))

    assert machine.one(advance(2, tally=a_tally(1), failure="no search")) is Status.FAILED

    bulk = look(machine)
    assert (bulk.failure, bulk.tally.affected) == ("no search", 1)
    assert machine.one(claim(2, gateway=12)) is None


def test_of_refused_jobs_all_are_counted_and_the_first_are_named() -> None:
    machine = a_running_bulk()
    for step in range(1, 4):
        machine.apply(advance(step, "a", tally=a_tally(0, WRONG_STATE=60)))

    tally = look(machine).tally
    assert tally.errors == {"WRONG_STATE": 180}
    assert len(tally.samples) == BULK_ERRORS_KEPT


def test_the_named_jobs_go_with_the_end() -> None:
    machine = Machine()
    machine.apply(begin(job_ids=(job_id(1),)), claim())
    assert find_ids(machine.tables, bulk_id())

    machine.apply(advance(1, is_last=True))

    assert find_ids(machine.tables, bulk_id()) == []


def test_one_that_has_ended_is_kept_for_seven_days() -> None:
    machine = an_ended_bulk()

    machine.apply(ring(), at=NOW + KEPT_NS - 1)
    assert listed(machine) == [bulk_id()]
    machine.apply(ring(), at=NOW + KEPT_NS)
    assert listed(machine) == []


def test_of_many_that_have_ended_the_newest_are_kept() -> None:
    machine = Machine()
    for number in range(BULKS_ENDED_KEPT + 3):
        machine.apply(begin(number), claim(number + 1), advance(1, number=number, claim=number + 1, is_last=True))
        machine.flush()

    kept = listed(machine)
    assert len(kept) == BULKS_ENDED_KEPT
    assert (kept[0], kept[-1]) == (bulk_id(BULKS_ENDED_KEPT + 2), bulk_id(3))
    for _ in range(3):  # one entry settles so many alarms
        machine.apply(ring(), at=NOW + KEPT_NS)
    assert listed(machine) == [], "an alarm of one that is gone already does no harm"
