"""MakeJob: a job for a queue of this shard, asked for by another one."""

from corvo.model.job_extras import JobExtras
from corvo.model.lifecycle import State
from corvo.ops.upkeep.deliver import Deliver
from corvo.rules.errands.make_job import MakeJob
from corvo.rules.job_creation import NewJob, derived_id
from corvo.wire import encode
from tests.support.builders import MS, NOW, a_job, ack, cancel, fetch, job_id
from tests.support.machine import Machine

NEW = NewJob(job_id(1), "mail", b'{"n":1}', parent_id=job_id(9, 1))


def deliver(machine: Machine, number: int, new: NewJob = NEW) -> int:
    done: int = machine.one(Deliver(1, number, [encode(MakeJob(new))]), at=NOW + number * MS)
    return done


def test_the_job_is_born_here_at_the_time_of_this_shard() -> None:
    machine = Machine(0, 2)

    assert deliver(machine, 1) == 1

    born = machine.job(1)
    assert born == a_job(1, payload=b'{"n":1}', parent_id=job_id(9, 1), created_at=NOW + MS, position=born.position)
    assert machine.queue().enqueued == 1
    machine.check()


def test_the_same_errand_once_more_makes_nothing() -> None:
    machine = Machine(0, 2)
    deliver(machine, 1)

    assert deliver(machine, 1) == 1

    assert len(machine.jobs()) == machine.queue().enqueued == 1


def test_an_errand_out_of_turn_is_left_for_later() -> None:
    machine = Machine(0, 2)

    assert deliver(machine, 2) == 0

    assert machine.jobs() == []


def test_a_job_of_this_id_that_lives_is_left_alone_in_whatever_state() -> None:
    machine = Machine(0, 2)
    deliver(machine, 1)
    machine.apply(fetch(), ack(1))

    deliver(machine, 2)

    assert machine.job(1).state == State.COMPLETED
    assert machine.queue().enqueued == 1


def test_a_key_that_another_job_holds_leads_to_that_job() -> None:
    machine = Machine(0, 2)
    deliver(machine, 1, NewJob(job_id(1), "mail", b"{}", extras=JobExtras(unique_key="k")))

    deliver(machine, 2, NewJob(job_id(2), "mail", b"{}", extras=JobExtras(unique_key="k")))
    machine.one(cancel(1))
    deliver(machine, 3, NewJob(job_id(3), "mail", b"{}", extras=JobExtras(unique_key="k")))

    assert [job.id for job in machine.jobs()] == [job_id(1), job_id(3)]


def test_derived_ids_are_ids_of_their_shard_and_differ_by_every_name() -> None:
    made = {derived_id(3, *names) for names in (("a", 1), ("a", 11), ("a", -1), ("a1", 1), ("b", 1), ("a",))}

    assert len(made) == 6
    assert all(name.startswith("s03_job_") and len(name) == len(job_id(1)) for name in made)
    assert derived_id(3, "a", 1) in made
