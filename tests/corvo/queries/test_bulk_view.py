"""A bulk operation as clients see it: counts, rate, and the time that is left."""

import msgspec
import pytest

from corvo.model.job import Priority
from corvo.model.reach import Reach
from corvo.ops.bulk.cancel_bulk import CancelBulk
from corvo.queries.bulk import ListBulks, progress_of
from corvo.queries.bulk_view import FailureView, bulk_view
from corvo.rules.bulk import Action, Bulk, BulkCounts, BulkFailure, Order, Status
from tests.corvo.ops.bulk.records import begin, bulk_id
from tests.support.builders import NOW, SECOND
from tests.support.machine import Machine

RUNNING = Bulk(
    "bulk_1",
    Order(Action.RETRY),
    NOW,
    filter=b'{"queue":"mail"}',
    total=1_000,
    total_is_exact=True,
    status=Status.RUNNING,
    claimed_at=NOW + SECOND,
    claimed_processed=100,
    updated_at=NOW + 3 * SECOND,
    tally=BulkCounts(290, {"WRONG_STATE": 10}, [BulkFailure("j", "WRONG_STATE", "no")]),
)


def replaced(**fields: object) -> Bulk:
    return msgspec.structs.replace(RUNNING, **fields)


def test_rate_and_time_left_are_of_the_gateway_that_has_it_now() -> None:
    view = bulk_view(RUNNING)

    assert (view.processed, view.affected, view.errors) == (300, 290, 10)
    assert (view.rate, view.eta_s, view.percent) == (100.0, 7.0, 30.0)
    assert view.error_codes == {"WRONG_STATE": 10}
    assert view.error_samples == [FailureView("j", "WRONG_STATE", "no")]
    assert msgspec.json.decode(msgspec.json.encode(view))["filter"] == {"queue": "mail"}


@pytest.mark.parametrize(
    ("bulk", "rate", "eta_s", "percent"),
    [
        (replaced(claimed_at=0), None, None, 30.0),
        (replaced(updated_at=NOW + SECOND), None, None, 30.0),
        (replaced(total_is_exact=False), 100.0, None, None),
        (replaced(total=200), 100.0, 0.0, 100.0),
        (replaced(total=0), 100.0, 0.0, 100.0),
        (replaced(status=Status.COMPLETED, total_is_exact=False), 100.0, None, 100.0),
        (replaced(status=Status.CANCELLED), 100.0, None, 30.0),
    ],
)
def test_what_cannot_be_known_is_left_out(
    bulk: Bulk, rate: float | None, eta_s: float | None, percent: float | None
) -> None:
    view = bulk_view(bulk)

    assert (view.rate, view.eta_s, view.percent) == (rate, eta_s, percent)


def test_only_what_belongs_to_the_action_is_shown() -> None:
    moved = bulk_view(replaced(order=Order(Action.MOVE, "slow"), filter=b""))
    raised = bulk_view(replaced(order=Order(Action.CHANGE_PRIORITY, priority=Priority.HIGH)))

    assert (moved.action, moved.move_to_queue, moved.priority, moved.filter) == ("move", "slow", None, None)
    assert (raised.action, raised.move_to_queue, raised.priority) == ("change_priority", None, "high")


def test_a_listener_is_told_the_same_figures() -> None:
    told = progress_of(RUNNING, "progress")

    assert (told.type, told.task_id, told.status) == ("bulk.async.progress", "bulk_1", "running")
    assert (told.total, told.processed, told.affected, told.errors) == (1_000, 300, 290, 10)
    assert (told.percent, told.rate, told.eta_s, told.created_at_ns) == (30.0, 100.0, 7.0, NOW)


def test_a_list_has_the_operations_of_one_namespace_and_scope() -> None:
    machine = Machine()
    scoped, queue = Order(Action.RETRY, scope=("m*",)), Order(Action.RETRY, only_queue="acme|mail")
    machine.apply(
        begin(1),
        begin(2, ending="_acme"),
        begin(3, ending="_acme", order=scoped),
        begin(4, ending="_acme", order=queue),
        begin(5, ending="_beta", order=scoped),
        *(CancelBulk(f"{bulk_id(number)}{ending}") for number, ending in ((1, ""), (2, "_acme"), (3, "_acme"))),
    )

    def found(reach: Reach | None, ended_max: int = 9) -> list[int]:
        return sorted(int(bulk.id.split("_")[1], 16) for bulk in ListBulks(ended_max, reach).read(machine.tables))

    assert found(None) == [1, 2, 3, 4, 5]
    assert found(Reach()) == [1]
    assert found(Reach("acme")) == [2, 3, 4]
    assert found(Reach("acme"), ended_max=1) == [3, 4], "the newest of this namespace"
    assert found(Reach("acme", ("m*",))) == [3, 4]
    assert found(Reach("acme", ("m*", "s*"))) == [3, 4]
    assert found(Reach("acme", ("s*",))) == []
