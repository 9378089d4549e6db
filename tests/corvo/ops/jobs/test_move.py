"""Move: a job goes to another queue, on its shard or another, and everything finds it there."""

import msgspec
import pytest

from corvo.endpoint import Operation
from corvo.model.errors import Moved, Refusal
from corvo.model.events import EventKind
from corvo.model.job import Priority
from corvo.model.job_extras import JobExtras, Outcome
from corvo.model.lifecycle import SETTLED, STATE_NAMES, State
from corvo.model.limits import RETENTION_MS_DEFAULT
from corvo.model.sharding import shard_of_queue
from corvo.ops.batches.add_to_batch import AddToBatch
from corvo.ops.jobs.delete import Delete
from corvo.ops.jobs.heartbeat import Pulse
from corvo.ops.jobs.hold import Hold
from corvo.ops.jobs.move import Move
from corvo.ops.jobs.retry import Retry
from corvo.queries.job import GetJob
from corvo.rules.batches import BatchSpec, find_batch
from corvo.state import keys
from tests.support.builders import (
    MS,
    NOW,
    SECOND,
    ack,
    cancel,
    enqueue,
    fail,
    fetch,
    heartbeat,
    job_id,
    new_job,
    promote,
    ring,
)
from tests.support.courier_sockets import a_machine_with
from tests.support.event_kinds import events_of
from tests.support.machine import Machine, nothing_changes
from tests.support.shards import Shards, queue_on

# One queue on each of three shards.
QUEUES = tuple(next(f"q{n}" for n in range(100) if shard_of_queue(f"q{n}", 3) == shard) for shard in range(3))
HOME = QUEUES[0]
STATES = [state for state in State if state is not State.ACTIVE]


def move(queue: str, job: int = 1, ask: int = 9) -> Move:
    return Move(ask, job_id(job), queue)


# Within a shard


@pytest.mark.parametrize("state", STATES, ids=lambda state: STATE_NAMES[state])
def test_a_job_of_any_state_but_active_changes_its_queue_and_nothing_else(state: State) -> None:
    machine = a_machine_with(state)
    before = msgspec.structs.replace(machine.job(1))

    assert machine.one(move("other")) is None

    job = machine.job(1)
    same = {"queue": before.queue, "position": before.position, "extras": before.extras}
    assert msgspec.structs.replace(job, **same) == before
    assert job.queue == "other"
    assert machine.queue("other").counts[state] == 1
    assert sum(machine.queue("mail").counts) == 0
    event = events_of(machine)[-1]
    assert (event.kind, event.queue, event.data) == (EventKind.MOVED, "other", b'{"from":"mail"}')
    machine.check()
    with nothing_changes(machine):
        assert machine.one(move("other")) is None, "the same request again"
    assert machine.one(move("other", ask=10)) is None, "it is there already"
    assert events_of(machine)[-1] is event


def test_an_active_job_is_refused_and_told_why() -> None:
    machine = a_machine_with(State.ACTIVE)

    with nothing_changes(machine):
        refused = machine.one(move("other"))

    assert (refused.code, "active" in refused.message) == ("WRONG_STATE", True)


def test_a_pending_job_goes_to_the_back_and_wakes_who_waits() -> None:
    machine = Machine()
    machine.apply(enqueue(1), enqueue(2, queue="other"))

    machine.apply(move("other"))

    assert machine.changes.woken == {"other"}
    assert [claimed.job_id for claimed in machine.one(fetch("mail", "other", count=9))] == [job_id(2), job_id(1)]


def test_a_scheduled_job_falls_due_in_its_new_queue() -> None:
    machine = a_machine_with(State.SCHEDULED)
    machine.apply(move("other"))

    assert machine.one(promote(), at=NOW + 60 * SECOND) == 1
    assert len(machine.one(fetch("other"))) == 1


def test_keys_go_with_the_job_where_they_are_free() -> None:
    extras = JobExtras(unique_key="k", idempotency_key="i")
    machine = a_machine_with(State.PENDING, extras=extras)
    machine.apply(move("other"))

    assert machine.one(enqueue(2, queue="mail", extras=JobExtras(unique_key="k")))[0] is State.PENDING
    assert machine.one(enqueue(3, queue="mail", extras=JobExtras(idempotency_key="i")))[0] is State.PENDING
    assert machine.one(enqueue(4, queue="other", extras=JobExtras(unique_key="k")))[0].job_id == job_id(1)
    assert machine.one(enqueue(5, queue="other", extras=JobExtras(idempotency_key="i")))[0].job_id == job_id(1)


def test_a_key_that_another_holds_over_there_stays_with_that_one() -> None:
    machine = a_machine_with(State.PENDING, extras=JobExtras(unique_key="k"))
    machine.apply(enqueue(2, queue="other", extras=JobExtras(unique_key="k")))
    machine.apply(move("other"), cancel(1, ask=11))

    assert machine.one(enqueue(3, queue="other", extras=JobExtras(unique_key="k")))[0].job_id == job_id(2)


def test_a_move_that_comes_again_after_another_one_does_not_undo_it() -> None:
    machine = a_machine_with(State.PENDING)
    machine.apply(move("a", ask=1), Retry(2, job_id(1)), move("b", ask=3))
    machine.apply(move("b", ask=3))

    assert machine.job(1).queue == "b"


# Between shards


def with_job(*road: Operation, **fields: object) -> Shards:
    shards = Shards(3)
    shards.one(0, enqueue(1, queue=HOME, **fields))
    for operation in road:
        shards.one(0, operation)
    return shards


ROADS: dict[State, list[Operation]] = {
    State.PENDING: [],
    State.COMPLETED: [fetch(HOME), ack(1, ask=101, result=b"5")],
    State.RETRYING: [fetch(HOME), fail(1, ask=101, error="boom")],
    State.DEAD: [fetch(HOME), fail(1, ask=101, error="boom", is_final=True)],
    State.CANCELLED: [cancel(1, ask=101)],
    State.SCHEDULED: [],
    State.HELD: [Hold(101, job_id(1))],
}


@pytest.mark.parametrize("state", STATES, ids=lambda state: STATE_NAMES[state])
def test_a_job_travels_with_its_history_and_leaves_a_note(state: State) -> None:
    later = {"scheduled_at": NOW + 60 * SECOND} if state is State.SCHEDULED else {}
    shards = with_job(*ROADS[state], **later)
    before = msgspec.structs.replace(shards[0].job(1))
    errors = shards[0].tables.errors(job_id(1))
    assert before.state is state

    assert shards.one(0, move(QUEUES[1])) is None

    job = shards[1].job(1)
    same = {"queue": before.queue, "position": before.position, "extras": before.extras}
    assert msgspec.structs.replace(job, **same) == before
    assert shards[1].tables.errors(job_id(1)) == errors
    assert shards[0].tables.find_job(job_id(1)) is None
    assert not [key for key in shards[0].records() if key.startswith((keys.JOBS, keys.JOB_ERRORS))]
    assert sum(shards[0].queue(HOME).counts) == 0
    assert shards[1].queue(QUEUES[1]).counts[state] == 1
    assert [event.kind for event in events_of(shards[1])] == [EventKind.MOVED]
    shards.check()


@pytest.mark.parametrize("shard", [0, 1])
def test_a_move_resets_attempts_and_priority_only_when_told(shard: int) -> None:
    target = queue_on(shard)

    def moved(**options: bool) -> tuple[int, Priority]:
        shards = with_job(*ROADS[State.RETRYING], priority=Priority.HIGH)
        shards.one(0, Move(9, job_id(1), target, **options))
        shards.check()
        job = shards[shard].job(1)
        return job.attempt, job.priority

    assert moved() == (1, Priority.HIGH)
    assert moved(resets_attempts=True) == (0, Priority.HIGH)
    assert moved(resets_priority=True) == (1, Priority.NORMAL)


def test_a_pending_job_is_found_by_its_new_priority() -> None:
    shards = with_job(priority=Priority.HIGH)
    shards.one(0, Move(9, job_id(1), queue_on(0), resets_priority=True))
    shards.check()

    assert [claimed.job_id for claimed in shards.one(0, fetch(queue_on(0)))] == [job_id(1)]


def test_who_asks_at_the_old_shard_is_sent_on() -> None:
    shards = with_job()
    shards.one(0, move(QUEUES[1]))
    [claimed] = shards.one(1, fetch(QUEUES[1]))
    assert claimed.job_id == job_id(1)
    old = shards[0]

    with nothing_changes(old):
        for ask in (cancel(1), Retry(2, job_id(1)), Delete(job_id(1)), move(HOME, ask=10)):
            refused = old.one(ask)
            assert (refused.code, refused.moved) == ("JOB_MOVED", Moved(1))
        for ask in (ack(1, token=1), fail(1, token=1), heartbeat(1, token=1)):
            [refused] = old.one(ask)
            assert (refused.code, refused.moved) == ("JOB_MOVED", Moved(1))
    with pytest.raises(Refusal) as raised:
        GetJob(job_id(1)).read(old.tables)
    assert raised.value.moved == Moved(1)
    assert shards.one(1, heartbeat(1, token=1)) == [Pulse.OK]
    assert shards.one(1, ack(1, token=1)) == [None]


def test_who_asks_while_the_job_is_on_its_way_is_asked_to_wait_a_moment() -> None:
    shards = with_job()
    old = shards[0]
    old.apply(move(QUEUES[1]))

    def is_underway() -> bool:
        refused = old.one(cancel(1))
        [item] = old.one(ack(1))
        assert item == refused
        assert refused.moved == Moved(1, refused.code == "SHARD_UNAVAILABLE")
        assert refused.moved.is_under_way == (refused.retry_after_ms > 0)
        return refused.moved.is_under_way

    assert is_underway()
    done = shards.deliver(old, 1)
    assert is_underway(), "delivered, but that is not known here yet"
    old.flush()
    old.restart()
    assert is_underway()
    shards.confirm(old, 1, done)
    assert not is_underway()
    old.flush()
    old.restart()
    assert not is_underway()


def test_a_delivery_that_is_repeated_brings_the_job_once() -> None:
    shards = with_job()
    shards[0].apply(move(QUEUES[1]))
    shards.deliver(shards[0], 1)
    [claimed] = shards[1].one(fetch(QUEUES[1]))
    assert shards[1].one(ack(claimed.job_id, ask=3)) == [None]

    with nothing_changes(shards[1]):
        shards.deliver(shards[0], 1)

    assert shards[1].job(1).state is State.COMPLETED


def test_a_job_may_go_round_and_come_home() -> None:
    shards = with_job()
    shards.one(0, move(QUEUES[1], ask=11))
    shards.one(1, move(QUEUES[2], ask=12))
    assert shards[0].one(cancel(1)).moved == Moved(1)
    assert shards[1].one(cancel(1)).moved == Moved(2)

    shards.one(2, move(HOME, ask=13))

    assert shards[0].job(1).queue == HOME
    assert shards[0].tables.forwarded_to(job_id(1)) is None
    assert [claimed.job_id for claimed in shards.one(0, fetch(HOME))] == [job_id(1)]
    shards.check()


@pytest.mark.parametrize("stops", [(1,), (1, 0), (1, 2, 0), (1, 0, 2), (1, 0, 2, 1)])
def test_with_the_job_go_all_notes_of_its_way(stops: tuple[int, ...]) -> None:
    shards = with_job()
    here = 0
    for ask, shard in enumerate(stops, 11):
        shards.one(here, move(QUEUES[shard], ask=ask))
        here = shard

    shards.one(here, Delete(job_id(1)))

    assert [machine.tables.forwarded_to(job_id(1)) for machine in shards.machines] == [None, None, None]
    shards.check()


def test_the_same_request_at_the_new_shard_finds_the_job_moved() -> None:
    shards = with_job()
    shards.one(0, move(QUEUES[1]))

    with nothing_changes(shards[1]):
        assert shards.one(1, move(QUEUES[1])) is None


def test_an_enqueue_that_comes_again_after_the_move_makes_no_second_job() -> None:
    shards = with_job()
    shards.one(0, move(QUEUES[1]))

    with nothing_changes(shards[0]):
        assert shards.one(0, enqueue(1, queue=HOME)) == [State.PENDING]
    shards[0].flush()
    shards[0].restart()
    assert shards.one(0, enqueue(1, queue=HOME)) == [State.PENDING]
    assert shards[0].jobs() == []


def test_jobs_that_wait_for_it_are_told_from_its_new_shard() -> None:
    shards = with_job()
    waiting = job_id(2, shard=2)
    shards.one(2, enqueue(new_job(waiting, queue=QUEUES[2], extras=JobExtras(waits_for=(job_id(1),)))))
    shards.one(0, move(QUEUES[1]))
    late = job_id(3, shard=2)
    shards.one(2, enqueue(new_job(late, queue=QUEUES[2], extras=JobExtras(waits_for=(job_id(1),)))))

    shards.one(1, fetch(QUEUES[1]))
    shards.one(1, ack(1))

    assert [shards[2].job(one).state for one in (waiting, late)] == [State.PENDING, State.PENDING]
    assert not [key for machine in shards.machines for key in machine.records() if key.startswith(keys.WATCHERS)]
    shards.check()


def test_a_job_that_waits_for_another_is_told_where_it_has_moved() -> None:
    shards = with_job()
    waiting = job_id(2, shard=2)
    shards.one(2, enqueue(new_job(waiting, queue=QUEUES[2], extras=JobExtras(waits_for=(job_id(1),)))))
    shards.one(2, Move(9, waiting, QUEUES[1]))
    assert shards[1].job(waiting).state is State.SCHEDULED

    shards.one(0, fetch(HOME))
    shards.one(0, ack(1))

    assert shards[1].job(waiting).state is State.PENDING
    shards.check()


def test_time_to_live_and_retention_go_with_it() -> None:
    shards = with_job(extras=JobExtras(expire_after_ms=5_000))
    shards.one(0, move(QUEUES[1]))

    shards.pass_time(5_000 * MS)
    assert shards[1].job(1).state is State.DEAD
    shards.one(1, move(QUEUES[2], ask=10))
    assert shards[2].job(1).state in SETTLED
    shards.pass_time(RETENTION_MS_DEFAULT * MS)

    assert [machine.tables.find_job(job_id(1)) for machine in shards.machines] == [None, None, None]
    notes = [key for machine in shards.machines for key in machine.records() if key.startswith(keys.FORWARDED)]
    assert notes == [], "nobody can ask for it any more"


def test_a_deleted_job_is_unknown_wherever_it_was() -> None:
    shards = with_job()
    shards.one(0, move(QUEUES[1], ask=11))
    shards.one(1, move(QUEUES[2], ask=12))

    shards.one(2, Delete(job_id(1)))

    assert [machine.one(cancel(1)).code for machine in shards.machines] == ["JOB_NOT_FOUND"] * 3


def test_keys_go_to_the_other_shard() -> None:
    extras = JobExtras(unique_key="k", idempotency_key="i")
    shards = with_job(extras=extras)
    shards.one(0, move(QUEUES[1]))

    assert shards.one(0, enqueue(2, queue=HOME, extras=JobExtras(unique_key="k"))) == [State.PENDING]
    [existing] = shards.one(1, enqueue(new_job(job_id(3, 1), queue=QUEUES[1], extras=JobExtras(idempotency_key="i"))))
    assert existing.job_id == job_id(1)


def test_a_job_with_a_priority_keeps_it() -> None:
    shards = with_job(priority=Priority.CRITICAL)
    shards.one(1, enqueue(new_job(job_id(2, 1), queue=QUEUES[1])))
    shards.one(0, move(QUEUES[1]))

    assert [claimed.job_id for claimed in shards.one(1, fetch(QUEUES[1], count=2))] == [job_id(1), job_id(2, 1)]
    shards[1].apply(ring())
    shards.check()


def test_the_batch_of_a_moved_job_counts_its_end() -> None:
    batch_id = f"s02_batch_{1:026d}"
    shards = Shards(3)
    shards.one(2, AddToBatch(1, batch_id, BatchSpec(), True, [new_job(1, queue=HOME)]))
    shards.one(0, move(QUEUES[1]))

    shards.one(1, fetch(QUEUES[1]))
    shards.one(1, ack(1))

    batch = find_batch(shards[2].tables, batch_id)
    assert (batch.total, batch.ended[Outcome.COMPLETED], batch.open) == (1, 1, 0)
