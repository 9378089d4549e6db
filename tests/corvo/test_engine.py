"""One entry of operations: results in order, refusals as results, everything else stops the replica."""

from typing import Any

import pytest

from corvo import engine
from corvo.endpoint import Compound, Operation, Steps
from corvo.engine import apply_entry
from corvo.model.errors import Corrupt, Refusal, Refused
from corvo.model.job_extras import JobExtras, Outcome
from corvo.model.lifecycle import State
from corvo.ops.bulk.act_on_jobs import ActOnJobs
from corvo.ops.upkeep.deliver import Deliver
from corvo.ops.upkeep.ring import Ring
from corvo.rules.bulk import Action, Order
from corvo.rules.errands.make_job import MakeJob
from corvo.rules.errands.watch import Ended
from corvo.state.kv import MemoryKV
from corvo.state.tables import Tables
from corvo.wire import encode
from tests.support.builders import NOW, SECOND, ack, cancel, enqueue, fetch, job_id, new_job
from tests.support.machine import Machine, nothing_changes


def test_results_come_in_the_order_of_the_operations() -> None:
    machine = Machine()

    born, claims, acked = machine.apply(enqueue(1), fetch(), ack(1))

    assert born == [State.PENDING]
    assert claims[0].lease_token == 1
    assert acked == [None]


def test_a_refusal_is_a_result_and_the_next_operation_goes_on() -> None:
    machine = Machine()

    refused, born = machine.apply(cancel(1), enqueue(1))

    assert isinstance(refused, Refused)
    assert (refused.code, refused.message) == ("JOB_NOT_FOUND", refused.message)
    assert born == [State.PENDING]


def test_an_entry_of_refusals_changes_nothing() -> None:
    machine = Machine()
    machine.apply(enqueue(1))

    with nothing_changes(machine):
        machine.apply(cancel(7), ack(7), cancel(8))


def test_an_empty_entry_moves_the_marker_only() -> None:
    tables = Tables(MemoryKV())

    results, changes = apply_entry(tables, 1, 3, NOW, [])

    assert (results, changes.writes, changes.woken) == ([], {}, set())
    assert (tables.applied.index, tables.applied.term, tables.applied.now) == (1, 3, NOW)


def test_what_is_no_refusal_is_not_caught() -> None:
    class Broken(Operation, tag=99_999):
        def apply(self, tables: Tables) -> None:
            raise KeyError("an invariant")

    with pytest.raises(KeyError):
        apply_entry(Tables(MemoryKV()), 1, 1, NOW, [Broken()])


def test_indexes_may_skip_because_raft_has_entries_of_its_own() -> None:
    tables = Tables(MemoryKV())

    apply_entry(tables, 1, 1, NOW, [])
    apply_entry(tables, 5, 1, NOW, [])

    assert tables.applied.index == 5


# Cascades: after each operation, and after each step of a compound one.


class TwoJobs(Compound, tag=99_998):
    """Ends job 1, which holds a key; then makes job 2, which needs the key."""

    def steps(self, tables: Tables) -> Steps[tuple[Any, Any]]:
        ended = yield cancel(1).apply
        made = yield enqueue(new_job(2, extras=JobExtras(unique_key="k"))).apply
        return ended, made


def a_machine_with_a_key() -> Machine:
    machine = Machine()
    machine.one(enqueue(new_job(1, extras=JobExtras(unique_key="k"))))
    return machine


def test_a_step_sees_the_consequences_of_the_one_before() -> None:
    machine = a_machine_with_a_key()

    [(ended, made)], _ = apply_entry(machine.tables, 2, 1, NOW, [TwoJobs()])

    assert (ended, made) == (False, [State.PENDING])


def test_a_refused_step_is_for_the_operation_to_handle() -> None:
    class Careful(Compound, tag=99_997):
        def steps(self, tables: Tables) -> Steps[str]:
            try:
                yield cancel(7).apply
            except Refusal as refusal:
                return refusal.code
            return ""

    class Careless(Compound, tag=99_996):
        def steps(self, tables: Tables) -> Steps[None]:
            yield cancel(7).apply

    careful, careless = apply_entry(Tables(MemoryKV()), 1, 1, NOW, [Careful(), Careless()])[0]

    assert careful == careless.code == "JOB_NOT_FOUND"


def test_an_entry_is_not_sealed_before_its_cascades_have_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard behind the rule that only the engine runs them: what somebody forgets stops the replica."""
    machine = a_machine_with_a_key()
    monkeypatch.setattr(engine, "run_cascades", lambda tables: None)

    with pytest.raises(Corrupt, match="cascades"):
        machine.one(cancel(1))


def dead_and_waiting() -> Machine:
    """Job 1 is active and holds a key; job 2 waits for it, and would be lost with it."""
    machine = a_machine_with_a_key()
    machine.apply(fetch(), enqueue(new_job(2, extras=JobExtras(waits_for=(job_id(1),)))))
    return machine


def test_each_job_of_a_bulk_action_sees_what_became_of_those_before_it() -> None:
    machine = dead_and_waiting()

    act = ActOnJobs("bulk_" + "0" * 26, 1, Order(Action.CANCEL), [job_id(1), job_id(2)], 1_000)

    assert [refused and refused.code for refused in machine.one(act)] == [None, "WRONG_STATE"], "job 2 is dead by then"


def test_each_delivered_errand_sees_what_became_of_those_before_it() -> None:
    machine = Machine(0, 2)
    other = job_id(9, shard=1)
    waiting = JobExtras(unique_key="k", waits_for=(other,))
    machine.one(enqueue(new_job(1, extras=waiting)))

    ended = Ended(other, Outcome.DEAD, job_id(1))
    machine.one(Deliver(1, 1, [encode(ended), encode(MakeJob(new_job(2, extras=JobExtras(unique_key="k"))))]))

    assert machine.job(1).state is State.DEAD
    assert machine.job(2).state is State.PENDING, "the key was free by then"


def test_each_alarm_sees_what_became_of_those_before_it() -> None:
    machine = Machine()
    first = JobExtras(expire_after_ms=1_000)
    machine.one(enqueue(new_job(1, extras=first)))
    machine.one(enqueue(new_job(2, extras=JobExtras(waits_for=(job_id(1),), expire_after_ms=2_000))))

    machine.one(Ring(), at=NOW + 3 * SECOND)

    [note] = machine.tables.errors(job_id(2))
    assert "waited for" in note.error, "lost with job 1, before its own alarm"
