"""Fetch: pending jobs are claimed under a lease, in order, by one worker at a time."""

from collections import Counter
from typing import Any

import msgspec
import pytest

from corvo.endpoint import Operation
from corvo.model.errors import Refusal
from corvo.model.job import Priority
from corvo.model.json_input import decode_body
from corvo.model.lifecycle import State
from corvo.model.limits import POLL_MS_MAX, WORKER_TIMEOUT_MS_DEFAULT
from corvo.ops.jobs.fetch import (
    WORKER_ALARM,
    WORKER_SEEN_EVERY_NS,
    Claimed,
    FetchBatchBody,
    FetchBody,
    fetched_job,
    new_fetch,
)
from corvo.ops.queues.pause_queue import PauseQueue
from corvo.ops.queues.set_concurrency import SetConcurrency
from corvo.ops.queues.set_throttle import SetThrottle
from corvo.ops.upkeep.ring import Ring
from tests.support.builders import MS, NOW, SECOND, ack, cancel, enqueue, fail, fetch, job_id, new_job, promote, reclaim
from tests.support.machine import Machine, nothing_changes


def claimed(machine: Machine, *queues: str, **fields: object) -> list[str]:
    return [claim.job_id for claim in machine.one(fetch(*queues, **fields))]


def test_a_claim_makes_the_job_active_under_a_lease() -> None:
    machine = Machine()
    machine.apply(enqueue(1, payload=b'{"to": "x"}', checkpoint=b"5", tags=b'{"a":"b"}'))

    [claim] = machine.one(fetch(worker="w1", claim=77, lease_ms=10_000), at=NOW + SECOND)

    assert claim == Claimed(job_id(1), "mail", b'{"to": "x"}', 1, 3, 10_000, 1, b"5", b'{"a":"b"}')
    job = machine.job(1)
    assert (job.state, job.worker_id, job.hostname, job.claim_id) == (State.ACTIVE, "w1", "host", 77)
    assert (job.started_at, job.lease_expires_at) == (NOW + SECOND, NOW + 11 * SECOND)
    machine.check()


@pytest.mark.parametrize("queues", [("nowhere",), ("empty",), ("nowhere", "empty")])
def test_an_empty_fetch_claims_nothing_and_changes_nothing(queues: tuple[str, ...]) -> None:
    machine = Machine()
    machine.apply(enqueue(1, queue="empty"), fetch("empty"), ack(1))

    with nothing_changes(machine):
        assert claimed(machine, *queues) == []


def test_a_scheduled_or_active_job_is_not_claimed() -> None:
    machine = Machine()
    machine.apply(enqueue(1, scheduled_at=NOW + SECOND), enqueue(2), fetch())

    with nothing_changes(machine):
        assert claimed(machine) == []


def test_within_a_queue_priority_comes_first_then_age() -> None:
    machine = Machine()
    machine.apply(
        enqueue(
            new_job(1, priority=Priority.NORMAL),
            new_job(2, priority=Priority.HIGH),
            new_job(3, priority=Priority.CRITICAL),
            new_job(4, priority=Priority.HIGH),
            new_job(5, priority=Priority.CRITICAL),
        )
    )

    assert claimed(machine, count=5) == [job_id(number) for number in (3, 5, 2, 4, 1)]


def test_queues_are_served_in_the_order_they_are_named() -> None:
    machine = Machine()
    machine.apply(
        enqueue(new_job(1, queue="a"), new_job(2, queue="b", priority=Priority.CRITICAL), new_job(3, queue="a"))
    )

    assert claimed(machine, "a", "b", count=3) == [job_id(1), job_id(3), job_id(2)]


def test_no_more_jobs_are_claimed_than_asked_for() -> None:
    machine = Machine()
    machine.apply(enqueue(*range(1, 6)))

    assert claimed(machine, count=2) == [job_id(1), job_id(2)]
    assert claimed(machine, count=9) == [job_id(3), job_id(4), job_id(5)]
    machine.check()


def test_the_cursor_moves_past_what_was_claimed_so_that_no_refill_wades_through_tombstones() -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2, 3))

    machine.apply(fetch(count=2))

    assert machine.queue().cursors == [0, 0, machine.job(2).position]


def test_a_cancelled_job_is_skipped() -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2, 3))
    assert claimed(machine) == [job_id(1)]
    machine.apply(cancel(2))

    assert claimed(machine) == [job_id(3)]


def test_no_job_is_claimed_twice_under_a_live_lease() -> None:
    machine = Machine()
    machine.apply(enqueue(1))

    assert claimed(machine, worker="w1", claim=1) == [job_id(1)]
    assert claimed(machine, worker="w2", claim=2) == []


def test_tokens_and_attempts_go_up_with_every_claim() -> None:
    machine = Machine()
    machine.apply(enqueue(1, max_retries=9))

    seen = []
    for round_number in range(4):
        [claim] = machine.one(fetch(claim=round_number + 1, lease_ms=1_000), at=machine.now + SECOND)
        seen.append((claim.attempt, claim.lease_token))
        machine.apply(reclaim(), at=machine.now + 2 * SECOND)

    assert seen == [(1, 1), (2, 2), (3, 3), (4, 4)]


def test_a_fetch_repeated_after_a_crash_finds_what_it_claimed_and_claims_no_more() -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2, 3))
    first = machine.one(fetch(claim=77, count=2))
    machine.flush()
    machine.restart()

    with nothing_changes(machine):
        assert machine.one(fetch(claim=77, count=2, is_repeated=True)) == first


def test_a_repeated_fetch_gives_only_what_is_still_held() -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2, 3))
    machine.apply(fetch(claim=77, count=2), ack(1))

    with nothing_changes(machine):
        assert claimed(machine, claim=77, count=2, is_repeated=True) == [job_id(2)]


def test_a_repeated_fetch_that_never_arrived_claims_as_if_it_were_the_first() -> None:
    machine = Machine()
    machine.apply(enqueue(1))

    assert claimed(machine, claim=77, is_repeated=True) == [job_id(1)]


def test_a_claim_remembers_who_settled_the_one_before_so_that_its_repetition_is_known() -> None:
    machine = Machine()
    machine.apply(enqueue(1, max_retries=5, base_delay_ms=0), fetch(), fail(1, ask=9))
    assert machine.job(1).settled_id == 9

    from_retry = machine.apply(promote(), fetch(claim=2))[1]

    assert [claim.lease_token for claim in from_retry] == [2]
    assert machine.job(1).settled_id == 9


def test_a_worker_is_known_with_all_queues_that_it_asked_for() -> None:
    machine = Machine()
    machine.apply(enqueue(1), enqueue(2))

    for claim in (1, 2):
        machine.one(fetch("mail", claim=claim, all_queues=["mail", "elsewhere"]))
        assert machine.tables.find_worker("w1").queues == ["mail", "elsewhere"]


def test_a_worker_is_known_from_its_first_claim() -> None:
    machine = Machine()
    machine.apply(enqueue(1))
    machine.apply(fetch("nowhere"))
    assert machine.tables.find_worker("w1") is None

    machine.apply(fetch("mail", "video"))

    worker = machine.tables.find_worker("w1")
    assert (worker.id, worker.hostname, worker.queues) == ("w1", "host", ["mail", "video"])
    assert worker.started_at == worker.last_seen_at == NOW


@pytest.mark.parametrize(
    ("second", "later_ns", "is_written"),
    [
        (fetch(claim=2), WORKER_SEEN_EVERY_NS - 1, False),
        (fetch(claim=2), WORKER_SEEN_EVERY_NS, True),
        (fetch("mail", "b", claim=2), 1, True),
        (fetch(claim=2, hostname="other"), 1, True),
    ],
    ids=["soon", "later", "other queues", "other host"],
)
def test_a_busy_worker_is_rewritten_only_now_and_then(second, later_ns: int, is_written: bool) -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2), fetch())

    machine.apply(second, at=NOW + later_ns)

    worker = machine.tables.find_worker("w1")
    assert worker.last_seen_at == (NOW + later_ns if is_written else NOW)
    assert worker.started_at == NOW


def test_a_body_becomes_a_fetch() -> None:
    body = FetchBatchBody(["a", "b", "a"], "w1", "host", timeout=1.5, lease_duration=2.25, count=7)

    operation = new_fetch(body, 77, body.count)

    assert operation == fetch("a", "b", claim=77, count=7, lease_ms=2_250, wait_ms=1_500)


def test_nobody_waits_longer_than_the_limit() -> None:
    assert new_fetch(FetchBody(["a"], "w1", timeout=3600), 1, 1).wait_ms == POLL_MS_MAX


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"queues": [], "worker_id": "w"}', "queues"),
        (b'{"queues": ["a|b"], "worker_id": "w"}', "queues[0]"),
        (b'{"queues": ["a"]}', "worker_id"),
        (b'{"queues": ["a"], "worker_id": "a b"}', "worker_id"),
        (b'{"queues": ["a"], "worker_id": "w", "lease_duration": 0.5}', "lease_duration"),
        (b'{"queues": ["a"], "worker_id": "w", "lease_duration": 43201}', "lease_duration"),
        (b'{"queues": ["a"], "worker_id": "w", "timeout": -1}', "timeout"),
        (b'{"queues": ["a"], "worker_id": "w", "count": 0}', "count"),
        (b'{"queues": ["a"], "worker_id": "w", "count": 513}', "count"),
    ],
)
def test_a_bad_body_is_refused_with_its_field(body: bytes, field: str) -> None:
    with pytest.raises(Refusal) as refused:
        decode_body(msgspec.json.Decoder(FetchBatchBody), body)

    assert refused.value.field == field


@pytest.mark.parametrize(("lease_ms", "shown"), [(60_000, b"60"), (1_500, b"1.5")])
def test_a_lease_of_whole_seconds_is_shown_as_a_whole_number(lease_ms: int, shown: bytes) -> None:
    claim = Claimed(job_id(1), "mail", b"{}", 1, 3, lease_ms, 1, b"", b"")

    assert b'"lease_duration":' + shown + b"," in msgspec.json.encode(fetched_job(claim))


def test_a_fetched_job_carries_payload_and_documents_to_the_byte() -> None:
    claim = Claimed(job_id(1), "mail", b'{"a" : 1}', 1, 3, 1_000, 1, b"", b'{"t" : 2}')

    shown = msgspec.json.encode(fetched_job(claim))

    assert b'"payload":{"a" : 1}' in shown
    assert b'"tags":{"t" : 2}' in shown
    assert msgspec.json.decode(shown).get("checkpoint") is None


def test_a_lease_lasts_as_long_as_was_asked() -> None:
    machine = Machine()
    machine.apply(enqueue(1), fetch(lease_ms=1_001))

    assert machine.one(reclaim(), at=NOW + 1_001 * MS - 1) == 0
    assert machine.one(reclaim(), at=NOW + 1_001 * MS) == 1


def test_an_answer_is_bounded_in_bytes_and_the_rest_stays_pending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corvo.ops.jobs.fetch.CLAIMED_BYTES_MAX", 100)
    machine = Machine()
    machine.apply(*(enqueue(number, payload=b'"' + b"x" * 58 + b'"') for number in range(1, 6)))

    assert claimed(machine, count=5, claim=1) == [job_id(1), job_id(2)]
    assert claimed(machine, count=5, claim=2) == [job_id(3), job_id(4)]


# Weighted queues


def shares(machine: Machine, queues: list[str], weights: list[int], fetches: int, **fields: Any) -> Counter[str]:
    found: Counter[str] = Counter()
    for number in range(fetches):
        for claim in machine.one(fetch(*queues, claim=(number + 1) << 20, weights=weights, **fields)):
            found[claim.queue] += 1
    return found


def fill(machine: Machine, *queues: str, jobs: int = 400) -> None:
    for place, queue in enumerate(queues):
        machine.apply(enqueue(*range(place * jobs + 1, (place + 1) * jobs + 1), queue=queue))


def test_weighted_queues_are_served_by_their_weights() -> None:
    machine = Machine()
    fill(machine, "a", "b", jobs=1_000)

    found = shares(machine, ["a", "b"], [3, 1], 800)

    assert found["a"] + found["b"] == 800
    assert 540 < found["a"] < 660
    machine.check()


def test_a_weighted_batch_is_mixed_and_full() -> None:
    machine = Machine()
    fill(machine, "a", "b", jobs=300)

    found = shares(machine, ["a", "b"], [1, 1], 1, count=200)

    assert sum(found.values()) == 200
    assert 60 < found["a"] < 140


def test_a_weighted_fetch_takes_what_there_is() -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2, 3, queue="b"))

    assert shares(machine, ["nowhere", "a", "b"], [100, 100, 1], 1, count=9) == {"b": 3}


def test_a_weighted_fetch_that_is_repeated_finds_the_same_jobs() -> None:
    machine = Machine()
    fill(machine, "a", "b", jobs=20)
    first = machine.one(fetch("a", "b", claim=77, count=5, weights=[1, 2]))

    with nothing_changes(machine):
        again = machine.one(fetch("a", "b", claim=77, count=5, weights=[1, 2], is_repeated=True))
    assert sorted(claim.job_id for claim in again) == sorted(claim.job_id for claim in first)


@pytest.mark.parametrize("gate", [PauseQueue("a"), SetConcurrency("a", 1), SetThrottle("a", 1, 60_000)])
@pytest.mark.parametrize("weights", [[], [1000, 1]])
def test_a_queue_behind_a_gate_never_starves_the_next(gate: Operation, weights: list[int]) -> None:
    machine = Machine()
    fill(machine, "a", "b", jobs=20)
    machine.apply(gate, fetch("a"))

    assert shares(machine, ["a", "b"], weights, 10, count=2) == {"b": 20}


def test_weights_come_in_the_order_of_the_queues_and_default_to_one() -> None:
    body = FetchBody(queues=["b", "a", "b", "c"], worker_id="w", strategy="weighted", weights={"a": 5})

    assert (new_fetch(body, 1, 1).queues, new_fetch(body, 1, 1).weights) == (["b", "a", "c"], [1, 5, 1])
    assert new_fetch(FetchBody(queues=["a"], worker_id="w", strategy="weighted"), 1, 1).weights == []
    assert new_fetch(FetchBody(queues=["a", "b"], worker_id="w"), 1, 1).weights == []


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"weights": {"a": 2}}, "weights need"),
        ({"strategy": "weighted", "weights": {"c": 2}}, "c is not among the queues"),
    ],
)
def test_weights_that_mean_nothing_are_refused(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(Refusal, match=reason) as refused:
        new_fetch(FetchBody(queues=["a", "b"], worker_id="w", **fields), 1, 1)

    assert (refused.value.code, refused.value.field) == ("VALIDATION_ERROR", "weights")


# Two phases


def test_a_two_phase_claim_has_not_begun() -> None:
    machine = Machine()
    machine.apply(enqueue(1))
    machine.apply(fetch(is_two_phase=True), at=NOW + SECOND)

    job = machine.job(1)
    assert job.extras is not None
    assert (job.state, job.extras.claimed_at, job.started_at) == (State.ACTIVE, NOW + SECOND, 0)
    machine.check()


def test_a_plain_claim_after_a_two_phase_one_begins_at_once() -> None:
    machine = Machine()
    machine.apply(enqueue(1), fetch(is_two_phase=True, lease_ms=10_000))
    machine.apply(reclaim(), fetch(claim=2), at=NOW + 11 * SECOND)

    job = machine.job(1)
    assert job.extras is not None
    assert (job.extras.claimed_at, job.started_at) == (0, NOW + 11 * SECOND)


def test_a_plain_claim_leaves_a_plain_job_without_bonds() -> None:
    machine = Machine()
    machine.apply(enqueue(1), fetch())

    assert machine.job(1).extras is None


# Workers


def test_a_worker_says_its_size_and_version() -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2, 3), fetch(pool_size=8, version="1.2"), fetch(claim=2, pool_size=9, version="1.2"))

    worker = machine.tables.find_worker("w1")
    assert worker is not None
    assert (worker.pool_size, worker.version) == (9, "1.2")


def worker_alarms(machine: Machine) -> list[int]:
    return [due for due, subject, _ in machine.tables.alarms.over(NOW * 2, 10**6) if subject.startswith(WORKER_ALARM)]


def test_a_worker_has_one_alarm_however_often_it_fetches() -> None:
    machine = Machine()
    machine.apply(enqueue(*range(1, 50)))
    for number in range(40):
        machine.one(fetch(claim=number + 1), at=NOW + number * WORKER_SEEN_EVERY_NS)

    assert worker_alarms(machine) == [NOW + WORKER_TIMEOUT_MS_DEFAULT * MS]


def test_a_silent_worker_is_forgotten_and_one_that_was_heard_of_is_not() -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2), fetch())
    heard = NOW + WORKER_TIMEOUT_MS_DEFAULT * MS // 2
    machine.apply(fetch(claim=2), at=heard)

    machine.one(Ring(), at=NOW + WORKER_TIMEOUT_MS_DEFAULT * MS)
    assert machine.tables.find_worker("w1") is not None
    machine.one(Ring(), at=heard + WORKER_TIMEOUT_MS_DEFAULT * MS - 1)
    assert machine.tables.find_worker("w1") is not None
    machine.one(Ring(), at=heard + WORKER_TIMEOUT_MS_DEFAULT * MS)
    assert machine.tables.find_worker("w1") is None
    machine.flush()
    machine.restart()
    assert machine.tables.find_worker("w1") is None

    machine.apply(reclaim(), fetch(claim=3))
    assert machine.tables.find_worker("w1") is not None
    assert worker_alarms(machine) == [heard + 2 * WORKER_TIMEOUT_MS_DEFAULT * MS]
