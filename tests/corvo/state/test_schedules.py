"""The schedules of a shard in memory: found by id and name, and the next one that is due known without a search."""

import pytest

from corvo.model.errors import Refusal
from corvo.model.timestamps import LATEST_NS
from corvo.state.schedules import Schedule, Schedules
from tests.support.builders import NOW, SECOND
from tests.support.schedules import schedule_id, some_terms


def a_schedule(number: int, next_at: int = NOW) -> Schedule:
    return Schedule(schedule_id(number), f"n{number}", some_terms(), NOW, NOW, NOW, next_at)


def test_a_schedule_is_found_by_id_and_by_name_until_it_is_dropped() -> None:
    schedules, one = Schedules(), a_schedule(1)
    schedules.keep(one)

    assert schedules.find(one.id) is schedules.find("n1") is schedules.require("n1") is one
    assert (len(schedules), schedules.all()) == (1, [one])
    schedules.drop(one)
    assert (len(schedules), schedules.find(one.id), schedules.find("n1")) == (0, None, None)
    with pytest.raises(Refusal) as refused:
        schedules.require("n1")
    assert refused.value.code == "SCHEDULE_NOT_FOUND"


def test_the_next_one_is_known_through_every_change() -> None:
    schedules = Schedules()
    assert schedules.next_at() == LATEST_NS
    early, late = a_schedule(1, NOW + SECOND), a_schedule(2, NOW + 2 * SECOND)
    for schedule in (late, early):
        schedules.keep(schedule)
    assert schedules.next_at() == NOW + SECOND
    early.next_at = NOW + 3 * SECOND
    schedules.keep(early)
    assert schedules.next_at() == NOW + 2 * SECOND
    late.is_paused = True
    schedules.keep(late)
    assert schedules.next_at() == NOW + 3 * SECOND
    schedules.drop(early)
    assert schedules.next_at() == LATEST_NS


def test_those_due_come_in_the_order_of_their_moments_and_paused_ones_not_at_all() -> None:
    schedules = Schedules()
    moments = {1: NOW + SECOND, 2: NOW, 3: NOW, 4: NOW + 2 * SECOND, 5: NOW}
    for number, moment in moments.items():
        schedules.keep(a_schedule(number, moment))
    paused = schedules.require("n5")
    paused.is_paused = True
    schedules.keep(paused)

    assert [schedule.name for schedule in schedules.due(NOW + SECOND)] == ["n2", "n3", "n1"]
    assert schedules.due(NOW - 1) == []
