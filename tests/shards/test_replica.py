"""A turn of the replica, on a real LevelDB, with time moved by hand."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corvo.model.errors import Refused
from corvo.model.job import Priority
from corvo.model.lifecycle import State
from corvo.model.limits import BODY_BYTES_MAX, CLAIMED_BYTES_MAX, MESSAGE_BYTES_MAX
from corvo.model.retry import Backoff
from corvo.ops.jobs import fetch as fetch_module
from corvo.ops.jobs.fetch import Claimed
from corvo.ops.jobs.heartbeat import Pulse
from corvo.queries.cluster import GetStatus
from corvo.queries.feed import FeedBatch, Pull, Scan, ScanPiece
from corvo.queries.job import Await, GetJob
from corvo.state import keys
from corvo.wire import Call, decode_replies, encode
from shards import replica as replica_module
from shards.intake.admission import AWAIT_RECHECK_NS
from shards.raft import Membership
from shards.storage import raft_log, write_batcher
from shards.storage.leveldb import Disk
from shards.storage.write_batcher import FLUSH_AFTER_NS, RIDE_AFTER_NS, RIDE_BYTES
from tests.shards.rig import GATEWAY, IDENTITY, WAITING, Rig, a_directory, mirrored, records_of
from tests.support.builders import MS, SECOND, ack, cancel, enqueue, fail, fetch, heartbeat, job_id, new_job

LONG = 60_000


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path / "db")
    yield rig
    rig.kill()


def ids(claimed: Any) -> list[str]:
    assert isinstance(claimed, list), claimed
    return [one.job_id for one in claimed]


def code(answer: Any) -> str:
    assert isinstance(answer, Refused), answer
    return answer.code


# A job's way


def test_a_job_is_enqueued_fetched_and_acked(rig: Rig) -> None:
    assert rig.one(enqueue(1, payload=b'{"to":"x"}')) == [State.PENDING]

    (claimed,) = rig.one(fetch("mail"))
    assert (claimed.job_id, claimed.payload, claimed.attempt) == (job_id(1), b'{"to":"x"}', 1)

    assert rig.one(ack(1, token=claimed.lease_token, result=b'"ok"')) == [None]
    job = rig.job(1).job
    assert (job.state, job.result, job.completed_at) == (State.COMPLETED, b'"ok"', rig.wall_ns)


def test_what_one_message_asks_happens_in_its_order(rig: Rig) -> None:
    answers = rig.ask(enqueue(1), fetch("mail", claim=1), ack(1), fetch("mail", claim=2), enqueue(2), fetch("mail"))

    assert answers[0] == [State.PENDING]
    assert ids(answers[1]) == [job_id(1)]
    assert answers[2] == [None]
    assert [ids(answers[3]), answers[4], ids(answers[5])] in (
        [[], [State.PENDING], [job_id(2)]],
        [[job_id(2)], [State.PENDING], []],
    ), "one of the two fetches gets job 2"


def test_an_ack_makes_room_for_the_fetch_behind_it(rig: Rig) -> None:
    rig.ask(enqueue(1), enqueue(2), fetch("mail", claim=1))

    answers = rig.ask(ack(1), fetch("mail", claim=2))

    assert answers[0] == [None] and ids(answers[1]) == [job_id(2)]


def test_a_job_is_read_as_the_last_write_left_it_in_the_same_turn(rig: Rig) -> None:
    answers = rig.ask(enqueue(1), GetJob(job_id(1)))
    assert answers[1].job.state == State.PENDING

    answers = rig.ask(cancel(1), GetJob(job_id(1)), GetJob(job_id(2)))
    assert answers[1].job.state == State.CANCELLED
    assert code(answers[2]) == "JOB_NOT_FOUND"


def test_reading_makes_no_entry(rig: Rig) -> None:
    rig.one(enqueue(1))
    before = rig.commit_index

    rig.ask(GetJob(job_id(1)), GetStatus(), Scan(b"", 10), Pull(0, 0, 10))

    assert rig.commit_index == before


def test_critical_goes_before_high_before_normal(rig: Rig) -> None:
    priorities = {1: Priority.NORMAL, 2: Priority.HIGH, 3: Priority.CRITICAL}
    rig.ask(*(enqueue(number, priority=priority) for number, priority in priorities.items()))

    assert ids(rig.one(fetch("mail", count=3))) == [job_id(3), job_id(2), job_id(1)]


# Waiting


def test_a_fetch_that_waits_makes_no_entry_and_no_write_however_long_it_polls(rig: Rig) -> None:
    rig.sleep_through(SECOND)
    commit, writes, polls = rig.commit_index, rig.disk.writes, 20

    for number in range(polls):
        assert rig.one(fetch("mail", claim=number, wait_ms=50_000)) is WAITING
        turns = rig.sleep_through(50 * SECOND)
        assert rig.answers[rig.last_key] == []
        assert turns <= 60, "an idle shard glances at its timers once a second"

    assert (rig.commit_index, rig.disk.writes) == (commit, writes)


def test_a_fetch_that_waits_is_served_in_the_turn_that_brings_its_job_and_in_the_same_entry(rig: Rig) -> None:
    rig.one(fetch("mail", wait_ms=LONG))
    waiting, commit = rig.last_key, rig.commit_index

    rig.one(enqueue(1))

    assert ids(rig.answers[waiting]) == [job_id(1)]
    assert rig.commit_index == commit + 1


def test_patience_ends_empty_at_its_nanosecond(rig: Rig) -> None:
    rig.one(fetch("mail", wait_ms=1_234))
    waiting, began = rig.last_key, rig.monotonic_ns

    while waiting not in rig.answers:
        rig.sleep()

    assert rig.answers[waiting] == []
    assert rig.monotonic_ns == began + 1_234 * MS


def test_whoever_waits_longest_is_served_first(rig: Rig) -> None:
    waiting = []
    for claim in range(1, 5):
        rig.one(fetch("mail", claim=claim, wait_ms=LONG))
        waiting.append(rig.last_key)

    served = []
    for number in range(1, 5):
        rig.one(enqueue(number))
        served.append([ids(rig.answers[key]) if key in rig.answers else None for key in waiting])

    jobs = [[job_id(number)] for number in range(1, 5)]
    assert served == [[*jobs[:count], *[None] * (4 - count)] for count in range(1, 5)]


def test_those_who_were_woken_in_vain_keep_their_order(rig: Rig) -> None:
    rig.one(fetch("mail", claim=1, wait_ms=LONG))
    first = rig.last_key
    rig.one(fetch("mail", claim=2, wait_ms=LONG))
    second = rig.last_key

    # Without patience nobody stands in line: this one takes both jobs before the two are woken.
    rig.ask(enqueue(1), enqueue(2), fetch("mail", claim=3, count=2))
    assert first not in rig.answers and second not in rig.answers
    rig.one(enqueue(3))

    assert ids(rig.answers[first]) == [job_id(3)]
    assert second not in rig.answers


def test_a_client_that_enqueues_and_fetches_in_one_breath_does_not_starve_a_waiting_worker(rig: Rig) -> None:
    rig.one(fetch("mail", claim=1, wait_ms=LONG))
    waiting = rig.last_key

    rig.ask(enqueue(1), fetch("mail", claim=2, wait_ms=LONG))

    assert ids(rig.answers[waiting]) == [job_id(1)]
    assert rig.last_key not in rig.answers


def test_a_job_that_becomes_pending_by_itself_wakes_the_one_who_waits_in_the_same_turn(rig: Rig) -> None:
    rig.ask(enqueue(1), fetch("mail", claim=1, lease_ms=1_000))
    rig.one(fetch("mail", claim=2, wait_ms=LONG))
    waiting = rig.last_key

    rig.sleep_through(SECOND)

    assert ids(rig.answers[waiting]) == [job_id(1)]


def test_one_await_is_told_of_one_job_and_the_next_when_it_is_not_claimed(rig: Rig) -> None:
    awaiting = []
    for number in range(3):
        assert rig.one(Await(["mail"], f"w{number}", "host", LONG)) is WAITING
        awaiting.append(rig.last_key)

    rig.one(enqueue(1))
    assert [key in rig.answers for key in awaiting] == [True, False, False]

    rig.sleep_through(AWAIT_RECHECK_NS)
    assert [key in rig.answers for key in awaiting] == [True, True, False]

    assert ids(rig.one(fetch("mail"))) == [job_id(1)]
    turns = rig.sleep_through(20 * SECOND)
    assert awaiting[2] not in rig.answers
    assert turns < 40, "nothing is left to tell: no turn every ten milliseconds"


def test_a_repeated_fetch_finds_what_it_claimed_and_claims_no_more(rig: Rig) -> None:
    rig.ask(enqueue(1), enqueue(2))
    claimed = rig.one(fetch("mail", claim=7))
    rig.restart()

    again = rig.one(fetch("mail", claim=7, is_repeated=True))

    assert again == claimed
    assert rig.job(2).job.state == State.PENDING


# Timers


@pytest.mark.parametrize("ahead_ms", [1, 7, 999, 1_000, 1_001, 61_537])
def test_a_scheduled_job_is_pending_at_its_millisecond_without_busy_turns(rig: Rig, ahead_ms: int) -> None:
    due_at = rig.wall_ns + ahead_ms * MS
    assert rig.one(enqueue(1, scheduled_at=due_at)) == [State.SCHEDULED]
    rig.one(fetch("mail", wait_ms=100_000))
    waiting, turns = rig.last_key, 0

    while waiting not in rig.answers:
        rig.sleep()
        turns += 1
        assert turns <= 5 + ahead_ms // 900, "busy turns"

    assert ids(rig.answers[waiting]) == [job_id(1)]
    assert rig.wall_ns == due_at


def test_more_jobs_than_one_entry_settles_fall_due_together(rig: Rig) -> None:
    due_at = rig.wall_ns + SECOND
    rig.one(enqueue(*(new_job(number, scheduled_at=due_at) for number in range(1, 1_201))))

    turns = rig.sleep_through(SECOND) + rig.sleep_through(1)

    assert len(rig.one(fetch("mail", count=2_000))) == 1_200
    assert turns < 15


def test_a_lease_ends_at_its_nanosecond(rig: Rig) -> None:
    rig.ask(enqueue(1), fetch("mail", lease_ms=1_050))
    end = rig.job(1).job.lease_expires_at

    while rig.job(1).job.state == State.ACTIVE:
        assert rig.wall_ns < end
        rig.sleep()

    assert rig.wall_ns == end
    record = rig.job(1)
    assert record.job.state == State.PENDING
    assert [error.error for error in record.errors] == ["lease of worker w1 expired"]


def test_a_heartbeat_moves_the_end_of_the_lease(rig: Rig) -> None:
    rig.ask(enqueue(1), fetch("mail", lease_ms=1_000))

    for _ in range(5):
        rig.sleep_through(900 * MS)
        assert rig.one(heartbeat(1)) == [Pulse.OK]

    assert rig.job(1).job.state == State.ACTIVE
    rig.sleep_through(SECOND)
    assert rig.job(1).job.state == State.PENDING


def test_a_job_that_kills_its_workers_is_dead_after_its_attempts(rig: Rig) -> None:
    rig.one(enqueue(1, max_retries=3))
    began = rig.wall_ns

    for claim in range(1, 4):
        assert ids(rig.one(fetch("mail", worker=f"w{claim}", claim=claim, lease_ms=1_000))) == [job_id(1)]
        rig.sleep_through(SECOND)

    record = rig.job(1)
    assert record.job.state == State.DEAD
    assert record.job.failed_at == began + 3 * SECOND
    assert [error.attempt for error in record.errors] == [1, 2, 3]
    assert rig.one(fetch("mail", claim=9)) == []
    assert rig.sleep_through(60 * SECOND) < 100


@pytest.mark.parametrize(
    ("backoff", "delays_ms"),
    [
        (Backoff.NONE, [0, 0, 0, 0]),
        (Backoff.FIXED, [700, 700, 700, 700]),
        (Backoff.LINEAR, [700, 1_400, 2_100, 2_500]),
        (Backoff.EXPONENTIAL, [700, 1_400, 2_500, 2_500]),
    ],
)
def test_a_failed_job_comes_back_after_its_backoff_to_the_nanosecond(
    rig: Rig, backoff: Backoff, delays_ms: list[int]
) -> None:
    rig.one(enqueue(1, max_retries=5, backoff=backoff, base_delay_ms=700, max_delay_ms=2_500))
    rig.one(fetch("mail", claim=1, lease_ms=60_000))

    waited_ms = []
    for attempt in range(1, 5):
        failed_at = rig.wall_ns
        rig.ask(fail(1, ask=attempt), fetch("mail", claim=attempt + 1, wait_ms=LONG))
        waiting = rig.last_key
        while waiting not in rig.answers:
            rig.sleep()
        assert ids(rig.answers[waiting]) == [job_id(1)]
        waited_ms.append((rig.wall_ns - failed_at) / MS)

    assert waited_ms == delays_ms
    rig.one(fail(1, ask=9))
    assert rig.job(1).job.state == State.DEAD


def test_a_clock_that_is_set_back_neither_spins_nor_loses_a_timer(rig: Rig) -> None:
    rig.one(enqueue(1, scheduled_at=rig.wall_ns + SECOND))
    rig.wall_ns -= 10 * SECOND

    turns = rig.sleep_through(11 * SECOND)

    assert rig.job(1).job.state == State.PENDING
    assert turns < 40


def test_an_idle_shard_takes_a_turn_a_second_and_writes_nothing(rig: Rig) -> None:
    rig.sleep_through(SECOND)
    writes = rig.disk.writes

    assert rig.sleep_through(100 * SECOND) <= 101
    assert rig.disk.writes == writes


# The disk


def test_a_hundred_calls_are_one_entry_and_one_write(rig: Rig) -> None:
    rig.sleep_through(SECOND)
    commit, writes = rig.commit_index, rig.disk.writes

    answers = rig.ask(*(enqueue(number) for number in range(1, 101)))

    assert answers == [[State.PENDING]] * 100
    assert rig.commit_index == commit + 1
    assert rig.disk.writes == writes + 1


def test_nothing_is_answered_before_it_is_on_disk(rig: Rig) -> None:
    seen = []
    rig.disk.after_write = lambda number: seen.append((len(rig.answers), rig.disk.get(keys.log_entry(2)) is not None))

    rig.one(enqueue(1))

    assert seen == [(0, True)]


def test_what_is_applied_rides_with_an_entry_a_moment_later(rig: Rig) -> None:
    rig.one(enqueue(1))
    rig.one(enqueue(2))
    assert rig.disk.get(keys.job(job_id(1))) is None
    writes = rig.disk.writes

    rig.monotonic_ns += RIDE_AFTER_NS
    rig.one(enqueue(3))

    assert rig.disk.writes == writes + 1
    assert rig.disk.get(keys.job(job_id(2))) is not None
    assert rig.disk.get(keys.job(job_id(3))) is None


def test_much_that_is_applied_rides_with_the_next_entry_at_once(rig: Rig) -> None:
    rig.one(enqueue(1, payload=b'"%s"' % (b"x" * RIDE_BYTES)))

    rig.one(enqueue(2))

    assert rig.disk.get(keys.job(job_id(1))) is not None
    assert rig.disk.get(keys.job(job_id(2))) is None


def test_a_life_that_is_over_before_its_state_is_written_is_written_once(rig: Rig) -> None:
    rig.ask(enqueue(1))
    (claimed,) = rig.one(fetch("mail"))
    rig.one(ack(1, token=claimed.lease_token))
    rig.disk.parts.clear()
    rig.sleep()

    written = [key for part in rig.disk.parts for key in part]

    assert written.count(keys.job(job_id(1))) == 1
    assert not [
        key for key in written if key.startswith((keys.pending_prefix("mail", Priority.NORMAL), keys.ACTIVE))
    ], "it never waited, for the disk"
    assert rig.restart() is None and rig.one(GetJob(job_id(1))).job.state == State.COMPLETED


def test_replies_do_not_wait_for_a_write_that_is_not_theirs(rig: Rig) -> None:
    """Those of an earlier entry, that is; the one at hand is answered after it (above)."""
    before: list[list[bytes]] = []
    rig.disk.before_write = lambda number: before.append([peer for peer, _ in rig.callers.replies])
    rig.replica.admission.answer(b"gateway", 1, None)

    rig.callers.arrived = [(b"other", [Call(2, 1_000, encode(enqueue(1)))])]
    rig.replica.turn(rig.monotonic_ns)

    assert before == [[b"gateway"]]


def test_state_and_marker_are_written_together(rig: Rig) -> None:
    """Trap 43: the applied index apart from the state it describes."""
    rig.ask(enqueue(1))
    rig.sleep()

    written = {key: value for part in rig.disk.parts for key, value in part.items()}

    assert {keys.APPLIED, keys.job(job_id(1)), keys.queue("mail"), keys.feed_record(2)} <= set(written)


def test_when_traffic_stops_the_state_is_flushed_a_moment_later(rig: Rig) -> None:
    rig.sleep_through(SECOND)
    rig.one(enqueue(1))
    began = rig.monotonic_ns

    rig.sleep()

    assert rig.monotonic_ns <= began + FLUSH_AFTER_NS == began + 50 * MS
    assert records_of(rig.disk) == rig.state()[0]
    assert rig.replica.tables.overlay.changes == {}


def test_a_failed_write_answers_nobody(rig: Rig) -> None:
    class Full(Exception):
        pass

    def fail_write(number: int) -> None:
        raise Full

    rig.disk.before_write = fail_write

    with pytest.raises(Full):
        rig.ask(enqueue(1))

    assert rig.answers == {}


def test_an_entry_too_large_for_one_turn_is_spread_over_turns_without_sleeping(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica_module, "ENTRY_BYTES_MAX", 1_000)
    calls = [enqueue(number, payload=b"x" * 400) for number in range(1, 21)]

    answers = rig.ask(*calls)
    turns = 0
    while len(rig.answers) < len(calls):
        assert rig.sleep_ns() == 0
        rig.turn()
        turns += 1

    assert WAITING in answers and turns < 20
    assert ids(rig.one(fetch("mail", count=20))) == [job_id(number) for number in range(1, 21)]


def test_the_log_is_compacted_and_a_start_afterwards_finds_the_same_state(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raft_log, "KEPT_ENTRIES_ALONE", 10)
    monkeypatch.setattr(raft_log, "COMPACT_PER_BATCH", 4)
    monkeypatch.setattr(write_batcher, "RIDE_AFTER_NS", 0)
    for number in range(1, 41):
        rig.ask(enqueue(number))
    assert rig.one(GetStatus()).log_first_index > 20
    state = rig.state()

    rig.restart()

    assert rig.state() == state
    assert ids(rig.one(fetch("mail", count=40))) == [job_id(number) for number in range(1, 41)]


def test_the_state_after_a_kill_is_the_state_before_it(rig: Rig) -> None:
    rig.ask(enqueue(1), enqueue(2, scheduled_at=rig.wall_ns + SECOND), enqueue(3, queue="video"), fetch("mail"))
    rig.one(fail(1))
    state = rig.state()

    rig.restart()

    assert rig.state() == state
    assert records_of(rig.disk) != state[0], "part of it came from the log"


def test_waiting_calls_do_not_survive_a_kill_and_are_asked_again(rig: Rig) -> None:
    rig.one(fetch("mail", claim=1, wait_ms=LONG))

    rig.restart()
    rig.one(enqueue(1))
    again = rig.one(fetch("mail", claim=1, wait_ms=LONG, is_repeated=True))

    assert ids(again) == [job_id(1)]


# Peers


def test_replies_are_grouped_by_peer(rig: Rig) -> None:
    first, second = b"gateway-1", b"gateway-2"
    calls = [rig.call(enqueue(number), first) for number in (1, 2, 3)]
    others = [rig.call(enqueue(number), second) for number in (4, 5)]

    rig.turn((first, calls[:2]), (second, others), (first, calls[2:]))

    grouped = {peer: [reply.id for reply in decode_replies(message)] for peer, message in rig.messages}
    assert len(rig.messages) == 2
    assert grouped == {first: [call.id for call in calls], second: [call.id for call in others]}


def test_two_peers_may_use_the_same_call_id(rig: Rig) -> None:
    rig._asked[b"a", 1] = rig._asked[b"b", 1] = type(fetch("mail"))
    raw = [rig.call(fetch("mail", claim=claim, wait_ms=LONG)).ask for claim in (1, 2)]

    rig.turn((b"a", [Call(1, LONG, raw[0])]), (b"b", [Call(1, LONG, raw[1])]))
    rig.ask(enqueue(1), enqueue(2))

    assert ids(rig.answers[b"a", 1]) == [job_id(1)] and ids(rig.answers[b"b", 1]) == [job_id(2)]


def test_a_recalled_fetch_claims_nothing(rig: Rig) -> None:
    rig.one(fetch("mail", wait_ms=LONG))
    peer, call_id = rig.last_key

    rig.turn((peer, [Call(call_id, 0, b"")]))
    rig.one(enqueue(1))

    assert rig.answers[peer, call_id] == []
    assert rig.job(1).job.state == State.PENDING


def test_a_fetch_claims_no_more_than_one_message_can_carry(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    assert CLAIMED_BYTES_MAX + BODY_BYTES_MAX < MESSAGE_BYTES_MAX // 2
    monkeypatch.setattr(fetch_module, "CLAIMED_BYTES_MAX", 10_000)
    rig.one(enqueue(*range(1, 31), payload=b"x" * 1_000))

    assert len(rig.one(fetch("mail", count=512))) == 10


def test_what_a_full_answer_had_to_leave_goes_to_the_next_who_waits(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_module, "CLAIMED_BYTES_MAX", 10_000)
    waiting = []
    for claim in range(1, 6):
        rig.one(fetch("mail", claim=claim, count=512, wait_ms=LONG))
        waiting.append(rig.last_key)

    rig.one(enqueue(*range(1, 36), payload=b"x" * 1_000))
    while rig.sleep_ns() == 0:
        rig.turn()

    assert [len(rig.answers[key]) if key in rig.answers else None for key in waiting] == [10, 10, 10, 5, None]


# Who does not lead


@pytest.fixture
def follower(tmp_path: Path) -> Iterator[Rig]:
    Disk.create(tmp_path / "db", IDENTITY)
    disk = Disk(tmp_path / "db", IDENTITY, False)
    disk.write({keys.MEMBERSHIP: raft_log.encode(Membership(0, ("node-1", "node-2", "node-3")))})
    disk.close()
    rig = Rig(tmp_path / "db")
    yield rig
    rig.kill()


def test_a_replica_that_does_not_lead_refuses_and_says_when_to_come_back(follower: Rig) -> None:
    answers = follower.ask(enqueue(1), GetJob(job_id(1)), fetch("mail"))

    assert {code(answer) for answer in answers} == {"NOT_LEADER"}
    assert all(answer.retry_after_ms > 0 for answer in answers)
    assert follower.commit_index == 0
    assert follower.replica.tables.queues() == []


def test_a_replica_that_does_not_lead_answers_for_itself(follower: Rig) -> None:
    status, piece, batch = follower.ask(GetStatus(), Scan(b"", 10), Pull(0, 0, 10))

    assert (status.role, status.leader, status.members.voters) == ("follower", "", ["node-1", "node-2", "node-3"])
    assert piece == ScanPiece(0, [], b"")
    assert batch == FeedBatch(0, [])


def test_a_replica_that_does_not_lead_sleeps_between_its_elections(follower: Rig) -> None:
    assert follower.sleep_through(20 * SECOND) < 2_000
    assert not follower.replica.raft.is_leader


# The mirror


def test_a_pull_waits_for_a_change_and_is_answered_in_its_turn(rig: Rig) -> None:
    batch = rig.one(Pull(0, 0, 10))
    assert rig.one(Pull(batch.upto, LONG, 10)) is WAITING
    waiting = rig.last_key

    rig.one(enqueue(1))

    told = rig.answers[waiting]
    assert {key for key, _ in told.records} == {keys.job(job_id(1)), keys.queue("mail")}
    assert told.upto == rig.replica.tables.applied.index


def test_a_pull_ends_empty_at_its_nanosecond(rig: Rig) -> None:
    upto = rig.one(Pull(0, 0, 10)).upto
    rig.one(Pull(upto, 1_234, 10))
    waiting, began = rig.last_key, rig.monotonic_ns

    while waiting not in rig.answers:
        rig.sleep()

    assert rig.answers[waiting] == FeedBatch(upto, [])
    assert rig.monotonic_ns == began + 1_234 * MS


def test_a_worker_that_begins_to_wait_is_told_with_the_next_pull(rig: Rig) -> None:
    upto = rig.one(Pull(0, 0, 10)).upto
    rig.one(Pull(upto, LONG, 10))
    waiting = rig.last_key

    rig.one(fetch("mail", worker="w7", wait_ms=LONG))

    assert [worker.id for worker in rig.answers[waiting].presence] == ["w7"]
    assert rig.answers[waiting].upto == upto


@pytest.mark.parametrize("is_restarted", [False, True])
def test_after_a_scan_of_an_idle_shard_the_mirror_can_follow(rig: Rig, is_restarted: bool) -> None:
    """The entry that begins a term changes nothing, but it counts: else a mirror that scanned is ahead of its feed."""
    if is_restarted:
        rig.ask(enqueue(1))
        rig.sleep_through(SECOND)
        rig.restart()
    rig.sleep_through(SECOND)

    piece = rig.one(Scan(b"", 100))
    assert isinstance(piece, ScanPiece)
    answer = rig.one(Pull(piece.as_of, LONG, 100))

    assert answer is WAITING or not answer.is_gap
    assert dict(piece.records) == mirrored(rig.replica.tables.overlay)


def test_a_mirror_that_was_up_to_date_before_a_kill_has_no_gap_after_it(rig: Rig) -> None:
    rig.ask(enqueue(1))
    upto = rig.one(Pull(0, 0, 100)).upto
    rig.kill()
    rig.open(is_first_turn_taken=False)

    batch = rig.one(Pull(upto, 0, 100))  # asked in the very first turn

    assert not batch.is_gap
    assert batch.upto == rig.replica.tables.applied.index


# The figures


def test_the_status_says_how_the_replica_is_doing(rig: Rig) -> None:
    rig.ask(enqueue(1), enqueue(2), fetch("mail"))
    rig.one(fetch("video", wait_ms=LONG))

    status = rig.one(GetStatus())

    assert (status.role, status.leader, status.queues, status.leases) == ("leader", "node-1", 1, 1)
    assert (status.fetches_parked, status.entries_total, status.operations_total) == (1, 1, 3)
    assert status.applied_index == status.commit_index == status.log_last_index == 2
    assert status.state_hash == rig.state()[1].hex()
    rig.turn()
    assert rig.messages == []


# Against common sense

_queues = st.sampled_from(["a", "b"])
_ask = st.one_of(
    st.tuples(st.just("enqueue"), _queues, st.integers(1, 2)),
    st.tuples(st.just("fetch"), _queues, st.sampled_from([0, 40, 1_000])),
    st.tuples(st.just("fetch"), _queues, st.just(1_000)),
    st.tuples(st.just("await"), _queues, st.sampled_from([40, 1_000])),
    st.tuples(st.just("recall"), st.integers(0, 9), st.none()),
)
_steps = st.lists(st.lists(_ask, max_size=5) | st.sampled_from([0, 1, 10, 50, 300]), min_size=5, max_size=30)


@pytest.mark.parametrize("has_awaits", [False, True])
@settings(max_examples=40)
@given(_steps)
def test_nobody_waits_beside_a_job_nobody_is_overtaken_and_no_job_is_claimed_twice(
    has_awaits: bool, steps: list[list[tuple[str, Any, Any]] | int]
) -> None:
    """The naive model: a list of who waits for which queue, and the jobs that exist."""
    with a_directory() as address_book:
        rig = Rig(address_book / "db")
        jobs = claims = 0
        patient: dict[int, tuple[str, str, int]] = {}  # call id → fetch or await, queue, end
        for step in steps:
            if isinstance(step, int):
                rig.sleep_through(step * MS)
            else:
                calls = []
                for verb, what, value in step:
                    if verb == "enqueue":
                        calls.append(rig.call(enqueue(*range(jobs + 1, jobs + value + 1), queue=what)))
                        jobs += value
                    elif verb == "recall" and patient:
                        calls.append(Call(list(patient)[what % len(patient)], 0, b""))
                    elif verb == "fetch" or (verb == "await" and has_awaits):
                        claims += 1
                        waiting = fetch(what, claim=claims, wait_ms=value, lease_ms=3_600_000)
                        calls.append(rig.call(waiting if verb == "fetch" else Await([what], "w1", "host", value)))
                        if value:
                            patient[calls[-1].id] = (verb, what, rig.monotonic_ns + value * MS)
                rig.turn((GATEWAY, calls))

            answered = {call_id: rig.answers.get((GATEWAY, call_id), WAITING) for call_id in patient}
            for queue in ("a", "b"):
                line = [call_id for call_id, (verb, wanted, _) in patient.items() if (verb, wanted) == ("fetch", queue)]
                served = [place for place, call_id in enumerate(line) if answered[call_id] not in (WAITING, [])]
                unserved = [place for place, call_id in enumerate(line) if answered[call_id] is WAITING]
                if served and unserved and not has_awaits:
                    assert max(served) < min(unserved), "overtaken"
                is_left = rig.replica.tables.has_pending(queue)
                assert not (is_left and unserved) or queue in rig.replica.admission.told, (
                    "a job and a fetch, side by side"
                )
            patient = {call_id: call for call_id, call in patient.items() if answered[call_id] is WAITING}
            assert all(end > rig.monotonic_ns for _, _, end in patient.values()), "patience has ended"
            assert len(rig.replica.admission.waiters) == len(patient)

        rig.sleep_through(2 * SECOND)
        assert len(rig.replica.admission.waiters) == 0 and not rig.replica.admission.told
        claimed = [one.job_id for answer in rig.answers.values() if _is_claim(answer) for one in answer]
        assert len(claimed) == len(set(claimed))
        left = rig.one(fetch("a", "b", claim=claims + 1, count=500))
        assert len(claimed) + len(left) == jobs, "every job is somewhere"
        rig.kill()


def _is_claim(answer: Any) -> bool:
    return isinstance(answer, list) and all(isinstance(one, Claimed) for one in answer)
