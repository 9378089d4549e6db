"""CancelBulk: no further slice, and what was done is counted."""

import pytest

from corvo.model.errors import Refusal
from corvo.ops.bulk.cancel_bulk import ENDPOINTS, CancelBulk
from corvo.rules.bulk import Status
from tests.corvo.ops.bulk.records import a_running_bulk, a_tally, advance, an_ended_bulk, begin, bulk_id, claim, look
from tests.support.builders import an_asking
from tests.support.machine import Machine, nothing_changes

CANCEL = CancelBulk(bulk_id())


def test_one_that_nobody_has_claimed_ends_at_once() -> None:
    machine = Machine()
    machine.apply(begin())

    assert machine.one(CANCEL).status is Status.CANCELLED

    assert machine.one(claim()) is None
    assert look(machine).finished_at


def test_one_at_work_ends_when_its_slice_is_reported() -> None:
    machine = a_running_bulk()
    machine.apply(advance(1, "a", "b"))

    told = machine.one(CANCEL)
    assert (told.status, told.is_cancelling) == (Status.RUNNING, True)
    assert machine.one(advance(2, "c", tally=a_tally(2))) is Status.CANCELLED

    bulk = look(machine)
    assert (bulk.tally.affected, bulk.slice, bulk.status) == (2, [], Status.CANCELLED)


def test_one_whose_gateway_has_died_is_ended_by_its_successor() -> None:
    machine = a_running_bulk()
    machine.apply(advance(1, "a"), CANCEL)

    taken = machine.one(claim(2, gateway=12))

    assert (taken.slice, taken.is_cancelling) == (["a"], True)
    assert machine.one(advance(2, "b", claim=2, tally=a_tally(1))) is Status.CANCELLED


def test_one_that_was_done_before_it_could_stop_is_completed() -> None:
    machine = a_running_bulk()
    machine.apply(advance(1, "a", is_last=True), CANCEL)

    assert machine.one(advance(2, tally=a_tally(1), is_last=True)) is Status.COMPLETED


def test_to_cancel_again_changes_nothing() -> None:
    machine = a_running_bulk()
    machine.apply(CANCEL)

    with nothing_changes(machine):
        assert machine.one(CANCEL).is_cancelling
    machine.apply(advance(1, "a"))
    with nothing_changes(machine):
        assert machine.one(CANCEL).status is Status.CANCELLED


def test_what_is_over_cannot_be_cancelled() -> None:
    machine = an_ended_bulk()

    with nothing_changes(machine):
        refused = machine.one(CANCEL)

    assert (refused.code, refused.message) == ("WRONG_STATE", f"{bulk_id()} is already completed")


def test_an_unknown_one_is_refused_and_a_malformed_one_asks_nobody() -> None:
    [endpoint] = ENDPOINTS
    assert Machine().one(CANCEL).code == "BULK_NOT_FOUND"

    with pytest.raises(Refusal) as refused:
        endpoint.plan(an_asking(), None, "nonsense")

    assert refused.value.code == "BULK_NOT_FOUND"
