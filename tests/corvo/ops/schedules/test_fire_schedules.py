"""FireSchedules: one job for each slot, whatever is proposed twice, late, or after a clock went back."""

import pytest

from corvo.model.lifecycle import State
from corvo.ops.schedules.fire_schedules import FireSchedules
from corvo.rules import schedules
from corvo.rules.schedules import Firing
from corvo.state.schedules import CatchUp
from tests.support.builders import NOW, SECOND, ack, fetch
from tests.support.machine import Machine, nothing_changes
from tests.support.schedules import create, look, look_at_all, schedule_id, slots_of, the_schedule
from tests.support.shards import Shards

MINUTE = 60 * SECOND


def test_a_slot_makes_a_job_that_says_where_it_comes_from() -> None:
    machine = Machine()
    machine.apply(create(tags=b'{"n": 2.50}', max_retries=7, unique_key="k"))

    assert look(machine, NOW + MINUTE) == 1

    [job] = machine.jobs()
    assert (job.queue, job.payload, job.max_retries, job.state) == ("mail", b'{"to": "all"}', 7, State.PENDING)
    assert job.tags == b'{"schedule":"nightly","slot":"2026-01-01T00:01:00.000000000Z","n": 2.50}'
    assert job.extras is not None
    assert (job.extras.schedule_id, job.extras.unique_key) == (schedule_id(), "k")
    schedule = the_schedule(machine)
    assert (schedule.fired, schedule.last_slot, schedule.last_fired_at) == (1, NOW + MINUTE, NOW + MINUTE)
    assert schedule.next_at == NOW + 2 * MINUTE
    machine.check()


def test_the_same_firings_proposed_twice_fire_once() -> None:
    """Two leaders worked out the same; both proposals were committed."""
    machine = Machine()
    machine.apply(create())
    firings = schedules.due(machine.tables, NOW + MINUTE)

    assert machine.apply(FireSchedules(firings), FireSchedules(firings), at=NOW + MINUTE) == [1, 0]
    with nothing_changes(machine):
        assert machine.one(FireSchedules(firings), at=NOW + 2 * MINUTE) == 0


def test_a_slot_that_is_settled_does_not_fire_whatever_the_leader_counted() -> None:
    machine = Machine()
    machine.apply(create())
    look(machine, NOW + 2 * MINUTE)
    version = the_schedule(machine).version
    stale = Firing(schedule_id(), version, [NOW + MINUTE, NOW + 2 * MINUTE], NOW + MINUTE, NOW + 2 * MINUTE)

    assert machine.one(FireSchedules([stale])) == 0
    assert the_schedule(machine).settled_to == NOW + 2 * MINUTE


def test_a_clock_that_goes_back_fires_no_slot_twice() -> None:
    machine = Machine()
    machine.apply(create(catch_up=CatchUp.ALL))
    look(machine, NOW + 5 * MINUTE)

    assert [look(machine, NOW + minute * MINUTE) for minute in (2, 3, 4, 5)] == [0, 0, 0, 0]
    assert look(machine, NOW + 6 * MINUTE) == 1


def test_a_job_that_was_settled_long_ago_is_not_made_again() -> None:
    machine = Machine()
    machine.apply(create())
    firings = schedules.due(machine.tables, NOW + MINUTE)
    machine.apply(FireSchedules(firings), at=NOW + MINUTE)
    machine.apply(fetch())
    machine.apply(ack(machine.jobs()[0].id))

    machine.apply(FireSchedules(firings))

    assert [job.state for job in machine.jobs()] == [State.COMPLETED]


@pytest.mark.parametrize("flush_after", range(4))
def test_a_crash_between_slots_loses_and_repeats_none(flush_after: int) -> None:
    machine = Machine()
    machine.apply(create(catch_up=CatchUp.ALL))
    for minute in range(1, 4):
        if minute == flush_after:
            machine.flush()
        look(machine, NOW + minute * MINUTE)
        before = machine.state()
        machine.restart()
        assert machine.state() == before
    look(machine, NOW + 6 * MINUTE)

    assert slots_of(machine.jobs()) == [f"2026-01-01T00:0{minute}:00" for minute in range(1, 7)]


def test_a_replica_that_follows_the_log_has_the_same_bytes() -> None:
    leader, follower = Machine(), Machine()
    leader.apply(create("a", 1, catch_up=CatchUp.ALL), create("b", 2, cron="@every 7s", queue="sms"))
    for second in range(0, 300, 13):
        look(leader, NOW + second * SECOND)

    follower.follow(leader.log)

    assert follower.state() == leader.state()


def test_a_replica_without_the_time_zone_applies_what_another_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    leader, follower = Machine(), Machine()
    leader.apply(create(cron="30 8 * * *", timezone="Asia/Kolkata"))
    look(leader, NOW)
    look(leader, NOW + 3 * 3600 * SECOND)

    def unknown(*_: object) -> list[int]:
        raise ValueError("no such zone here")

    monkeypatch.setattr(schedules, "slots_between", unknown)
    monkeypatch.setattr(schedules, "next_slot", unknown)
    follower.follow(leader.log)

    assert len(follower.jobs()) == 1
    assert follower.state() == leader.state()


def test_the_job_is_made_on_the_shard_of_its_queue() -> None:
    shards = Shards(3)
    queues = {shards.of_queue(queue).tables.errands.shard: queue for queue in ("mail", "sms", "video", "a", "b", "c")}
    assert len(queues) == 3
    for shard, queue in queues.items():
        shards.one(0, create(f"on-{shard}", shard + 1, queue=queue))

    fired = look_at_all(shards, NOW + MINUTE)

    assert fired == 3
    for shard, queue in queues.items():
        [job] = shards[shard].jobs()
        assert (job.queue, job.id[:4]) == (queue, f"s{shard:02d}_")
    shards.check()


@pytest.mark.parametrize("lost", ["delivery", "confirmation"])
def test_a_slot_makes_one_job_elsewhere_whichever_step_is_repeated(lost: str) -> None:
    shards = Shards(3)
    source = next(machine for machine in shards.machines if machine is not shards.of_queue("mail"))
    target = shards.of_queue("mail").tables.errands.shard
    source.apply(create())
    firings = schedules.due(source.tables, NOW + MINUTE)
    source.apply(FireSchedules(firings), at=NOW + MINUTE)

    if lost == "confirmation":
        shards.deliver(source, target)
    source.restart()
    source.apply(FireSchedules(firings))
    shards.carry()

    assert len(shards[target].jobs()) == 1
    shards.check()


def test_with_a_unique_key_a_slot_waits_for_nobody_but_makes_no_second_job() -> None:
    machine = Machine()
    machine.apply(create(unique_key="report"))

    assert [look(machine, NOW + minute * MINUTE) for minute in (1, 2)] == [1, 1]
    assert len(machine.jobs()) == 1

    machine.apply(fetch())
    machine.apply(ack(machine.jobs()[0].id))
    look(machine, NOW + 3 * MINUTE)
    assert len(machine.jobs()) == 2
