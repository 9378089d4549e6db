"""Dependencies: a job runs when those that it waits for have ended, and its policy says what their loss means."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from corvo.endpoint import Operation
from corvo.model.job import Job
from corvo.model.job_extras import IfLost, JobExtras
from corvo.model.lifecycle import State
from corvo.model.sharding import shard_of_queue
from corvo.model.timestamps import LATEST_NS
from corvo.ops.jobs.approve import Approve
from corvo.ops.jobs.delete import Delete
from corvo.ops.jobs.enqueue import Enqueue, EnqueueBody
from corvo.ops.jobs.enqueue import new_job as planned
from corvo.ops.jobs.hold import Hold
from corvo.ops.jobs.move import Move
from corvo.ops.jobs.retry import Retry
from corvo.rules.errands import watch
from corvo.state import keys
from tests.support.builders import SECOND, ack, an_asking, cancel, fail, fetch, job_id, new_job
from tests.support.shards import Shards

# With three shards each lives on its own.
BAKE, CAKE, EAT = "stock", "mail", "pay"
POLICIES = [
    (IfLost.FAIL, "dead"),
    (IfLost.CANCEL, "cancelled"),
    (IfLost.RUN, "pending"),
]  # and what becomes of the one that waits
ENDINGS = ("completed", "dead", "cancelled")


@pytest.fixture(params=[1, 3], ids=["one shard", "three shards"])
def shards(request: pytest.FixtureRequest) -> Shards:
    return Shards(request.param)


def put(shards: Shards, number: int, queue: str, *waits_for: str, **fields: Any) -> str:
    shard = shard_of_queue(queue, len(shards.machines))
    name = job_id(number, shard)
    policy, expire_ms = fields.pop("if_lost", IfLost.FAIL), fields.pop("expire_after_ms", 0)
    extras = JobExtras(waits_for=waits_for, if_lost=policy, expire_after_ms=expire_ms) if waits_for else None
    new = new_job(name, queue, max_retries=1, extras=extras, **fields)
    assert shards.one(shard, Enqueue([new])) == [State.SCHEDULED if waits_for else State.PENDING]
    return name


def ask(shards: Shards, job: str, operation: Operation) -> Any:
    return shards.one(int(job[1:3]), operation)


def end(shards: Shards, job: str, ending: str, ask_id: int = 1) -> None:
    queue = find(shards, job).queue
    if ending == "cancelled":
        ask(shards, job, cancel(job, ask=ask_id))
        return
    [claimed] = ask(shards, job, fetch(queue))
    assert claimed.job_id == job
    ask(shards, job, ack(job, ask=ask_id) if ending == "completed" else fail(job, ask=ask_id))


def find(shards: Shards, job: str) -> Job:
    [found] = [each for machine in shards.machines for each in machine.jobs() if each.id == job]
    return found


def state(shards: Shards, job: str) -> str:
    return find(shards, job).state.name.lower()


def errors(shards: Shards, job: str) -> list[str]:
    return [error.error for error in shards.of_id(job).tables.errors(job)]


# One dependency


def test_it_waits_until_the_other_is_done(shards: Shards) -> None:
    cake = put(shards, 1, CAKE)
    eat = put(shards, 2, EAT, cake)

    assert (state(shards, eat), find(shards, eat).due_at) == ("scheduled", LATEST_NS)
    shards.pass_time(400 * 24 * 3600 * SECOND)
    assert state(shards, eat) == "scheduled", "it waits for a job, not for a moment"

    end(shards, cake, "completed")

    assert (state(shards, eat), find(shards, eat).due_at) == ("pending", 0)
    shards.check()


def test_it_takes_its_place_in_the_queue_when_it_may_run(shards: Shards) -> None:
    cake = put(shards, 1, CAKE)
    eat = put(shards, 2, EAT, cake)
    other = put(shards, 3, EAT)

    end(shards, cake, "completed")

    assert [job.job_id for job in ask(shards, eat, fetch(EAT, count=2))] == [other, eat]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(("policy", "lost"), POLICIES)
@pytest.mark.parametrize("is_over", [False, True], ids=["ends later", "has ended"])
def test_the_policy_decides_what_a_loss_means(
    shards: Shards, ending: str, policy: IfLost, lost: str, is_over: bool
) -> None:
    cake = put(shards, 1, CAKE)
    if is_over:
        end(shards, cake, ending)
    eat = put(shards, 2, EAT, cake, if_lost=policy)
    if not is_over:
        end(shards, cake, ending)

    assert state(shards, eat) == ("pending" if ending == "completed" else lost)
    shards.check()


def test_a_job_that_died_of_a_loss_says_of_which(shards: Shards) -> None:
    cake = put(shards, 1, CAKE)
    eat = put(shards, 2, EAT, cake)

    end(shards, cake, "cancelled")

    assert errors(shards, eat) == [f"job {cake}, which this one waited for, is cancelled"]
    assert find(shards, eat).failed_at == shards.now


@pytest.mark.parametrize(("policy", "then"), POLICIES)
def test_a_job_that_is_not_there_counts_as_deleted(shards: Shards, policy: IfLost, then: str) -> None:
    """The gateway refuses a name that nobody has; this one was forgotten between its look and the birth."""
    eat = put(shards, 2, EAT, job_id(1), if_lost=policy)

    assert state(shards, eat) == then
    if then == "dead":
        assert errors(shards, eat) == [f"job {job_id(1)}, which this one waited for, is deleted"]


def test_a_job_that_fails_and_is_tried_again_is_not_lost(shards: Shards) -> None:
    shard = shard_of_queue(CAKE, len(shards.machines))
    cake = job_id(1, shard)
    shards.one(shard, Enqueue([new_job(cake, CAKE, max_retries=2)]))
    eat = put(shards, 2, EAT, cake)
    ask(shards, cake, fetch(CAKE))

    ask(shards, cake, fail(cake))

    assert state(shards, eat) == "scheduled"


def test_a_lost_lease_that_was_the_last_attempt_is_a_loss(shards: Shards) -> None:
    cake = put(shards, 1, CAKE)
    eat = put(shards, 2, EAT, cake)
    ask(shards, cake, fetch(CAKE, lease_ms=1_000))

    shards.pass_time(SECOND)

    assert (state(shards, cake), state(shards, eat)) == ("dead", "dead")


def test_a_loss_goes_down_the_line(shards: Shards) -> None:
    bake = put(shards, 1, BAKE)
    cake = put(shards, 2, CAKE, bake)
    eat = put(shards, 3, EAT, cake)
    wash = put(shards, 4, EAT, eat, if_lost=IfLost.RUN)

    end(shards, bake, "dead")

    assert [state(shards, job) for job in (cake, eat, wash)] == ["dead", "dead", "pending"]


# Several


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_it_waits_for_the_last_of_several(shards: Shards, order: tuple[int, ...]) -> None:
    needed = [put(shards, number, queue) for number, queue in enumerate((BAKE, CAKE, EAT))]
    party = put(shards, 9, EAT, *needed)

    for number in order:
        assert state(shards, party) == "scheduled"
        end(shards, needed[number], "completed", number)

    assert state(shards, party) == "pending"
    shards.check()


def test_one_loss_is_enough_and_the_others_change_nothing_any_more(shards: Shards) -> None:
    bake, cake = put(shards, 1, BAKE), put(shards, 2, CAKE)
    eat = put(shards, 3, EAT, bake, cake)

    end(shards, bake, "dead")
    end(shards, cake, "dead", 2)

    assert state(shards, eat) == "dead"
    assert len(errors(shards, eat)) == 1


def test_with_run_it_still_waits_for_the_others(shards: Shards) -> None:
    bake, cake = put(shards, 1, BAKE), put(shards, 2, CAKE)
    eat = put(shards, 3, EAT, bake, cake, if_lost=IfLost.RUN)

    end(shards, bake, "dead")
    assert state(shards, eat) == "scheduled"
    end(shards, cake, "completed", 2)

    assert state(shards, eat) == "pending"


def test_some_have_ended_already(shards: Shards) -> None:
    bake, cake = put(shards, 1, BAKE), put(shards, 2, CAKE)
    end(shards, bake, "completed")

    eat = put(shards, 3, EAT, bake, cake)
    assert state(shards, eat) == "scheduled"
    end(shards, cake, "completed", 2)

    assert state(shards, eat) == "pending"


def test_many_may_wait_for_one(shards: Shards) -> None:
    bake = put(shards, 1, BAKE)
    waiting = [put(shards, number, queue, bake) for number, queue in enumerate((BAKE, CAKE, EAT) * 3, 10)]

    end(shards, bake, "completed")

    assert {state(shards, job) for job in waiting} == {"pending"}
    assert no_watchers(shards)


def no_watchers(shards: Shards) -> bool:
    return not any(key.startswith(b"d|") for machine in shards.machines for key in machine.records())


# Together with a moment


def test_a_moment_that_lies_ahead_is_still_waited_for(shards: Shards) -> None:
    cake = put(shards, 1, CAKE)
    eat = put(shards, 2, EAT, cake, scheduled_at=shards.now + 10 * SECOND)

    end(shards, cake, "completed")
    assert (state(shards, eat), find(shards, eat).due_at) == ("scheduled", shards.now + 10 * SECOND)
    shards.check()
    shards.pass_time(9 * SECOND)
    assert state(shards, eat) == "scheduled"
    shards.pass_time(SECOND)

    assert state(shards, eat) == "pending"


def test_a_moment_that_has_passed_is_no_reason_to_run_before_the_others_end(shards: Shards) -> None:
    cake = put(shards, 1, CAKE)
    eat = put(shards, 2, EAT, cake, scheduled_at=shards.now + 10 * SECOND)

    shards.pass_time(11 * SECOND)
    assert state(shards, eat) == "scheduled"
    end(shards, cake, "completed")

    assert state(shards, eat) == "pending"


def test_a_loss_need_not_wait_for_the_moment(shards: Shards) -> None:
    cake = put(shards, 1, CAKE)
    eat = put(shards, 2, EAT, cake, scheduled_at=shards.now + 10 * SECOND)

    end(shards, cake, "dead")

    assert state(shards, eat) == "dead"


def test_a_job_that_waits_expires_like_any_other(shards: Shards) -> None:
    cake = put(shards, 1, CAKE)
    eat = put(shards, 2, EAT, cake, expire_after_ms=3_000)

    shards.pass_time(3 * SECOND)
    assert state(shards, eat) == "dead"
    end(shards, cake, "completed")

    assert (state(shards, eat), errors(shards, eat)) == ("dead", ["expired before it was done"])


# Meanwhile


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_job_that_was_cancelled_while_it_waited_stays_so(shards: Shards, ending: str) -> None:
    cake = put(shards, 1, CAKE)
    eat = put(shards, 2, EAT, cake)
    ask(shards, eat, cancel(eat))

    end(shards, cake, ending, 2)

    assert (state(shards, eat), errors(shards, eat)) == ("cancelled", [])
    assert no_watchers(shards)
    shards.check()


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_job_that_was_deleted_while_it_waited_does_not_come_back(shards: Shards, ending: str) -> None:
    cake = put(shards, 1, CAKE)
    eat = put(shards, 2, EAT, cake)
    ask(shards, eat, Delete(eat))

    end(shards, cake, ending, 2)

    assert [job.id for machine in shards.machines for job in machine.jobs()] == [cake]
    assert no_watchers(shards)


@pytest.mark.parametrize(("policy", "then"), POLICIES)
@pytest.mark.parametrize("is_active", [False, True])
def test_a_job_that_is_deleted_before_it_ended_is_lost(
    shards: Shards, policy: IfLost, then: str, is_active: bool
) -> None:
    cake = put(shards, 1, CAKE)
    eat = put(shards, 2, EAT, cake, if_lost=policy)
    if is_active:
        ask(shards, cake, fetch(CAKE))

    ask(shards, cake, Delete(cake))

    assert state(shards, eat) == then
    assert no_watchers(shards)


def test_deleting_a_job_that_is_done_is_no_loss(shards: Shards) -> None:
    bake, cake = put(shards, 1, BAKE), put(shards, 2, CAKE)
    eat = put(shards, 3, EAT, bake, cake)
    end(shards, bake, "completed")

    ask(shards, bake, Delete(bake))
    assert state(shards, eat) == "scheduled"
    end(shards, cake, "completed", 2)

    assert state(shards, eat) == "pending"


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_job_that_is_run_by_hand_waits_no_longer(shards: Shards, ending: str) -> None:
    cake = put(shards, 1, CAKE)
    eat = put(shards, 2, EAT, cake)

    ask(shards, eat, Retry(5, eat))
    assert state(shards, eat) == "pending"
    end(shards, cake, ending, 2)

    assert (state(shards, eat), errors(shards, eat)) == ("pending", [])
    shards.check()


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_job_that_was_run_by_hand_and_snoozed_is_no_longer_bound(shards: Shards, ending: str) -> None:
    cake = put(shards, 1, CAKE)
    eat = put(shards, 2, EAT, cake)
    ask(shards, eat, Retry(5, eat))
    ask(shards, eat, fetch(EAT))
    ask(shards, eat, fail(eat, snooze_ms=10_000))
    due_at = find(shards, eat).due_at

    end(shards, cake, ending, 2)

    assert (state(shards, eat), find(shards, eat).due_at) == ("scheduled", due_at)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_job_that_is_held_stays_so_and_runs_when_it_is_approved(shards: Shards, ending: str) -> None:
    cake = put(shards, 1, CAKE)
    eat = put(shards, 2, EAT, cake)
    ask(shards, eat, Hold(5, eat))

    end(shards, cake, ending, 2)
    assert state(shards, eat) == "held"
    ask(shards, eat, Approve(6, eat))

    assert state(shards, eat) == "pending"


# Moved


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("goals", [(BAKE,), (EAT,), (BAKE, EAT), (BAKE, CAKE), (EAT, CAKE, BAKE)])
def test_a_job_that_is_waited_for_may_move(shards: Shards, ending: str, goals: tuple[str, ...]) -> None:
    cake = put(shards, 1, CAKE)
    early = put(shards, 2, EAT, cake)
    for number, goal in enumerate(goals):
        move(shards, cake, goal, number)
    late = put(shards, 3, EAT, cake)

    finish(shards, cake, ending)

    after = "pending" if ending == "completed" else "dead"
    assert (state(shards, early), state(shards, late)) == (after, after)
    assert no_watchers(shards)
    shards.check()


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("goals", [(BAKE,), (CAKE,), (BAKE, CAKE), (BAKE, EAT)])
def test_a_job_that_waits_may_move(shards: Shards, ending: str, goals: tuple[str, ...]) -> None:
    cake = put(shards, 1, CAKE)
    eat = put(shards, 2, EAT, cake)
    for number, goal in enumerate(goals):
        move(shards, eat, goal, number)

    end(shards, cake, ending)

    assert state(shards, eat) == ("pending" if ending == "completed" else "dead")
    assert find(shards, eat).queue == goals[-1]
    shards.check()


def move(shards: Shards, job: str, queue: str, number: int) -> None:
    shards.one(where(shards, job), Move(100 + number, job, queue))


def finish(shards: Shards, job: str, ending: str) -> None:
    """Wherever it is by now."""
    shard, queue = where(shards, job), find(shards, job).queue
    if ending == "cancelled":
        shards.one(shard, cancel(job))
        return
    while True:
        [claimed] = shards.one(shard, fetch(queue))
        if claimed.job_id == job:
            break
    shards.one(shard, ack(job) if ending == "completed" else fail(job))


def where(shards: Shards, job: str) -> int:
    [shard] = [number for number, machine in enumerate(shards.machines) if machine.tables.find_job(job) is not None]
    return shard


def test_an_enqueue_that_is_repeated_after_the_job_has_moved_gets_its_old_answer() -> None:
    shards = Shards(3)
    cake = put(shards, 1, CAKE)
    eat = put(shards, 2, EAT, cake)
    move(shards, eat, BAKE, 0)

    again = new_job(eat, EAT, max_retries=1, extras=JobExtras(waits_for=(cake,)))

    assert ask(shards, eat, Enqueue([again])) == [State.SCHEDULED]
    assert find(shards, eat).queue == BAKE


def test_an_enqueue_that_is_repeated_asks_nobody_again(shards: Shards) -> None:
    cake = put(shards, 1, CAKE)
    eat = put(shards, 2, EAT, cake)
    end(shards, cake, "completed")

    again = new_job(eat, EAT, max_retries=1, extras=JobExtras(waits_for=(cake,)))

    assert ask(shards, eat, Enqueue([again])) == [State.SCHEDULED], "the answer has not changed"
    assert state(shards, eat) == "pending"


def test_a_job_that_ended_and_ends_again_tells_nobody_twice(shards: Shards) -> None:
    cake = put(shards, 1, CAKE)
    put(shards, 2, EAT, cake)
    end(shards, cake, "completed")

    extras = find(shards, cake).extras

    assert extras is not None and not extras.is_watched
    assert no_watchers(shards)


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("is_flushed", [False, True])
def test_a_crash_between_any_two_steps_loses_and_doubles_nothing(number: int, is_flushed: bool) -> None:
    """All machines fall at once, once, before the numbered step of the couriers."""
    shards = Shards(3)
    bake = put(shards, 1, BAKE)
    steps = 0

    def step() -> None:
        nonlocal steps
        if steps == number:
            for machine in shards.machines:
                if is_flushed:
                    machine.flush()
                machine.restart()
        steps += 1

    def carry() -> None:
        for source in shards.machines:
            for target in source.tables.errands.targets():
                step()
                done = shards.deliver(source, target)
                step()
                shards.deliver(source, target)
                shards.confirm(source, target, done)

    eat_shard = shard_of_queue(EAT, 3)
    eat = job_id(2, eat_shard)
    shards[eat_shard].one(Enqueue([new_job(eat, EAT, extras=JobExtras(waits_for=(bake,)))]), at=shards.now)
    carry()
    shards.of_queue(BAKE).apply(fetch(BAKE), ack(bake), at=shards.now)
    carry()
    carry()

    assert state(shards, eat) == "pending"
    assert steps == 4 or number >= 4
    shards.check()


# Many


@pytest.fixture
def slices_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "UPKEEP_JOBS_PER_ENTRY", 2)


@pytest.mark.usefixtures("slices_of_two")
def test_many_that_wait_for_one_job_are_told_in_slices(shards: Shards) -> None:
    bake = put(shards, 1, BAKE)
    waiting = [put(shards, number, CAKE, bake) for number in range(2, 9)]

    end(shards, bake, "completed")

    told = [len([job for job in waiting if state(shards, job) == "pending"])]
    while told[-1] < len(waiting):
        shards.pass_time(1)
        told.append(len([job for job in waiting if state(shards, job) == "pending"]))
    assert told == [2, 4, 6, 7]
    shards.pass_time(1)
    assert not [key for machine in shards.machines for key in machine.records() if key.startswith(keys.WATCHERS)]
    assert all(machine.tables.alarms.look_ahead(shards.now) > shards.now for machine in shards.machines)
    shards.check()


@pytest.mark.usefixtures("slices_of_two")
def test_a_long_line_of_jobs_is_lost_in_slices(shards: Shards) -> None:
    line = [put(shards, 1, BAKE)]
    for number in range(2, 9):
        line.append(put(shards, number, BAKE, line[-1]))

    end(shards, line[0], "dead")

    lost = [len([job for job in line if state(shards, job) == "dead"])]
    while lost[-1] < len(line):
        shards.pass_time(1)
        lost.append(len([job for job in line if state(shards, job) == "dead"]))
    assert lost == [3, 5, 7, 8]
    shards.check()


@pytest.mark.usefixtures("slices_of_two")
@pytest.mark.parametrize("ending", ENDINGS)
def test_who_is_not_told_yet_when_the_job_runs_again_waits_for_its_next_end(shards: Shards, ending: str) -> None:
    bake = put(shards, 1, BAKE)
    waiting = [put(shards, number, CAKE, bake, if_lost=IfLost.RUN) for number in range(2, 6)]
    end(shards, bake, ending)
    ask(shards, bake, Retry(9, bake))
    waiting.append(put(shards, 6, CAKE, bake, if_lost=IfLost.RUN))

    shards.pass_time(1)
    assert [state(shards, job) for job in waiting] == ["pending"] * 2 + ["scheduled"] * 3
    end(shards, bake, "completed", ask_id=2)
    shards.pass_time(1)

    assert [state(shards, job) for job in waiting] == ["pending"] * 5
    shards.check()


@pytest.mark.usefixtures("slices_of_two")
@pytest.mark.parametrize("leave", [lambda job: Move(9, job, EAT), Delete], ids=["moved", "deleted"])
def test_who_is_not_told_yet_when_the_job_goes_away_is_told_all_the_same(
    shards: Shards, leave: Callable[[str], Operation]
) -> None:
    bake = put(shards, 1, BAKE)
    waiting = [put(shards, number, CAKE, bake) for number in range(2, 6)]
    end(shards, bake, "completed")
    ask(shards, bake, leave(bake))

    shards.pass_time(1)

    assert [state(shards, job) for job in waiting] == ["pending"] * 4
    assert not [key for machine in shards.machines for key in machine.records() if key.startswith(keys.WATCHERS)]
    shards.check()


# Cycles


def test_no_job_can_name_itself() -> None:
    """Its id is minted after the body was read, and no body has room for one: a line of jobs that wait for each other
    can only grow at its end."""
    for field in ("id", "job_id"):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(json.dumps({"queue": "mail", field: job_id(1)}), type=EnqueueBody)

    context = an_asking()
    made = [planned(context, EnqueueBody("mail", depends_on=[job_id(1)]), 0) for _ in range(100)]

    assert len({new.id for new in made}) == 100
    assert all(new.extras is not None and new.id not in new.extras.waits_for for new in made)
