"""BeginBulk: an operation is put down once; and what a request for a bulk action may say."""

from typing import Any

import msgspec
import pytest

from corvo.model.errors import Refusal
from corvo.model.job import Priority
from corvo.model.lifecycle import State
from corvo.model.limits import BULKS_OPEN_MAX, BULKS_OPEN_OF_TENANT_MAX, CANCEL_GRACE_MS_DEFAULT
from corvo.ops import ENDPOINTS
from corvo.ops.bulk.begin_bulk import ACCESS, BulkBody, check_matching, order_of
from corvo.queries.bulk import GetBulkJobs
from corvo.rules.bulk import Action, Order, Status
from tests.corvo.ops.bulk.records import begin, bulk_id, claim, listed, look
from tests.support.builders import NOW, an_asking, job_id
from tests.support.machine import Machine, nothing_changes

IDS = tuple(job_id(number) for number in range(5))


def body(**fields: Any) -> BulkBody:
    return msgspec.convert({"action": "retry", "filter": {"queue": "mail"}, **fields}, BulkBody)


def test_an_operation_is_queued_with_what_was_asked() -> None:
    machine = Machine()

    assert machine.one(begin(total=12)) is None

    bulk = look(machine)
    assert (bulk.id, bulk.status, bulk.total, bulk.total_is_exact) == (bulk_id(), Status.QUEUED, 12, True)
    assert (bulk.created_at, bulk.updated_at, bulk.filter) == (NOW, NOW, b'{"queue":"mail"}')


def test_the_same_request_again_changes_nothing_not_even_when_it_is_under_way() -> None:
    machine = Machine()
    machine.apply(begin(), claim())

    with nothing_changes(machine):
        assert machine.one(begin()) is None


def test_named_jobs_are_kept_beside_the_record_and_read_in_parts() -> None:
    machine = Machine()
    machine.apply(begin(job_ids=IDS))

    assert GetBulkJobs(bulk_id(), 0, 3).read(machine.tables) == list(IDS[:3])
    assert GetBulkJobs(bulk_id(), 3, 3).read(machine.tables) == list(IDS[3:])
    assert GetBulkJobs(bulk_id(), 5, 3).read(machine.tables) == []
    assert GetBulkJobs(bulk_id(2), 0, 3).read(machine.tables) == []


def test_so_many_may_be_open_and_no_more() -> None:
    machine = Machine()
    machine.apply(*(begin(number) for number in range(BULKS_OPEN_MAX)))

    with nothing_changes(machine):
        refused = machine.one(begin(BULKS_OPEN_MAX))

    assert (refused.code, refused.retry_after_ms) == ("OVERLOADED", 5_000)
    assert len(listed(machine)) == BULKS_OPEN_MAX


@pytest.mark.parametrize(
    ("fields", "order"),
    [
        ({"action": "delete"}, Order(Action.DELETE, only_queue="mail")),
        ({"action": "move", "move_to_queue": "slow"}, Order(Action.MOVE, "slow", only_queue="mail")),
        (
            {"action": "change_priority", "priority": "high"},
            Order(Action.CHANGE_PRIORITY, None, Priority.HIGH, only_queue="mail"),
        ),
        ({"action": "hold", "reason": "why"}, Order(Action.HOLD, reason="why", only_queue="mail")),
        ({"action": "cancel"}, Order(Action.CANCEL, grace_ms=CANCEL_GRACE_MS_DEFAULT, only_queue="mail")),
        ({"action": "cancel", "grace": "5s"}, Order(Action.CANCEL, grace_ms=5_000, only_queue="mail")),
        ({"filter": {"state": ["dead", "held"]}}, Order(Action.RETRY, only_states=(State.DEAD, State.HELD))),
        ({"filter": None, "job_ids": [job_id(1)]}, Order(Action.RETRY)),
    ],
)
def test_a_request_becomes_an_order(fields: dict[str, Any], order: Order) -> None:
    check_matching(an_asking(), body(**fields))

    assert order_of(body(**fields)) == order


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"action": "move"}, "move_to_queue"),
        ({"action": "change_priority"}, "priority"),
        ({"action": "delete", "move_to_queue": "slow"}, "move_to_queue"),
        ({"action": "hold", "priority": "high"}, "priority"),
        ({"action": "retry", "reason": "why"}, "reason"),
        ({"action": "retry", "grace": 0}, "grace"),
        ({"action": "cancel", "grace": "soon"}, "grace"),
        ({"filter": None}, "filter"),
        ({"job_ids": [job_id(1)]}, "filter"),
        ({"filter": {}}, "filter"),
        ({"filter": None, "job_ids": [job_id(1), "nonsense"]}, "job_ids[1]"),
        ({"filter": None, "job_ids": [job_id(1, shard=9)]}, "job_ids[0]"),
        ({"filter": {"queue": "mail", "limit": 5}}, "filter.limit"),
        ({"filter": {"queue": "mail", "cursor": "x"}}, "filter.cursor"),
        ({"filter": {"queue": "mail", "order": "asc"}}, "filter.order"),
        ({"filter": {"queue": "mail", "consistent": True}}, "filter.consistent"),
    ],
)
def test_what_does_not_belong_together_is_refused_with_the_field(fields: dict[str, Any], field: str) -> None:
    wrong = body(**fields)

    with pytest.raises(Refusal) as refused:
        order_of(wrong)
        check_matching(an_asking(), wrong)

    assert (refused.value.code, refused.value.field) == ("VALIDATION_ERROR", field)


def test_a_tenant_cannot_use_up_what_all_share() -> None:
    machine = Machine()
    machine.apply(*(begin(number, ending="_acme") for number in range(BULKS_OPEN_OF_TENANT_MAX)))

    with nothing_changes(machine):
        refused = machine.one(begin(99, ending="_acme"))
    others = machine.apply(begin(99, ending="_beta"), begin(99))

    assert refused.code == "OVERLOADED"
    assert others == [None, None]


def test_a_bulk_action_needs_the_permission_of_the_single_action() -> None:
    alone = {endpoint.name: endpoint.access for endpoint in ENDPOINTS}
    named = {"delete": "delete_job"}

    assert {action.name: ACCESS[action] for action in Action} == {
        action.name: alone[named.get(action.name.lower(), action.name.lower())] for action in Action
    }


def test_the_scope_of_the_key_is_in_the_order() -> None:
    assert order_of(body(), ("mail.*",)).scope == ("mail.*",)
