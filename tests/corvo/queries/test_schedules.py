"""Reads of schedules: one by its id or name, all of them by name."""

import msgspec

from corvo.endpoint import Answer
from corvo.model.reach import Reach
from corvo.model.sharding import fnv32a
from corvo.queries import schedules as module
from corvo.queries.schedule_view import GetSchedule, in_full, in_list
from corvo.queries.schedules import ListSchedules
from tests.support.builders import NOW, an_asking
from tests.support.machine import Machine
from tests.support.schedules import create, some_terms, the_schedule

PLANS = {endpoint.name: endpoint.plan for endpoint in module.ENDPOINTS}


def test_one_is_asked_of_the_shard_of_its_name() -> None:
    machine = Machine()
    schedule = machine.one(create())
    plan = PLANS["get_schedule"]
    assert plan is not None

    planned = plan(an_asking(), None, "nightly")

    assert planned.calls == [(fnv32a("nightly") % 4, GetSchedule("nightly"))]
    answer = planned.conclude([GetSchedule("nightly").read(machine.tables)])
    assert isinstance(answer, Answer)
    assert msgspec.json.encode(answer.body) == msgspec.json.encode(in_full(schedule, NOW))


def test_all_are_asked_of_all_shards_and_sorted_by_name() -> None:
    one, other = Machine(), Machine()
    one.apply(create("c", 1), create("a", 2))
    other.apply(create("b", 3))
    plan = PLANS["schedules"]
    assert plan is not None

    planned = plan(an_asking(shard_count=2), None)

    assert planned.calls == [(0, ListSchedules(Reach())), (1, ListSchedules(Reach()))]
    answer = planned.conclude([ListSchedules().read(machine.tables) for machine in (one, other)])
    assert isinstance(answer, Answer)
    assert [view.name for view in answer.body] == ["a", "b", "c"]
    assert answer.body[1] == in_list(the_schedule(other, "b"), NOW)


def test_a_list_is_read_without_what_is_long_and_leaves_the_schedules_as_they_are() -> None:
    machine = Machine()
    machine.apply(create(tags=b'{"a":1}'))

    [short] = ListSchedules().read(machine.tables)

    assert short.terms == some_terms(payload=b"", tags=b"")
    assert the_schedule(machine).terms.tags == b'{"a":1}'


def test_a_list_has_the_schedules_of_one_namespace_and_scope() -> None:
    machine = Machine()
    machine.apply(
        create("nightly", 1, queue="mail"),
        create("acme|nightly", 2, queue="acme|mail"),
        create("acme|weekly", 3, queue="acme|reports"),
    )

    def names(reach: Reach | None) -> list[str]:
        return [one.name for one in ListSchedules(reach).read(machine.tables)]

    assert names(None) == names(Reach()) == ["nightly"]
    assert names(Reach("acme")) == ["acme|nightly", "acme|weekly"]
    assert names(Reach("acme", ("r*",))) == ["acme|weekly"]
    assert names(Reach("beta")) == []
