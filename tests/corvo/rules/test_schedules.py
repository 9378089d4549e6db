"""Which slots fire: the three policies after a long gap, days on which clocks change, slices, unreadable zones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.model import cron
from corvo.model.limits import SCHEDULE_AHEAD_NS_MAX, UPKEEP_JOBS_PER_ENTRY
from corvo.model.timestamps import LATEST_NS, parse_rfc3339
from corvo.ops.schedules.fire_schedules import FireSchedules
from corvo.rules import schedules
from corvo.rules.schedules import FIRED_BYTES_MAX, ON_TIME_NS, UNREADABLE_PAUSE_NS, due
from corvo.state.schedules import CatchUp
from tests.support.builders import NOW, SECOND
from tests.support.machine import Machine
from tests.support.schedules import create, look, slots_of, the_schedule

MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


def test_nothing_is_proposed_before_a_slot_and_one_firing_at_it() -> None:
    machine = Machine()
    machine.apply(create())
    look(machine, NOW)

    assert due(machine.tables, NOW + MINUTE - 1) == []
    [firing] = due(machine.tables, NOW + MINUTE)
    assert (firing.slots, firing.settled_to, firing.next_at) == ([NOW + MINUTE], NOW + MINUTE, NOW + 2 * MINUTE)


@pytest.mark.parametrize(
    ("policy", "cap", "slots"),
    [
        (CatchUp.SKIP, 100, []),
        (CatchUp.LAST, 100, ["08:00"]),
        (CatchUp.ALL, 100, [f"0{hour}:00" for hour in range(1, 9)]),
        (CatchUp.ALL, 3, ["06:00", "07:00", "08:00"]),
    ],
    ids=["skip", "last", "all", "all with a cap"],
)
def test_after_a_long_gap_the_policy_decides(policy: CatchUp, cap: int, slots: list[str]) -> None:
    machine = Machine()
    machine.apply(create(cron="@hourly", catch_up=policy, catch_up_max=cap))
    look(machine, NOW)

    look(machine, NOW + 8 * HOUR + 10 * MINUTE)

    assert [slot[11:16] for slot in slots_of(machine.jobs())] == slots
    assert the_schedule(machine).next_at == NOW + 9 * HOUR
    assert look(machine, NOW + 9 * HOUR) == 1, "and from there on it goes on as ever"


@pytest.mark.parametrize(("late", "fired"), [(0, 1), (ON_TIME_NS, 1), (ON_TIME_NS + 1, 0)])
def test_a_slot_that_is_a_little_late_was_not_missed(late: int, fired: int) -> None:
    machine = Machine()
    machine.apply(create(cron="@hourly", catch_up=CatchUp.SKIP))
    look(machine, NOW)

    assert look(machine, NOW + HOUR + late) == fired


@pytest.mark.parametrize("policy", CatchUp)
def test_a_year_of_seconds_that_were_missed_is_settled_at_once(policy: CatchUp) -> None:
    machine = Machine()
    machine.apply(create(cron="* * * * * *", catch_up=policy, catch_up_max=1000))
    look(machine, NOW)

    assert look(machine, NOW + 365 * 24 * HOUR) == {"SKIP": 1, "LAST": 1, "ALL": 1000}[policy.name]


def test_a_catch_up_is_proposed_in_slices_and_stops_at_its_cap() -> None:
    machine = Machine()
    machine.apply(create(catch_up=CatchUp.ALL, catch_up_max=1000))
    look(machine, NOW)
    later = NOW + 3_000 * MINUTE

    [slice_] = due(machine.tables, later)
    assert slice_.slots == [NOW + minute * MINUTE for minute in range(2_001, 2_001 + UPKEEP_JOBS_PER_ENTRY)]
    assert slice_.next_at <= later, "the rest is due at once"
    assert look(machine, later) == 1000


def test_large_payloads_make_small_slices_and_always_some_progress() -> None:
    machine = Machine()
    size = FIRED_BYTES_MAX // 4
    for number in range(3):
        machine.apply(create(f"n{number}", number, payload=b'"%b"' % (b"x" * size), catch_up=CatchUp.ALL))
    look(machine, NOW)

    firings = due(machine.tables, NOW + 10 * MINUTE)

    assert [len(firing.slots) for firing in firings] == [3]
    assert look(machine, NOW + 10 * MINUTE) == 30


def test_many_schedules_due_at_once_are_proposed_in_slices() -> None:
    machine = Machine()
    machine.apply(*(create(f"n{number}", number) for number in range(UPKEEP_JOBS_PER_ENTRY + 10)))
    look(machine, NOW)

    assert len(due(machine.tables, NOW + MINUTE)) == UPKEEP_JOBS_PER_ENTRY
    assert look(machine, NOW + MINUTE) == UPKEEP_JOBS_PER_ENTRY + 10


@pytest.mark.parametrize(
    ("midnight", "expression", "expected"),
    [
        # On 29 March 2026 the clocks of Berlin go from 02:00 to 03:00, on 25 October from 03:00 to 02:00.
        ("2026-03-29T00:00:00+01:00", "30 2 * * *", ["01:00"]),
        ("2026-03-29T00:00:00+01:00", "30 */2 * * *", ["23:30", "01:00", "02:30"]),
        ("2026-10-25T00:00:00+02:00", "30 2 * * *", ["00:30"]),
        ("2026-10-25T00:00:00+02:00", "30 * * * *", ["22:30", "23:30", "00:30", "01:30", "02:30"]),
    ],
    ids=["skipped, fixed hour", "skipped, every so often", "repeated, fixed hour", "repeated, every so often"],
)
def test_on_the_day_on_which_clocks_change(midnight: str, expression: str, expected: list[str]) -> None:
    machine = Machine()
    machine.now = start = parse_rfc3339(midnight)
    machine.apply(create(cron=expression, timezone="Europe/Berlin", catch_up=CatchUp.ALL))

    for minute in range(0, 5 * 60 + 1, 5):
        look(machine, start + minute * MINUTE)

    assert [slot[11:16] for slot in slots_of(machine.jobs())] == expected, "in UTC"


def test_what_this_leader_cannot_read_waits_for_one_that_can(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    machine.apply(create(timezone="Mars/Base", catch_up=CatchUp.ALL), create("good", 2))
    look(machine, NOW)

    assert look(machine, NOW + 3 * MINUTE) == 1, "the others are not held up"
    assert the_schedule(machine).next_at == NOW + 3 * MINUTE + UNREADABLE_PAUSE_NS
    zoned = cron.slots_between
    monkeypatch.setattr(schedules, "slots_between", lambda rule, zone, *rest: zoned(rule, "UTC", *rest))
    monkeypatch.setattr(schedules, "next_slot", lambda rule, zone, after: cron.next_slot(rule, "UTC", after))
    machine.tables.schedules.require("good").is_paused = True
    assert look(machine, NOW + 5 * MINUTE) == 5, "and nothing was settled meanwhile"


def test_a_schedule_without_a_slot_in_sight_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    machine.apply(create())
    monkeypatch.setattr(schedules, "next_slot", lambda *_: None)

    look(machine, NOW)

    assert the_schedule(machine).next_at == NOW + SCHEDULE_AHEAD_NS_MAX


def test_without_schedules_nothing_is_ever_due() -> None:
    machine = Machine()

    assert (machine.tables.schedules.next_at(), due(machine.tables, LATEST_NS - 1)) == (LATEST_NS, [])


EXPRESSIONS = ("* * * * *", "*/7 * * * *", "0 * * * *", "@every 90s", "30 2 * * *")


@given(
    st.sampled_from(EXPRESSIONS),
    st.lists(st.tuples(st.integers(-400, 4_000), st.sampled_from(("look", "twice", "restart", "flush"))), max_size=12),
)
def test_whatever_the_clock_does_every_slot_fires_exactly_once(expression: str, steps: list[tuple[int, str]]) -> None:
    machine = Machine()
    machine.apply(create(cron=expression, catch_up=CatchUp.ALL, catch_up_max=1000))
    wall = latest = NOW
    for seconds, step in steps:
        wall = max(wall + seconds * SECOND, NOW)
        latest = max(latest, wall)
        if step == "twice":
            firings = due(machine.tables, wall)
            machine.apply(FireSchedules(firings), FireSchedules(firings), at=wall)
        elif step == "restart":
            machine.restart()
        elif step == "flush":
            machine.flush()
        look(machine, wall)

    expected = cron.slots_between(expression, "UTC", NOW, latest, 10_000)
    fired = [parse_rfc3339(f"{slot}Z") for slot in slots_of(machine.jobs())]
    assert fired == expected
    assert the_schedule(machine).fired == len(expected)
    machine.check()
