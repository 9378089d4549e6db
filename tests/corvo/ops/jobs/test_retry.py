"""Retry: a job that has ended runs again, with all its attempts before it."""

from corvo.model.job_extras import JobExtras
from corvo.model.lifecycle import State
from corvo.model.timestamps import LATEST_NS
from corvo.ops.jobs.retry import Retry
from tests.support.builders import NOW, SECOND, ack, enqueue, fail, fetch, job_id, promote, ring
from tests.support.courier_sockets import a_machine_with
from tests.support.machine import Machine, nothing_changes

RETRY = Retry(9, job_id(1))


def test_a_dead_job_has_all_its_attempts_again_and_keeps_its_history() -> None:
    machine = a_machine_with(State.DEAD, checkpoint=b'{"c":1}')

    machine.apply(RETRY)

    job = machine.job(1)
    assert (job.attempt, job.failed_at, job.checkpoint) == (0, 0, b'{"c":1}')
    assert [error.error for error in machine.tables.errors(job.id)] == ["boom"]
    [claimed] = machine.one(fetch(claim=2))
    assert (claimed.attempt, claimed.lease_token) == (1, 2), "the token never goes back"


def test_a_completed_job_keeps_its_result_until_there_is_another() -> None:
    machine = a_machine_with(State.COMPLETED)

    machine.apply(RETRY)

    assert (machine.job(1).result, machine.job(1).completed_at) == (b"5", 0)


def test_a_scheduled_job_runs_at_once_and_not_again_when_it_would_have_been_due() -> None:
    machine = a_machine_with(State.SCHEDULED)

    machine.apply(RETRY)

    assert machine.job(1).due_at == 0
    assert len(machine.one(fetch())) == 1
    assert machine.one(promote(), at=NOW + 60 * SECOND) == 0
    machine.check()


def test_a_job_that_waits_for_others_waits_no_longer() -> None:
    machine = Machine()
    machine.apply(enqueue(2))
    machine.apply(enqueue(1, extras=JobExtras(waits_for=(job_id(2),))))
    assert machine.job(1).due_at == LATEST_NS

    machine.apply(RETRY)
    machine.apply(fetch(count=2), ack(2, ask=3))

    assert (machine.job(1).state, machine.job(1).extras.waits_for) == (State.ACTIVE, ())
    machine.check()


def test_a_retry_that_comes_again_after_the_job_has_run_and_ended_does_not_run_it_twice() -> None:
    machine = a_machine_with(State.COMPLETED)
    machine.apply(RETRY, fetch(claim=2), ack(1, ask=7, token=2))

    with nothing_changes(machine):
        assert machine.one(RETRY) is None
    assert machine.job(1).state is State.COMPLETED


def test_a_unique_key_is_taken_again_or_the_retry_is_refused() -> None:
    extras = {"extras": JobExtras(unique_key="k")}
    machine = a_machine_with(State.COMPLETED, **extras)
    machine.apply(RETRY)
    assert machine.one(enqueue(2, **extras))[0].job_id == job_id(1)

    machine = a_machine_with(State.COMPLETED, **extras)
    machine.apply(enqueue(2, **extras))
    with nothing_changes(machine):
        refused = machine.one(RETRY)
    assert (refused.code, job_id(2) in refused.message) == ("UNIQUE_CONFLICT", True)


def test_the_time_to_live_begins_anew() -> None:
    machine = Machine()
    machine.apply(enqueue(1, extras=JobExtras(expire_after_ms=5_000)))
    machine.apply(ring(), at=NOW + 5 * SECOND)
    assert machine.job(1).state is State.DEAD

    machine.apply(RETRY, at=NOW + 10 * SECOND)
    machine.apply(ring(), at=NOW + 15 * SECOND - 1)
    assert machine.job(1).state is State.PENDING
    machine.apply(ring(), at=NOW + 15 * SECOND)
    assert machine.job(1).state is State.DEAD


def test_what_the_worker_of_the_last_run_reports_is_refused() -> None:
    machine = a_machine_with(State.COMPLETED)
    machine.apply(RETRY)

    with nothing_changes(machine):
        assert machine.one(ack(1, ask=101, token=1))[0].code == "LEASE_LOST"
        assert machine.one(fail(1, ask=101, token=1))[0].code == "LEASE_LOST"
