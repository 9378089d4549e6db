"""Typed access: each record is stored once an entry, and memory is only a cache."""

import pytest

from corvo.model.errors import Corrupt, Refusal
from corvo.model.job import JobError, Worker, decode_job, decode_queue
from corvo.model.job_extras import Chain, ChainStep, JobExtras
from corvo.model.lifecycle import State
from corvo.ops.queues.set_throttle import SetThrottle
from corvo.state import keys, tables
from corvo.state.kv import MemoryKV
from corvo.state.tables import Applied, Tables, decode_applied
from corvo.state.transitions import insert
from tests.support.builders import NOW, SECOND, a_job, ack, cancel, enqueue, fail, fetch, job_id, reclaim
from tests.support.machine import Machine, nothing_changes


def opened(now: int = NOW) -> Tables:
    opened = Tables(MemoryKV())
    opened.begin(1, 1, now)
    return opened


def test_a_job_that_three_operations_touch_is_written_once_with_its_last_state() -> None:
    machine = Machine()

    machine.apply(enqueue(1), fetch(), ack(1))

    assert decode_job(machine.changes.writes[keys.job(job_id(1))]).state == State.COMPLETED
    assert decode_queue(machine.changes.writes[keys.queue("mail")]).completed == 1


def test_the_records_of_a_change_are_those_that_the_mirror_shows() -> None:
    machine = Machine()
    machine.apply(enqueue(1))

    machine.apply(fetch(), fail(1))

    shown = {keys.job(job_id(1)), keys.job_error(job_id(1), 1), keys.queue("mail"), keys.worker("w1")}
    assert set(machine.changes.records) == shown
    assert shown < set(machine.changes.writes)
    assert all(machine.changes.writes[key] == value for key, value in machine.changes.records.items())


def test_locks_and_claims_of_throttled_queues_are_shown_too() -> None:
    machine = Machine()
    machine.apply(enqueue(1, extras=JobExtras(unique_key="k")), SetThrottle("mail", 10, 60_000))
    lock = keys.unique("mail", "k")
    assert machine.changes.records[lock] is not None

    machine.apply(fetch())
    assert machine.changes.records[keys.claims_at("mail", machine.tables.now)] is not None

    machine.apply(ack(1))
    assert machine.changes.records[lock] is None


def test_the_queues_that_gained_a_pending_job_are_woken_and_no_others() -> None:
    machine = Machine()

    machine.apply(enqueue(1, queue="a"), enqueue(2, queue="b", scheduled_at=NOW + SECOND))
    assert machine.changes.woken == {"a"}

    machine.apply(fetch("a"))
    assert machine.changes.woken == set()


def test_machine_time_never_goes_back() -> None:
    machine = Machine()
    machine.apply(at=NOW + SECOND)

    machine.apply(enqueue(1), at=NOW)

    assert machine.tables.now == NOW + SECOND
    assert machine.job(1).created_at == NOW + SECOND


@pytest.mark.parametrize("index", [0, 1, 2])
def test_an_entry_at_or_before_the_marker_is_corruption(index: int) -> None:
    opened = Tables(MemoryKV())
    opened.begin(2, 1, NOW)

    with pytest.raises(Corrupt):
        opened.begin(index, 9, NOW + SECOND)

    assert opened.applied == Applied(2, 1, NOW)


def test_the_marker_is_written_with_the_state_it_describes() -> None:
    machine = Machine()
    machine.apply(enqueue(1))

    writes = machine.tables.take_writes()

    assert decode_applied(writes[keys.APPLIED]) == machine.tables.applied
    assert keys.job(job_id(1)) in writes


def test_an_entry_that_changes_nothing_moves_the_marker_and_keeps_the_hash() -> None:
    machine = Machine()
    machine.apply(enqueue(1))
    with nothing_changes(machine):
        machine.apply(reclaim())

    assert machine.tables.applied.index == 2
    assert machine.changes.writes == {}


def test_the_hash_tells_states_apart_that_differ_in_one_byte() -> None:
    one, other = Machine(), Machine()

    one.apply(enqueue(1, payload=b"1"))
    other.apply(enqueue(1, payload=b"2"))

    assert one.tables.applied.hash != other.tables.applied.hash


def test_the_hash_covers_history_not_only_the_last_entry() -> None:
    one, other = Machine(), Machine()
    one.apply(enqueue(1, payload=b"1"))
    other.apply(enqueue(1, payload=b"2"))

    one.apply(enqueue(2))
    other.apply(enqueue(2))

    assert one.tables.applied.hash != other.tables.applied.hash


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({b"a": b"\xff"}, {b"a": None}),
        ({b"a": b"b\0c\0d"}, {b"a": b"b", b"c": b"d"}),
        ({b"a": b"", b"b": b""}, {b"a\0\0b": b""}),
    ],
)
def test_different_writes_never_share_a_hash(one: dict, other: dict) -> None:
    hashes = []
    for writes in (one, other):
        under_test = opened()
        for key, value in writes.items():
            under_test.put(key, value)
        under_test.seal()
        hashes.append(under_test.applied.hash)

    assert hashes[0] != hashes[1]


def test_positions_increase_strictly_and_are_never_behind_the_clock() -> None:
    under_test = opened()
    first, second = under_test.next_position(), under_test.next_position()
    under_test.begin(2, 1, NOW + SECOND)
    third = under_test.next_position()

    assert (first, second, third) == (NOW, NOW + 1, NOW + SECOND)


def test_positions_go_on_after_a_restart_although_the_clock_stands_still() -> None:
    machine = Machine()
    machine.apply(enqueue(1), enqueue(2))
    machine.flush()
    machine.restart()

    machine.apply(enqueue(3))

    assert [machine.job(number).position - NOW for number in (1, 2, 3)] == [0, 1, 2]


def test_an_unknown_job_is_found_as_none_and_required_as_a_refusal() -> None:
    under_test = opened()

    assert under_test.find_job("nobody") is None
    with pytest.raises(Refusal) as refused:
        under_test.require_job("nobody")
    assert refused.value.code == "JOB_NOT_FOUND"


def test_asking_for_a_queue_or_worker_that_does_not_exist_makes_none() -> None:
    under_test = opened()

    assert under_test.find_queue("mail") is None
    assert under_test.find_worker("w1") is None
    assert under_test.has_pending("mail") is False
    assert under_test.seal().writes == {}


def test_a_queue_is_made_on_first_use_at_machine_time() -> None:
    under_test = opened()

    assert under_test.queue("mail").created_at == NOW
    assert [queue.name for queue in under_test.queues()] == ["mail"]


def test_has_pending_follows_the_count() -> None:
    machine = Machine()
    machine.apply(enqueue(1))
    assert machine.tables.has_pending("mail")

    machine.apply(fetch())

    assert not machine.tables.has_pending("mail")


def test_queues_and_leases_are_read_back_at_start() -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2), fetch(claim=77))
    machine.flush()

    again = Tables(machine.kv)

    assert again.find_queue("mail") == machine.queue()
    assert again.leases.claimed_by(77) == [job_id(1)]
    assert again.leases.over(NOW + 60 * SECOND, 5) == [job_id(1)]


def test_a_crowded_cache_forgets_older_jobs_and_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "JOBS_CACHED", 4)
    machine = Machine()

    for number in range(1, 21):
        machine.apply(enqueue(number))

    assert len(machine.tables._jobs) <= 5
    assert all(machine.job(number).state == State.PENDING for number in range(1, 21))
    machine.check()


def test_a_cache_heavy_with_payload_is_shrunk_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "JOBS_CACHED_BYTES", 1_000)
    machine = Machine()

    for number in range(1, 21):
        machine.apply(enqueue(number, payload=b"1" * 100))

    assert len(machine.tables._jobs) <= 11
    assert machine.tables._jobs_bytes == 100 * len(machine.tables._jobs)


def test_a_chain_counts_for_the_weight_of_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "JOBS_CACHED_BYTES", 1_000)
    machine = Machine()
    chain = Chain("chn_1", 0, (ChainStep("mail", b"1" * 50),), on_exit=ChainStep("mail", b"1" * 48))

    for number in range(1, 21):
        machine.apply(enqueue(number, extras=JobExtras(chain=chain)))

    assert len(machine.tables._jobs) <= 11
    assert machine.tables._jobs_bytes == 100 * len(machine.tables._jobs)


def test_a_crowded_cache_of_workers_forgets_and_finds_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "WORKERS_CACHED", 2)
    under_test = opened()
    workers = [Worker(f"w{number}", "host", ["mail"], NOW, NOW) for number in range(5)]

    for worker in workers:
        under_test.put_worker(worker)

    assert [under_test.find_worker(worker.id) for worker in workers] == workers


def test_only_the_newest_errors_of_a_job_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "ERRORS_KEPT_PER_JOB", 3)
    under_test = opened()

    for claim in range(1, 8):
        under_test.add_error(JobError(job_id(1), claim, claim, f"boom {claim}", "", NOW))

    assert [error.claim for error in under_test.errors(job_id(1))] == [5, 6, 7]


def test_errors_of_one_job_are_not_those_of_another() -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2), fetch(count=2), fail(1, error="one"), fail(2, error="two"))

    assert [error.error for error in machine.tables.errors(job_id(2))] == ["two"]


def test_what_was_sealed_is_handed_over_once() -> None:
    machine = Machine()
    machine.apply(enqueue(1))

    machine.flush()

    assert set(machine.tables.take_writes()) == {keys.APPLIED}
    assert machine.job(1).state == State.PENDING


def test_a_job_is_found_within_the_entry_that_bore_it() -> None:
    under_test = opened()

    insert(under_test, a_job())

    assert under_test.find_job(job_id(1)) is not None


def test_reading_through_the_cache_leaves_the_stored_bytes_alone() -> None:
    machine = Machine()
    machine.apply(enqueue(1), fetch(), cancel(1))
    machine.flush()
    machine.restart()

    with nothing_changes(machine):
        machine.job(1)


def test_warming_reads_ahead_and_changes_nothing() -> None:
    machine = Machine()
    machine.apply(*(enqueue(number) for number in range(1, 8)))
    machine.flush()
    machine.restart()
    machine.apply(fetch(claim=1))

    assert not machine.tables.warm("mail", 3, at_once=2)
    assert [job.id for job in machine.tables._jobs.values()] == [job_id(number) for number in range(1, 4)]
    assert machine.tables.warm("mail", 3, at_once=2)
    assert [job.id for job in machine.tables._jobs.values()] == [job_id(number) for number in range(1, 5)]
    with nothing_changes(machine):
        assert machine.tables.warm("mail", 3, at_once=2)
        assert machine.tables.warm("nobody", 3, at_once=2)
