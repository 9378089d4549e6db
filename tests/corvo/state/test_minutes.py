"""What happened minute by minute: the machine's account against a naive one, across crashes."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from corvo.model.job import Minute, decode_minute, new_queue
from corvo.ops.queues.delete_queue import DeleteQueue
from corvo.ops.queues.pause_queue import PauseQueue
from corvo.state import keys
from corvo.state.minutes import MINUTE_NS, MINUTES_KEPT, forget_at, turn
from tests.support.builders import NOW, SECOND, ack, enqueue, fail, fetch, ring
from tests.support.machine import Machine
from tests.support.model import Model
from tests.support.strategies import operations

FIRST = NOW // MINUTE_NS
HOUR = 3600 * SECOND

Series = dict[tuple[str, int], tuple[int, ...]]  # (queue, minute) → enqueued, completed, failed, died


def minutes(machine: Machine) -> list[Minute]:
    return [decode_minute(value) for key, value in machine.records().items() if key.startswith(keys.MINUTES)]


def series(machine: Machine) -> Series:
    """Minutes that are over, and the one that each queue's record still counts."""
    found: Series = {
        (one.queue, one.minute): (one.enqueued, one.completed, one.failed, one.died) for one in minutes(machine)
    }
    for queue in machine.queues():
        minute, *began = queue.began
        totals = (queue.enqueued, queue.completed, queue.failed, queue.died)
        assert (queue.name, minute) not in found
        found[queue.name, minute] = tuple(now - then for now, then in zip(totals, began, strict=True))
    return {at: amounts for at, amounts in found.items() if any(amounts)}


def totals(model: Model) -> dict[str, tuple[int, ...]]:
    return {
        queue: (
            sum(job.queue == queue for job in model.jobs.values()),
            model.completed.get(queue, 0),
            model.failed.get(queue, 0),
            sum(job.queue == queue and job.state == "dead" for job in model.jobs.values()),
        )
        for queue in {job.queue for job in model.jobs.values()}
    }


steps_ns = st.sampled_from((0, 1, SECOND, 20 * SECOND, 60 * SECOND, 61 * SECOND, 5 * 60 * SECOND, -2 * SECOND))
entries = st.tuples(steps_ns, st.lists(operations, min_size=1, max_size=4), st.sampled_from(("", "", "flush", "crash")))


@given(st.lists(entries, min_size=1, max_size=25))
def test_the_series_is_what_is_counted_naively(log: list) -> None:
    machine, model, at = Machine(), Model(), NOW
    counted: dict[tuple[str, int], tuple[int, ...]] = defaultdict(lambda: (0, 0, 0, 0))
    for step_ns, asked, then in log:
        at += step_ns
        before = totals(model)
        machine.apply(*asked, at=at)
        model.entry(at, asked)
        for queue, amounts in totals(model).items():
            place = queue, model.now // MINUTE_NS
            difference = (now - past for now, past in zip(amounts, before.get(queue, (0, 0, 0, 0)), strict=True))
            counted[place] = tuple(map(sum, zip(counted[place], difference, strict=True)))
        if then:
            machine.flush()
        if then == "crash":
            machine.restart()

    assert series(machine) == {place: amounts for place, amounts in counted.items() if any(amounts)}


def test_a_minute_is_written_by_the_first_change_of_a_later_one() -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2), at=NOW)
    machine.apply(enqueue(3), at=NOW + 59 * SECOND)
    assert minutes(machine) == []

    machine.apply(fetch(count=3), at=NOW + 200 * SECOND)
    assert minutes(machine) == [Minute("mail", FIRST, 3, 0, 0, 0)]

    machine.apply(ack(1), fail(2, is_final=True), at=NOW + 200 * SECOND)
    machine.apply(fail(3, ask=2), at=NOW + 300 * SECOND)
    assert minutes(machine)[1:] == [Minute("mail", FIRST + 3, 0, 1, 1, 1)]
    assert machine.queue().died == 1
    assert series(machine)["mail", FIRST + 5] == (0, 0, 1, 0)


def test_a_minute_in_which_nothing_was_counted_is_not_written() -> None:
    machine = Machine()
    machine.apply(enqueue(1), at=NOW)
    machine.apply(fetch(), at=NOW + 60 * SECOND)
    machine.apply(PauseQueue("mail"), at=NOW + 120 * SECOND)
    machine.apply(ack(1), at=NOW + 180 * SECOND)

    assert [one.minute for one in minutes(machine)] == [FIRST]


def test_a_queue_of_an_older_version_begins_to_count_with_its_next_change() -> None:
    queue = new_queue("mail", NOW)
    queue.enqueued, queue.completed, queue.failed = 100, 50, 7

    assert turn(queue, FIRST) is None
    assert queue.began == (FIRST, 100, 50, 7, 0)
    queue.enqueued += 3
    assert turn(queue, FIRST + 1) == Minute("mail", FIRST, 3, 0, 0, 0)


def test_minutes_are_forgotten_within_the_hour_after_a_day() -> None:
    machine = Machine()
    at = NOW
    for number in range(1, 4):
        machine.apply(enqueue(number), at=at)
        at += 45 * 60 * SECOND
    machine.apply(enqueue(4), at=at)
    assert [one.minute - FIRST for one in minutes(machine)] == [0, 45, 90]

    due = forget_at(FIRST)
    assert 0 < due - (NOW + MINUTES_KEPT * MINUTE_NS) <= HOUR
    assert machine.one(ring(), at=due - 1) == 0
    machine.apply(ring(), at=due)

    assert [one.minute - FIRST for one in minutes(machine)] == [90]
    machine.apply(ring(), at=due + HOUR)
    assert minutes(machine) == []


def test_a_queue_that_has_long_been_quiet_keeps_no_minutes() -> None:
    machine = Machine()
    for number in range(1, 100):
        machine.apply(enqueue(number), at=NOW + number * 60 * SECOND)
    assert len(minutes(machine)) == 98

    machine.flush()
    machine.restart()
    machine.apply(ring(), at=NOW + 100 * HOUR)

    assert minutes(machine) == []
    assert machine.queue().enqueued == 99


def test_a_queue_takes_its_minutes_with_it_and_leaves_those_of_others() -> None:
    machine = Machine()
    for number, at in enumerate((NOW, NOW + 60 * SECOND, NOW + 120 * SECOND)):
        machine.apply(enqueue(3 * number + 1), enqueue(3 * number + 2, queue="mail.slow"), at=at)
    machine.flush()
    machine.apply(enqueue(90), at=NOW + 180 * SECOND)
    assert len(minutes(machine)) == 5

    machine.apply(DeleteQueue("mail"), at=NOW + 181 * SECOND)
    assert {one.queue for one in minutes(machine)} == {"mail.slow"}

    machine.apply(enqueue(99), at=NOW + 182 * SECOND)
    assert series(machine)["mail", FIRST + 3] == (1, 0, 0, 0)
    machine.apply(ring(), at=NOW + 30 * HOUR)
    assert minutes(machine) == []
