"""A fetch that waits at a queue with controls is served the moment they let something through, and never before."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from corvo.endpoint import Operation
from corvo.model.job_extras import JobExtras
from corvo.model.lifecycle import State
from corvo.ops.jobs.delete import Delete
from corvo.ops.queues.delete_queue import DeleteQueue
from corvo.ops.queues.drain_queue import DrainQueue
from corvo.ops.queues.pause_queue import PauseQueue
from corvo.ops.queues.resume_queue import ResumeQueue
from corvo.ops.queues.set_concurrency import SetConcurrency
from corvo.ops.queues.set_throttle import SetThrottle
from corvo.queries.job import Await
from tests.shards.rig import WAITING, Rig
from tests.support.builders import MS, SECOND, ack, cancel, enqueue, fail, fetch, heartbeat, job_id

WAIT_MS = 600_000


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path / "db")
    yield rig
    rig.kill()


def waiting(rig: Rig, claim: int, **fields: int) -> tuple[bytes, int]:
    """A fetch that is parked; the key of its answer."""
    assert rig.one(fetch(claim=claim, wait_ms=WAIT_MS, **fields)) is WAITING
    return rig.last_key


def served(rig: Rig, key: tuple[bytes, int]) -> list[str] | None:
    """The jobs of its answer; None while it waits."""
    answer = rig.answers.get(key)
    return None if answer is None else [claim.job_id for claim in answer]


@pytest.mark.parametrize("halt", [PauseQueue("mail"), DrainQueue("mail")])
def test_a_resume_wakes_whoever_waits_in_the_same_turn(rig: Rig, halt: Operation) -> None:
    rig.ask(halt, enqueue(1))
    key = waiting(rig, 1)
    rig.ask(ResumeQueue("mail"))

    assert served(rig, key) == [job_id(1)]


def test_a_job_for_a_paused_queue_wakes_nobody_and_costs_no_fetch(rig: Rig) -> None:
    rig.ask(PauseQueue("mail"))
    key = waiting(rig, 1)
    operations = rig.replica.metrics.operations
    for number in range(1, 11):
        rig.ask(enqueue(number))

    assert served(rig, key) is None
    assert rig.replica.metrics.operations - operations == 10


@pytest.mark.parametrize("way", [ack(1), fail(1), cancel(1), Delete(job_id(1))])
def test_a_place_that_becomes_free_wakes_one(rig: Rig, way: Operation) -> None:
    rig.ask(SetConcurrency("mail", 1), enqueue(1, 2, 3))
    rig.ask(fetch(claim=1))
    first, second = waiting(rig, 2), waiting(rig, 3)
    rig.ask(way)

    assert served(rig, first) == [job_id(2)]
    assert served(rig, second) is None
    assert rig.job(3).job.state == State.PENDING


def test_a_lease_that_runs_out_frees_a_place(rig: Rig) -> None:
    rig.ask(SetConcurrency("mail", 1), enqueue(1, 2))
    rig.ask(fetch(claim=1, lease_ms=10_000))
    key = waiting(rig, 2)
    rig.sleep_through(11 * SECOND)

    assert served(rig, key) == [job_id(2)]


def test_a_window_that_opens_again_wakes_within_milliseconds(rig: Rig) -> None:
    rig.ask(SetThrottle("mail", 1, 2_000), enqueue(1, 2))
    rig.ask(fetch(claim=1))
    key = waiting(rig, 2)
    rig.sleep_through(2 * SECOND - MS)
    assert served(rig, key) is None
    rig.sleep_through(2 * MS)

    assert served(rig, key) == [job_id(2)]


def test_a_throttled_queue_is_worked_off_at_its_rate_by_many_who_wait(rig: Rig) -> None:
    rig.ask(SetThrottle("mail", 2, 1_000), enqueue(*range(1, 11)))
    keys = []
    for claim in range(1, 11):
        rig.one(fetch(claim=claim, wait_ms=WAIT_MS))
        keys.append(rig.last_key)
    counts = []
    for _ in range(6):
        counts.append(sum(key in rig.answers for key in keys))
        rig.sleep_through(SECOND)

    assert counts == [2, 4, 6, 8, 10, 10]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (SetThrottle("mail", 1, 60_000), SetThrottle("mail", 0, 0)),
        (SetThrottle("mail", 1, 60_000), SetThrottle("mail", 2, 60_000)),
        (SetThrottle("mail", 1, 60_000), SetThrottle("mail", 1, 1_000)),
        (SetConcurrency("mail", 1), SetConcurrency("mail", 2)),
        (SetConcurrency("mail", 1), SetConcurrency("mail", 0)),
    ],
)
def test_a_wider_limit_wakes_at_once(rig: Rig, before: Operation, after: Operation) -> None:
    rig.ask(before, enqueue(1, 2))
    rig.ask(fetch(claim=1))
    key = waiting(rig, 2)
    rig.advance(5 * SECOND)
    rig.turn()
    assert served(rig, key) is None
    rig.ask(after)

    assert served(rig, key) == [job_id(2)]


# A fetch behind operations of its own frame: they arrive in one message.


@pytest.mark.parametrize("way", [ack(1), fail(1), cancel(1), Delete(job_id(1))])
def test_a_fetch_sees_the_slot_that_its_own_frame_frees(rig: Rig, way: Operation) -> None:
    rig.ask(SetConcurrency("mail", 1), enqueue(1, 2, 3))
    rig.ask(fetch(claim=1))
    _, claimed = rig.ask(way, fetch(claim=2, count=2, is_after_operations=True))

    assert [claim.job_id for claim in claimed] == [job_id(2)]


@pytest.mark.parametrize("first", [ack(1), heartbeat(1), enqueue(3)])
def test_a_fetch_sees_the_throttle_at_the_time_of_its_own_frame(rig: Rig, first: Operation) -> None:
    rig.ask(SetThrottle("mail", 1, 2_000), enqueue(1, 2))
    rig.ask(fetch(claim=1))
    rig.advance(2 * SECOND)
    _, claimed = rig.ask(first, fetch(claim=2, is_after_operations=True))

    assert [claim.job_id for claim in claimed] == [job_id(2)]


def test_a_fetch_sees_the_job_whose_dependency_its_own_frame_ends(rig: Rig) -> None:
    rig.ask(enqueue(1), enqueue(2, extras=JobExtras(waits_for=(job_id(1),))))
    rig.ask(fetch(claim=1))
    _, claimed = rig.ask(ack(1), fetch(claim=2, is_after_operations=True))

    assert [claim.job_id for claim in claimed] == [job_id(2)]


def test_a_fetch_sees_the_job_whose_unique_key_its_own_frame_frees(rig: Rig) -> None:
    extras = JobExtras(unique_key="k")
    rig.ask(enqueue(1, extras=extras))
    rig.ask(fetch(claim=1))
    _, _, claimed = rig.ask(ack(1), enqueue(2, extras=extras), fetch(claim=2, is_after_operations=True))

    assert [claim.job_id for claim in claimed] == [job_id(2)]


def test_a_fetch_that_can_wait_leaves_the_slot_to_those_who_wait_already(rig: Rig) -> None:
    rig.ask(SetConcurrency("mail", 1), enqueue(1, 2, 3))
    rig.ask(fetch(claim=1))
    first = waiting(rig, 2)
    _, claimed = rig.ask(ack(1), fetch(claim=3, wait_ms=WAIT_MS, is_after_operations=True))

    assert claimed is WAITING
    assert served(rig, first) == [job_id(2)]


def test_a_fetch_that_finds_nothing_behind_its_own_operations_waits_as_any_other(rig: Rig) -> None:
    rig.ask(enqueue(1))
    rig.ask(fetch(claim=1))
    _, claimed = rig.ask(ack(1), fetch(claim=2, wait_ms=WAIT_MS, is_after_operations=True))
    key = rig.last_key
    assert claimed is WAITING
    rig.ask(enqueue(2))

    assert served(rig, key) == [job_id(2)]


def test_an_await_is_told_when_a_gate_opens_and_not_before(rig: Rig) -> None:
    rig.ask(PauseQueue("mail"), enqueue(1))
    assert rig.one(Await(["mail"], "w1", "host", WAIT_MS)) is WAITING
    key = rig.last_key
    rig.ask(ResumeQueue("mail"))

    assert rig.answers[key] is True


def test_a_limit_survives_a_restart_with_its_window(rig: Rig) -> None:
    rig.ask(SetThrottle("mail", 1, 2_000), enqueue(1, 2))
    rig.ask(fetch(claim=1))
    rig.sleep_through(SECOND)
    rig.restart()
    key = waiting(rig, 2)
    rig.sleep_through(SECOND - MS)
    assert served(rig, key) is None
    rig.sleep_through(2 * MS)

    assert served(rig, key) == [job_id(2)]


def test_whoever_waits_at_a_deleted_queue_gets_the_first_job_of_the_new_one(rig: Rig) -> None:
    rig.ask(PauseQueue("mail"), enqueue(1))
    key = waiting(rig, 1)
    rig.ask(DeleteQueue("mail"))
    rig.ask(enqueue(2))

    assert served(rig, key) == [job_id(2)]
