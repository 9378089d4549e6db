"""Throttle: so many claims within any span of the window's length, exactly."""

from collections import deque

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.model.events import Event, EventKind
from corvo.ops.queues.set_throttle import ENDPOINTS, SetThrottle, ThrottleBody
from corvo.ops.upkeep.ring import Ring
from corvo.state import keys
from tests.corvo.ops.queues.events import told
from tests.support.builders import MS, NOW, SECOND, ack, an_asking, enqueue, fail, fetch, job_id, new_job, promote
from tests.support.machine import Machine, nothing_changes

PLAN = {endpoint.name: endpoint.plan for endpoint in ENDPOINTS}


def claims(machine: Machine, at: int, count: int = 99) -> int:
    return len(machine.one(fetch(claim=at, count=count), at=NOW + at))


def a_machine(jobs: int = 50, rate: int = 2, window_ms: int = 1_000) -> Machine:
    machine = Machine()
    machine.apply(enqueue(*range(1, jobs + 1)), SetThrottle("mail", rate, window_ms))
    return machine


def test_the_window_slides() -> None:
    machine = a_machine(rate=3)

    assert claims(machine, 0, count=1) == 1
    assert claims(machine, 400 * MS) == 2
    assert claims(machine, 999 * MS) == 0
    assert claims(machine, 1_000 * MS) == 1, "the first claim has left the window"
    assert claims(machine, 1_399 * MS) == 0
    assert claims(machine, 1_400 * MS) == 2


@given(
    rate=st.integers(1, 4),
    window_ms=st.integers(1_000, 5_000),
    steps=st.lists(st.tuples(st.integers(0, 2_000), st.integers(1, 5), st.booleans()), max_size=40),
)
def test_every_fetch_gets_exactly_what_a_list_of_all_claims_allows(
    rate: int, window_ms: int, steps: list[tuple[int, int, bool]]
) -> None:
    machine = a_machine(jobs=250, rate=rate, window_ms=window_ms)
    past: deque[int] = deque()
    at = 0
    for pause_ms, count, is_restarted in steps:
        at += pause_ms * MS
        if is_restarted:
            machine.flush()
            machine.restart()
        inside = sum(moment > at - window_ms * MS for moment in past)
        got = claims(machine, at, count)
        assert got == min(count, rate - inside)
        past.extend([at] * got)
        assert len(list(machine.tables.overlay.scan(keys.CLAIMS, keys.prefix_end(keys.CLAIMS)))) <= rate
    machine.check()


def test_when_the_window_is_full_an_alarm_opens_it_to_the_nanosecond() -> None:
    machine = a_machine()
    assert claims(machine, 7) == 2

    assert machine.tables.alarms.look_ahead(NOW + 8) == NOW + 7 + SECOND
    machine.one(Ring(), at=NOW + 7 + SECOND)
    assert machine.changes.woken == {"mail"}
    assert claims(machine, 7 + SECOND) == 2


def test_a_window_that_is_not_full_needs_no_alarm() -> None:
    machine = a_machine()
    assert claims(machine, 0, count=1) == 1

    assert not [key for key, _ in machine._scan(keys.ALARMS) if b"rmail" in key]


def test_a_second_attempt_counts_too() -> None:
    machine = Machine()
    machine.apply(enqueue(1, base_delay_ms=10), SetThrottle("mail", 1, 1_000), fetch(), fail(1))
    machine.one(promote(), at=NOW + 100 * MS)

    assert claims(machine, 200 * MS) == 0
    assert claims(machine, SECOND) == 1


def test_a_throttled_queue_does_not_keep_the_next_one_waiting() -> None:
    machine = Machine()
    machine.apply(enqueue(new_job(1, queue="a"), new_job(2, queue="a"), new_job(3, queue="b")))
    machine.apply(SetThrottle("a", 1, 1_000))

    assert [claim.job_id for claim in machine.one(fetch("a", "b", count=3))] == [job_id(1), job_id(3)]


def test_a_lower_rate_waits_until_the_window_has_room_and_a_higher_one_wakes() -> None:
    machine = a_machine(rate=4)
    assert claims(machine, 0, count=2) == 2
    assert claims(machine, 500 * MS, count=2) == 2
    machine.apply(SetThrottle("mail", 2, 1_000))

    assert claims(machine, 1_000 * MS) == 0, "two of the last second are as many as allowed"
    assert claims(machine, 1_500 * MS) == 2
    machine.apply(SetThrottle("mail", 5, 1_000))
    assert machine.changes.woken == {"mail"}
    assert claims(machine, 1_500 * MS) == 3


def test_a_lower_rate_on_a_full_window_sets_its_own_alarm() -> None:
    machine = a_machine(rate=3, window_ms=5_000)
    assert claims(machine, 0, count=2) == 2
    machine.apply(SetThrottle("mail", 1, 2_000), at=NOW + SECOND)

    assert machine.tables.alarms.look_ahead(NOW + SECOND) == NOW + 2 * SECOND
    assert claims(machine, 2 * SECOND) == 1


def test_a_removed_throttle_leaves_nothing_behind_and_wakes() -> None:
    machine = a_machine()
    assert claims(machine, 0) == 2
    machine.apply(SetThrottle("mail", 0, 0))

    assert machine.changes.woken == {"mail"}
    assert machine.queue().controls is None
    assert list(machine._scan(keys.CLAIMS)) == []
    assert claims(machine, 1) == 48


def test_a_day_is_a_window_like_any_other() -> None:
    day = 24 * 3600 * SECOND
    machine = a_machine(rate=2, window_ms=day // MS)

    assert claims(machine, 0, count=1) == 1
    assert claims(machine, day // 2) == 1
    assert claims(machine, day - 1) == 0
    assert claims(machine, day) == 1


def test_it_is_told_once() -> None:
    machine = Machine()
    machine.apply(SetThrottle("mail", 2, 1_000))
    with nothing_changes(machine):
        machine.apply(SetThrottle("mail", 2, 1_000))

    assert told(machine) == [Event(EventKind.QUEUE_CHANGED, "", "mail", b'{"rate_limit":2,"rate_window_ms":1000}')]


def test_the_throttle_of_an_unknown_queue_cannot_be_removed() -> None:
    machine = Machine()

    with nothing_changes(machine):
        assert machine.one(SetThrottle("mial", 0, 0)).code == "QUEUE_NOT_FOUND"


def test_a_claim_that_ends_at_once_still_counts() -> None:
    machine = a_machine(rate=1)
    assert claims(machine, 0) == 1
    machine.apply(ack(1))

    assert claims(machine, 1) == 0


@pytest.mark.parametrize(
    ("name", "body", "operation"),
    [
        ("set_throttle", ThrottleBody(rate=5, window_ms=60_000), SetThrottle("mail", 5, 60_000)),
        ("remove_throttle", None, SetThrottle("mail", 0, 0)),
    ],
)
def test_both_routes_ask_the_same(name: str, body: ThrottleBody | None, operation: SetThrottle) -> None:
    plan = PLAN[name](an_asking(), body, "mail")  # type: ignore[misc]

    assert [ask for _, ask in plan.calls] == [operation]
    assert msgspec.to_builtins(plan.conclude([None]).body) == {"status": "ok"}


@pytest.mark.parametrize("raw", [b'{"rate":0,"window_ms":1000}', b'{"rate":1,"window_ms":999}', b'{"window_ms":1000}'])
def test_what_is_no_throttle_is_refused(raw: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(raw, type=ThrottleBody)
