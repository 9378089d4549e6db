"""Delete: a job goes, and all that is known of it."""

import pytest

from corvo.endpoint import Answer, Plan
from corvo.model.errors import Refusal
from corvo.model.events import EventKind
from corvo.model.job_extras import JobExtras
from corvo.model.lifecycle import STATE_NAMES, State
from corvo.ops.jobs.actions import Done
from corvo.ops.jobs.delete import ENDPOINTS, Delete
from corvo.ops.jobs.heartbeat import Pulse
from corvo.queries.unknown_jobs import FindUnknown
from corvo.state import keys
from tests.support.builders import an_asking, enqueue, heartbeat, job_id
from tests.support.courier_sockets import a_machine_with
from tests.support.event_kinds import kinds_of
from tests.support.machine import Machine, nothing_changes


@pytest.mark.parametrize("state", State, ids=STATE_NAMES)
def test_a_job_in_any_state_is_deleted_with_its_errors_and_keys(state: State) -> None:
    machine = a_machine_with(state, extras=JobExtras(unique_key="k", idempotency_key="i"))

    machine.apply(Delete(job_id(1)))

    assert machine.tables.find_job(job_id(1)) is None
    kept = machine.records()
    for family in (keys.JOBS, keys.JOB_ERRORS, keys.UNIQUE, keys.IDEMPOTENT):
        assert not [key for key in kept if key.startswith(family)]
    assert kinds_of(machine)[-1] is EventKind.DELETED
    machine.check()
    with nothing_changes(machine):
        assert machine.one(Delete(job_id(1))) is None, "the same request once more"


def test_the_worker_of_a_deleted_job_is_told_to_stop() -> None:
    machine = a_machine_with(State.ACTIVE)
    machine.apply(Delete(job_id(1)))

    with nothing_changes(machine):
        assert machine.one(heartbeat(1, token=1)) == [Pulse.CANCEL]


def test_a_job_that_waits_for_a_deleted_one_is_lost_with_it() -> None:
    machine = a_machine_with(State.PENDING)
    machine.apply(enqueue(2, extras=JobExtras(waits_for=(job_id(1),))))

    machine.apply(Delete(job_id(1)))

    assert machine.job(2).state is State.DEAD


def test_an_unknown_job_is_refused_before_anything_is_asked() -> None:
    [endpoint] = ENDPOINTS
    assert endpoint.plan is not None
    plan = endpoint.plan(an_asking(1), None, job_id(1))
    assert plan.calls == [(0, FindUnknown([job_id(1)]))]

    with pytest.raises(Refusal) as refused:
        plan.conclude([[job_id(1)]])
    assert refused.value.code == "JOB_NOT_FOUND"

    then = plan.conclude([[]])
    assert isinstance(then, Plan)
    assert then.calls == [(0, Delete(job_id(1)))]
    assert then.conclude([None]) == Answer(200, Done("deleted"))


def test_a_job_that_has_moved_is_deleted_where_it_is() -> None:
    machine = Machine(shard=0, shard_count=2)
    with machine.by_hand() as tables:
        tables.put(keys.forwarded(job_id(1)), keys.pack_forwarding(1, 0))

    with nothing_changes(machine):
        assert machine.one(Delete(job_id(1))).code == "JOB_MOVED"
