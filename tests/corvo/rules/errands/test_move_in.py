"""MoveIn: a job arrives with all that belongs to it. The whole way of a job is in `ops/jobs/test_move.py`."""

import pytest

from corvo.model.events import EventKind
from corvo.model.job import JobError
from corvo.model.job_extras import JobExtras
from corvo.model.lifecycle import SETTLED, STATE_NAMES, State
from corvo.ops.upkeep.deliver import Deliver
from corvo.rules.errands.move_in import MoveIn
from corvo.state import keys
from corvo.wire import encode
from tests.support.builders import MS, NOW, SECOND, a_job, job_id, ring
from tests.support.event_kinds import events_of
from tests.support.machine import Machine


def arrived(state: State = State.PENDING, extras: JobExtras | None = None, watchers: tuple[str, ...] = ()) -> Machine:
    machine = Machine(shard=1, shard_count=2)
    due_at = NOW + SECOND if state in (State.SCHEDULED, State.RETRYING) else 0
    job = a_job(state=state, queue="mail", extras=extras, due_at=due_at, lease_token=1, completed_at=NOW, failed_at=NOW)
    error = JobError(job.id, 1, 1, "boom", "", NOW, "w1", NOW)
    errand = MoveIn(job, [error], list(watchers), b'{"from":"far"}')
    assert machine.one(Deliver(0, 1, [encode(errand)])) == 1
    return machine


@pytest.mark.parametrize("state", [state for state in State if state is not State.ACTIVE], ids=STATE_NAMES.__getitem__)
def test_a_job_is_filed_by_its_state_with_its_history(state: State) -> None:
    machine = arrived(state)

    assert machine.queue("mail").counts[state] == 1
    assert [error.error for error in machine.tables.errors(job_id(1))] == ["boom"]
    event = events_of(machine)[-1]
    assert (event.kind, event.queue, event.data) == (EventKind.MOVED, "mail", b'{"from":"far"}')
    assert machine.queue("mail").enqueued == 0, "it was enqueued once, elsewhere"
    machine.check()


@pytest.mark.parametrize("state", [State.PENDING, *sorted(SETTLED)], ids=STATE_NAMES.__getitem__)
def test_it_takes_its_keys_if_they_are_free(state: State) -> None:
    machine = arrived(state, JobExtras(unique_key="k", idempotency_key="i"))

    assert machine.tables.overlay.get(keys.idempotent("mail", "i")) == job_id(1).encode()
    assert (machine.tables.overlay.get(keys.unique("mail", "k")) is not None) == (state not in SETTLED)


def test_a_settled_job_is_kept_for_a_while() -> None:
    machine = arrived(State.DEAD)

    machine.apply(ring(), at=NOW + machine.tables.retention_ms(machine.job(1)) * MS)

    assert machine.tables.find_job(job_id(1)) is None


def test_those_that_wait_for_it_are_known() -> None:
    machine = arrived(watchers=(job_id(5),))

    assert keys.watcher(job_id(1), job_id(5)) in machine.records()
