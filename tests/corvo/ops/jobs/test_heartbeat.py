"""Heartbeat: leases are renewed, and workers learn when to stop."""

import msgspec
import pytest

from corvo.model.errors import Refusal, Refused
from corvo.model.events import EventKind
from corvo.model.job_extras import JobExtras
from corvo.model.json_input import decode_body
from corvo.model.lifecycle import State
from corvo.model.limits import HEARTBEAT_JOBS_MAX, PROGRESS_TOLD_BYTES_MAX
from corvo.ops.jobs import heartbeat as module
from corvo.ops.jobs.approve import Approve
from corvo.ops.jobs.delete import Delete
from corvo.ops.jobs.fetch import WORKER_SEEN_EVERY_NS
from corvo.ops.jobs.heartbeat import HeartbeatBody, HeartbeatJob, Pulse
from corvo.ops.jobs.hold import Hold
from tests.support.builders import (
    NOW,
    SECOND,
    ack,
    an_asking,
    cancel,
    enqueue,
    fail,
    fetch,
    heartbeat,
    job_id,
    reclaim,
    ring,
)
from tests.support.event_kinds import events_of, kinds_of
from tests.support.machine import Machine, nothing_changes

PLAN = {endpoint.name: endpoint.plan for endpoint in module.ENDPOINTS}


def with_active_job() -> Machine:
    machine = Machine()
    machine.apply(enqueue(1, checkpoint=b'{"c":0}'), fetch(lease_ms=10_000))
    return machine


@pytest.mark.parametrize("token", [0, 1])
def test_a_beat_renews_the_lease_by_the_span_it_was_claimed_with(token: int) -> None:
    machine = with_active_job()

    assert machine.one(heartbeat(1, token=token), at=NOW + 9 * SECOND) == [Pulse.OK]

    assert machine.job(1).lease_expires_at == NOW + 19 * SECOND
    assert machine.one(reclaim(), at=NOW + 19 * SECOND - 1) == 0
    assert machine.one(reclaim(), at=NOW + 19 * SECOND) == 1
    machine.check()


def test_a_renewed_lease_is_renewed_after_a_restart_too() -> None:
    machine = with_active_job()
    machine.apply(heartbeat(1), at=NOW + 9 * SECOND)
    machine.flush()

    machine.restart()

    assert machine.one(reclaim(), at=NOW + 19 * SECOND - 1) == 0


def test_progress_and_checkpoint_are_kept_and_kept_when_not_sent() -> None:
    machine = with_active_job()

    machine.apply(heartbeat(1, progress=b'{"p":1}'))
    assert (machine.job(1).progress, machine.job(1).checkpoint) == (b'{"p":1}', b'{"c":0}')

    machine.apply(heartbeat(1, checkpoint=b'{"c":1}'))
    assert (machine.job(1).progress, machine.job(1).checkpoint) == (b'{"p":1}', b'{"c":1}')


# What happened before · token · what the worker is told
STOPS = {
    "no such job": ([], 7, 1, Pulse.CANCEL),
    "no such job, no token": ([], 7, 0, Pulse.CANCEL),
    "cancelled": ([cancel(1)], 1, 1, Pulse.CANCEL),
    "cancelled, no token": ([cancel(1)], 1, 0, Pulse.CANCEL),
    "held": ([Hold(3, job_id(1))], 1, 1, Pulse.CANCEL),
    "held, no token": ([Hold(3, job_id(1))], 1, 0, Pulse.CANCEL),
    "held and approved": ([Hold(3, job_id(1)), Approve(4, job_id(1))], 1, 1, Pulse.LEASE_LOST),
    "deleted": ([Delete(job_id(1))], 1, 1, Pulse.CANCEL),
    "cancelled under a newer lease": ([reclaim(), fetch(claim=2), cancel(1)], 1, 1, Pulse.LEASE_LOST),
    "lease over": ([reclaim()], 1, 1, Pulse.LEASE_LOST),
    "lease over, no token": ([reclaim()], 1, 0, Pulse.CANCEL),
    "claimed by another since": ([reclaim(), fetch(claim=2)], 1, 1, Pulse.LEASE_LOST),
    "a token not yet given": ([], 1, 2, Pulse.LEASE_LOST),
    "completed": ([ack(1)], 1, 1, Pulse.LEASE_LOST),
    "failed": ([fail(1)], 1, 1, Pulse.LEASE_LOST),
}


@pytest.mark.parametrize("case", STOPS)
def test_a_worker_that_holds_nothing_is_told_to_stop_and_nothing_changes(case: str) -> None:
    before, job, token, pulse = STOPS[case]
    machine = with_active_job()
    machine.apply(*before, at=NOW + 10 * SECOND)

    with nothing_changes(machine):
        assert machine.one(heartbeat(job, token=token, progress=b'{"p":9}')) == [pulse]


def test_each_beat_is_answered_for_itself() -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2), fetch(count=2), cancel(2))

    assert machine.one(heartbeat(1, 2, 7, token=1)) == [Pulse.OK, Pulse.CANCEL, Pulse.CANCEL]


@pytest.mark.parametrize(("later_ns", "is_seen"), [(WORKER_SEEN_EVERY_NS - 1, False), (WORKER_SEEN_EVERY_NS, True)])
def test_a_beating_worker_is_seen_now_and_then(later_ns: int, is_seen: bool) -> None:
    machine = with_active_job()

    machine.apply(heartbeat(1), at=NOW + later_ns)

    worker = machine.tables.find_worker("w1")
    assert worker.last_seen_at == (NOW + later_ns if is_seen else NOW)
    assert worker.started_at == NOW


def test_progress_is_told_when_it_was_sent() -> None:
    machine = with_active_job()

    machine.apply(heartbeat(1), heartbeat(1, progress=b'{"p":1}'), heartbeat(1, checkpoint=b'{"c":1}'))

    told = [event for event in events_of(machine) if event.kind is EventKind.PROGRESS]
    assert [(event.job_id, event.data) for event in told] == [(job_id(1), b'{"p":1}')]


def test_an_active_job_past_its_time_expires_at_its_heartbeat() -> None:
    machine = Machine()
    machine.apply(enqueue(1, extras=JobExtras(expire_after_ms=5_000)), fetch(lease_ms=10_000))
    assert machine.one(heartbeat(1, token=1), at=NOW + 5 * SECOND - 1) == [Pulse.OK]

    machine.apply(ring(), at=NOW + 5 * SECOND)
    assert machine.job(1).state is State.ACTIVE, "its worker is let go on until it asks"
    assert machine.one(heartbeat(1, token=1)) == [Pulse.CANCEL]

    assert machine.job(1).state is State.DEAD
    assert [(error.claim, error.worker_id) for error in machine.tables.errors(job_id(1))] == [(1, "w1")]
    assert kinds_of(machine)[-1] is EventKind.EXPIRED
    machine.check()


def test_a_job_whose_alarm_rang_while_it_was_active_expires_when_it_waits_again() -> None:
    machine = Machine()
    machine.apply(enqueue(1, extras=JobExtras(expire_after_ms=5_000)), fetch(lease_ms=10_000))
    machine.apply(ring(), at=NOW + 6 * SECOND)

    machine.apply(fail(1, token=1), at=NOW + 7 * SECOND)
    assert machine.job(1).state is State.RETRYING
    machine.apply(ring())

    assert machine.job(1).state is State.DEAD
    assert [error.claim for error in machine.tables.errors(job_id(1))] == [1, 2], "the failure is not written over"


def test_the_first_beat_of_a_worker_that_claims_ahead_says_that_it_has_begun() -> None:
    machine = Machine()
    machine.apply(enqueue(1), fetch(lease_ms=10_000, is_two_phase=True))
    assert (machine.job(1).extras.claimed_at, machine.job(1).started_at) == (NOW, 0)

    machine.apply(heartbeat(1, token=1), at=NOW + SECOND)
    machine.apply(heartbeat(1, token=1), at=NOW + 2 * SECOND)

    assert (machine.job(1).extras.claimed_at, machine.job(1).started_at) == (NOW, NOW + SECOND)
    assert kinds_of(machine).count(EventKind.RUNNING) == 1


def test_a_beat_for_a_job_that_was_not_reached_is_unknown() -> None:
    plan = PLAN["heartbeat"](an_asking(), HeartbeatBody({job_id(1): HeartbeatJob()}))

    answer = plan.conclude([[Refused("SHARD_UNAVAILABLE", "away")]])

    assert msgspec.to_builtins(answer.body) == {"jobs": {job_id(1): {"status": "unknown"}}}


def test_beats_are_spread_over_shards_and_strangers_answered_without_asking() -> None:
    known = [job_id(1, shard=0), job_id(2, shard=1)]
    body = HeartbeatBody(
        {
            known[1]: HeartbeatJob(lease_token=3),
            "nonsense": HeartbeatJob(),
            known[0]: HeartbeatJob(),
            "x": HeartbeatJob(lease_token=1),
        }
    )

    plan = PLAN["heartbeat"](an_asking(), body)

    assert [(shard, [beat.job_id for beat in operation.beats]) for shard, operation in plan.calls] == [
        (1, [known[1]]),
        (0, [known[0]]),
    ]
    answer = plan.conclude([[Pulse.CANCEL], [Pulse.OK]])
    assert list(msgspec.to_builtins(answer.body)["jobs"].items()) == [
        (known[1], {"status": "cancel"}),
        ("nonsense", {"status": "cancel"}),
        (known[0], {"status": "ok"}),
        ("x", {"status": "lease_lost"}),
    ]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"jobs": {}}, "jobs"),
        ({"jobs": {str(number): {} for number in range(HEARTBEAT_JOBS_MAX + 1)}}, "jobs"),
        ({}, "jobs"),
        ({"jobs": {"a": {"lease_token": 0}}}, "jobs[...].lease_token"),
    ],
)
def test_a_bad_body_is_refused_with_its_field(body: dict, field: str) -> None:
    with pytest.raises(Refusal) as refused:
        decode_body(msgspec.json.Decoder(HeartbeatBody), msgspec.json.encode(body))

    assert refused.value.field == field


def test_long_progress_is_kept_with_the_job_and_told_without_its_text() -> None:
    machine = Machine()
    machine.apply(enqueue(1), fetch())
    short = b'{"p":"%b"}' % (b"x" * (PROGRESS_TOLD_BYTES_MAX - 8))
    long = b'{"p":"%b"}' % (b"x" * (PROGRESS_TOLD_BYTES_MAX - 7))

    machine.apply(heartbeat(1, progress=short), heartbeat(1, progress=long))

    assert machine.job(1).progress == long
    assert [event.data for event in events_of(machine)[-2:]] == [short, b""]


def test_progress_must_be_an_object() -> None:
    body = HeartbeatBody({job_id(1): HeartbeatJob(progress=msgspec.Raw(b"[1]"))})

    with pytest.raises(Refusal) as refused:
        PLAN["heartbeat"](an_asking(), body)

    assert refused.value.field == f"jobs.{job_id(1)}.progress"
