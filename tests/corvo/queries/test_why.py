"""Why is it not running? One test for each reason."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from corvo.model.errors import Refusal
from corvo.model.job import Controls, Priority
from corvo.model.job_extras import JobExtras
from corvo.model.lifecycle import STATE_NAMES, State, Verb
from corvo.model.timestamps import to_rfc3339
from corvo.queries import why as why_module
from corvo.queries.why import REASONS, Demand, Why
from corvo.state.tables import Tables
from corvo.state.transitions import change
from corvo.wire import decode_result, reply_to
from tests.docs.pages import ROOT
from tests.support.builders import NOW, SECOND, ack, an_asking, cancel, enqueue, fail, fetch, job_id, new_job
from tests.support.machine import Machine

MINUTE = 60 * SECOND
ASKED = Demand(NOW, True, NOW, NOW - MINUTE)  # a worker waits right now


def why(machine: Machine, job: int = 1, demand: Demand = ASKED) -> dict[str, Any]:
    view = decode_result(Why, reply_to(1, Why(job_id(job)).explain(machine.tables, lambda queue: demand)))
    shown: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(view))
    assert shown["reason"] in REASONS
    assert shown["message"]
    assert shown["job_id"] == job_id(job)
    assert shown["state"] == STATE_NAMES[machine.job(job).state]
    return shown


def controlled(machine: Machine, **controls: Any) -> None:
    """What the operations of queues do, in an entry of its own."""
    _alter(machine, lambda tables: setattr(tables.queue("mail"), "controls", Controls(**controls)))


def _alter(machine: Machine, alter: Callable[[Tables], object]) -> None:
    machine.log.append(b"")
    machine.tables.begin(len(machine.log), 1, machine.now)
    alter(machine.tables)
    machine.tables.seal()


@pytest.fixture
def machine() -> Machine:
    machine = Machine()
    machine.one(enqueue(1))
    return machine


# The gates of a queue


def test_the_queue_is_paused(machine: Machine) -> None:
    controlled(machine, is_paused=True)

    told = why(machine)

    assert told["reason"] == "PAUSED"
    assert told["message"] == "the queue mail is paused; resume it to let its jobs run"


def test_the_queue_is_draining(machine: Machine) -> None:
    machine.apply(fetch(), enqueue(2))
    controlled(machine, is_draining=True)

    told = why(machine, 2)

    assert (told["reason"], told["active"]) == ("DRAINING", 1)
    assert told["message"] == "the queue mail is draining: 1 of its jobs still run, none start until it is resumed"


def test_the_queue_is_drained(machine: Machine) -> None:
    controlled(machine, is_draining=True)

    told = why(machine)

    assert (told["reason"], told["active"]) == ("DRAINING", 0)
    assert told["message"] == "the queue mail is drained: none of its jobs run, and none start until it is resumed"


def test_as_many_are_active_as_may_be(machine: Machine) -> None:
    machine.apply(enqueue(*range(2, 7)), fetch(count=5))
    controlled(machine, max_concurrency=5)

    told = why(machine, 6)

    assert (told["reason"], told["active"], told["max_concurrency"]) == ("CONCURRENCY", 5, 5)
    assert "concurrency 5/5" in told["message"]


def test_the_queue_is_throttled_until_its_window_has_room(machine: Machine) -> None:
    controlled(machine, rate=2, window_ms=10_000)
    machine.one(enqueue(2, 3))
    machine.one(fetch(count=2), at=NOW + SECOND)

    told = why(machine, 3, ASKED._replace(now=NOW + 2 * SECOND))

    assert (told["reason"], told["rate"], told["window_ms"]) == ("THROTTLED", 2, 10_000)
    assert told["until"] == to_rfc3339(NOW + 11 * SECOND)
    assert "throttled until 2026-01-01T00:00:11Z" in told["message"]
    later = why(machine, 3, ASKED._replace(now=NOW + 11 * SECOND))
    assert later["reason"] == "NEXT", "by the leader's clock, although no entry came since"


def test_of_several_reasons_the_others_are_named(machine: Machine) -> None:
    controlled(machine, is_paused=True, max_concurrency=1)
    machine.one(enqueue(2))
    _alter(machine, lambda tables: tables.queue("mail").counts.__setitem__(State.ACTIVE, 1))

    told = why(machine, 2, Demand(NOW, False, 0, NOW - MINUTE))

    assert (told["reason"], told["also"]) == ("PAUSED", ["CONCURRENCY", "NO_WORKER"])
    assert told["jobs_ahead"]["count"] == 1


# Those who ask


def test_nobody_has_asked_for_a_while(machine: Machine) -> None:
    told = why(machine, demand=Demand(NOW, False, NOW - 40 * SECOND, NOW - MINUTE))

    assert (told["reason"], told["workers_waiting"]) == ("NO_WORKER", False)
    assert told["last_asked_at"] == to_rfc3339(NOW - 40 * SECOND)
    assert told["message"] == "no worker has asked for the queue mail for 40 s; no job is ahead of it"


def test_nobody_has_asked_since_the_leader_took_over(machine: Machine) -> None:
    told = why(machine, demand=Demand(NOW, False, 0, NOW - 3600 * SECOND))

    assert told["reason"] == "NO_WORKER"
    assert "last_asked_at" not in told
    assert told["known_since"] == to_rfc3339(NOW - 3600 * SECOND)
    assert "since this leader took over 1:00:00 ago" in told["message"]


def test_a_worker_that_asked_a_moment_ago_counts(machine: Machine) -> None:
    told = why(machine, demand=Demand(NOW, False, NOW - SECOND, NOW - MINUTE))

    assert (told["reason"], told["message"]) == ("NEXT", "it is next: a worker asked for the queue mail 1 s ago")


def test_workers_are_waiting(machine: Machine) -> None:
    told = why(machine)

    assert (told["reason"], told["message"]) == ("NEXT", "it is next: workers are waiting")


# Those that stand before it


def test_jobs_ahead_are_those_of_higher_priority_and_the_older_ones() -> None:
    machine = Machine()
    machine.one(enqueue(*range(1, 1_204)))
    machine.one(enqueue(2_000))
    machine.one(enqueue(new_job(2_001, priority=Priority.HIGH), new_job(2_002, priority=Priority.CRITICAL)))
    machine.one(enqueue(3_000, queue="other"))
    machine.one(enqueue(2_003))

    told = why(machine, 2_000)

    assert told["reason"] == "JOBS_AHEAD"
    assert told["jobs_ahead"] == {
        "count": 1_205,
        "is_exact": True,
        "by_priority": {"critical": 1, "high": 1, "normal": 1_203},
    }
    assert told["message"] == "1,205 jobs are ahead of it (1 critical, 1 high, 1,203 normal)"
    assert why(machine, 2_001)["jobs_ahead"]["by_priority"] == {"critical": 1}
    assert why(machine, 2_002)["reason"] == "NEXT"
    machine.one(fetch(count=512))
    assert why(machine, 2_000)["jobs_ahead"]["count"] == 1_205 - 512, "what was claimed is not ahead any more"


@pytest.mark.parametrize(("bound", "is_exact"), [(2, False), (3, True), (4, True)])
def test_they_are_counted_up_to_a_bound(bound: int, is_exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(why_module, "AHEAD_COUNTED_MAX", bound)
    machine = Machine()
    machine.one(enqueue(new_job(1, priority=Priority.HIGH), 2, 3, 4))

    ahead = why(machine, 4)["jobs_ahead"]

    assert (ahead["count"], ahead["is_exact"]) == (min(bound, 3), is_exact)
    assert ("more than 2 jobs" in why(machine, 4)["message"]) == (not is_exact)


# The other states


def test_it_waits_for_other_jobs(machine: Machine) -> None:
    machine.one(enqueue(2))
    machine.one(enqueue(new_job(3, extras=JobExtras(waits_for=(job_id(1), job_id(2))))))
    machine.one(enqueue(new_job(4, extras=JobExtras(waits_for=(job_id(1),)), scheduled_at=NOW + MINUTE)))

    both, one = why(machine, 3), why(machine, 4)

    assert (both["reason"], both["waits_for"], both["waits_for_count"]) == (
        "WAITING_FOR_JOBS",
        [job_id(1), job_id(2)],
        2,
    )
    assert both["message"] == f"waiting for job {job_id(1)} and 1 other to complete"
    assert one["message"] == f"waiting for job {job_id(1)} to complete, and not before 2026-01-01T00:01:00Z"


def test_its_time_has_not_come() -> None:
    machine = Machine()
    machine.one(enqueue(1, scheduled_at=NOW + MINUTE))

    told = why(machine)

    assert (told["reason"], told["until"]) == ("SCHEDULED", to_rfc3339(NOW + MINUTE))
    assert told["message"] == "scheduled for 2026-01-01T00:01:00Z"


def test_it_is_retried_after_an_error(machine: Machine) -> None:
    machine.apply(fetch(), fail(1, error="the printer is on fire"))

    told = why(machine)

    assert (told["reason"], told["attempt"], told["max_retries"]) == ("RETRYING", 1, 3)
    assert (told["until"], told["last_error"]) == (to_rfc3339(NOW + 5 * SECOND), "the printer is on fire")
    assert "after attempt 1 of 3: the printer is on fire" in told["message"]


def test_it_is_held(machine: Machine) -> None:
    def hold(tables: Tables) -> None:
        job = tables.require_job(job_id(1))
        job.extras = JobExtras(hold_reason="over budget")
        change(tables, job, Verb.HOLD)

    _alter(machine, hold)

    told = why(machine)

    assert (told["reason"], told["hold_reason"]) == ("HELD", "over budget")
    assert told["message"] == "held: over budget; approve or reject it"


def test_it_is_running(machine: Machine) -> None:
    machine.one(fetch(worker="w7"))

    told = why(machine)

    assert (told["reason"], told["worker_id"], told["hostname"]) == ("RUNNING", "w7", "host")
    assert (told["since"], told["lease_expires_at"]) == (to_rfc3339(NOW), to_rfc3339(NOW + MINUTE))


def test_it_is_claimed_and_has_not_begun(machine: Machine) -> None:
    machine.one(fetch(is_two_phase=True))

    told = why(machine)

    assert (told["reason"], told["since"]) == ("RUNNING", to_rfc3339(NOW))
    assert told["message"].startswith("it is claimed and has not started: worker w")


def test_its_worker_was_asked_to_stop(machine: Machine) -> None:
    machine.one(fetch())

    def ask_to_stop(tables: Tables) -> None:
        tables.require_job(job_id(1)).extras = JobExtras(cancel_at=NOW + 30 * SECOND)

    _alter(machine, ask_to_stop)

    told = why(machine)

    assert (told["reason"], told["until"]) == ("CANCELLING", to_rfc3339(NOW + 30 * SECOND))
    assert "will be cancelled by 2026-01-01T00:00:30Z" in told["message"]


def test_it_is_done(machine: Machine) -> None:
    machine.apply(fetch(), ack(1))

    told = why(machine)

    assert (told["reason"], told["since"]) == ("COMPLETED", to_rfc3339(NOW))


def test_it_is_dead(machine: Machine) -> None:
    machine.one(enqueue(2, max_retries=1, queue="sms"))
    machine.apply(fetch("sms"), fail(2, error="boom"))

    told = why(machine, 2)

    assert (told["reason"], told["since"], told["last_error"]) == ("DEAD", to_rfc3339(NOW), "boom")


def test_it_was_cancelled(machine: Machine) -> None:
    machine.one(cancel(1))

    told = why(machine)

    assert (told["reason"], told["since"]) == ("CANCELLED", to_rfc3339(NOW))


def test_of_a_job_that_is_not_there_nothing_is_known(machine: Machine) -> None:
    with pytest.raises(Refusal) as raised:
        Why(job_id(9)).read(machine.tables)
    assert raised.value.code == "JOB_NOT_FOUND"


def test_the_tables_alone_know_of_no_worker(machine: Machine) -> None:
    assert Why(job_id(1)).read(machine.tables).reason == "NO_WORKER"


def test_the_shard_that_holds_the_job_is_asked() -> None:
    (endpoint,) = why_module.ENDPOINTS
    assert endpoint.plan is not None
    plan = endpoint.plan(an_asking(4), None, job_id(1, shard=2))

    assert plan.calls == [(2, Why(job_id(1, shard=2)))]


def test_every_reason_stands_in_the_guide() -> None:
    guide = (ROOT / "docs/how-to/why-not-running.md").read_text()

    assert [code for code in REASONS if f"`{code}`" not in guide] == []
