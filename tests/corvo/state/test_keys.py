"""Keys: the order of the bytes is the order of what they say, and no name can forge one."""

from functools import partial
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.model.job import Priority
from corvo.model.limits import SHARDS_MAX
from corvo.state import keys
from tests.support.builders import job_id
from tests.support.strategies import job_ids, queue_names, u32, u64, worker_ids

priorities = st.sampled_from(Priority)
free_texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)  # keys that users choose
subjects = st.builds(str.__add__, st.sampled_from("eurgz"), free_texts)
shards = st.integers(0, SHARDS_MAX - 1)
batch_ids = st.builds("s{:02d}_batch_{:026x}".format, shards, st.integers(0, 2**104 - 1))
bulk_ids = st.builds("bulk_{:026x}".format, st.integers(0, 2**104 - 1))
node_ids = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", fullmatch=True)

# Every family of replicated state: how a key is made from its parts.
FAMILIES = {
    "job": (keys.job, (job_ids,)),
    "job_error": (keys.job_error, (job_ids, u32)),
    "pending": (keys.pending, (queue_names, priorities, u64, job_ids)),
    "active": (keys.active, (queue_names, job_ids)),
    "scheduled": (keys.scheduled, (queue_names, u64, job_ids)),
    "retrying": (keys.retrying, (queue_names, u64, job_ids)),
    "due": (partial(keys.due, keys.DUE), (u64, job_ids)),
    "alarm": (partial(keys.due, keys.ALARMS), (u64, subjects)),
    "unique": (keys.unique, (queue_names, free_texts)),
    "idempotent": (keys.idempotent, (queue_names, free_texts)),
    "watcher": (keys.watcher, (job_ids, job_ids)),
    "forwarded": (keys.forwarded, (job_ids,)),
    "batch": (keys.batch, (batch_ids,)),
    "batch_ask": (keys.batch_ask, (batch_ids, u64)),
    "schedule": (keys.schedule, (queue_names,)),
    "bulk": (keys.bulk, (bulk_ids,)),
    "bulk_ended": (keys.bulk_ended, (bulk_ids,)),
    "bulk_ids": (keys.bulk_ids, (bulk_ids,)),
    "bulk_memo": (keys.bulk_memo, (bulk_ids,)),
    "claims_at": (keys.claims_at, (queue_names, u64)),
    "audit": (keys.audit, (u64,)),
    "event": (keys.event, (u64,)),
    "outbox": (keys.outbox, (shards, u64)),
    "outbox_last": (keys.outbox_last, (shards,)),
    "inbox_last": (keys.inbox_last, (shards,)),
    "queue": (keys.queue, (queue_names,)),
    "worker": (keys.worker, (worker_ids,)),
    "node": (keys.node, (node_ids,)),
}
any_key = st.one_of(*(st.builds(make, *parts) for make, parts in FAMILIES.values()))
log_indexes = st.integers(1, 2**56 - 1)  # the first byte of an index is 0


@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data())
def test_legal_names_never_alias(family: str, data: st.DataObject) -> None:
    make, parts = FAMILIES[family]
    one, other = data.draw(st.tuples(*parts)), data.draw(st.tuples(*parts))

    assert (make(*one) == make(*other)) == (one == other)


@given(u64, job_ids, u64, job_ids)
def test_due_keys_sort_by_moment_then_id(one_at: int, one: str, other_at: int, other: str) -> None:
    for family in (keys.DUE, keys.ALARMS):
        first, second = keys.due(family, one_at, one), keys.due(family, other_at, other)
        assert (first < second) == ((one_at, one) < (other_at, other))


@given(queue_names, priorities, u64, job_ids, priorities, u64, job_ids)
def test_pending_keys_of_a_queue_sort_by_position_within_a_priority(
    queue: str, one: Priority, one_at: int, one_id: str, other: Priority, other_at: int, other_id: str
) -> None:
    first, second = keys.pending(queue, one, one_at, one_id), keys.pending(queue, other, other_at, other_id)

    if one == other:
        assert (first < second) == ((one_at, one_id) < (other_at, other_id))
    else:
        assert not first.startswith(keys.pending_prefix(queue, other))


@pytest.mark.parametrize("make", [keys.scheduled, keys.retrying])
@given(queue=queue_names, one_at=u64, one=job_ids, other_at=u64, other=job_ids)
def test_timed_keys_of_a_queue_sort_by_moment_then_id(
    make, queue: str, one_at: int, one: str, other_at: int, other: str
) -> None:
    assert (make(queue, one_at, one) < make(queue, other_at, other)) == ((one_at, one) < (other_at, other))


@given(job_ids, u32, u32)
def test_errors_of_a_job_sort_by_claim_and_lie_in_its_range(job: str, one: int, other: int) -> None:
    prefix = keys.job_errors(job)

    assert (keys.job_error(job, one) < keys.job_error(job, other)) == (one < other)
    assert prefix <= keys.job_error(job, one) < keys.prefix_end(prefix)


@given(queue_names, priorities, u64, job_ids)
def test_the_parts_of_a_pending_key_are_read_back(queue: str, priority: Priority, position: int, job: str) -> None:
    prefix = keys.pending_prefix(queue, priority)

    key = keys.pending(queue, priority, position, job)

    assert keys.pending_position(key, len(prefix)) == (position, job)
    assert prefix <= key < keys.prefix_end(prefix)


@given(queue_names, job_ids, u64, u64)
def test_the_parts_of_an_active_pair_are_read_back(queue: str, job: str, ends_at: int, claim: int) -> None:
    assert keys.active_job_id(keys.active(queue, job)) == job
    assert keys.unpack_lease(keys.pack_lease(ends_at, claim)) == (ends_at, claim)


@given(st.sampled_from((keys.DUE, keys.ALARMS)), u64, job_ids | subjects)
def test_the_parts_of_a_due_key_are_read_back(family: bytes, due_at: int, subject: str) -> None:
    assert keys.due_parts(family, keys.due(family, due_at, subject)) == (due_at, subject)
    assert keys.due_floor(family, due_at) <= keys.due(family, due_at, subject)


@given(job_ids, job_ids)
def test_those_who_wait_for_a_job_lie_in_its_range(job: str, dependent: str) -> None:
    prefix, key = keys.watchers(job), keys.watcher(job, dependent)

    assert prefix <= key < keys.prefix_end(prefix)
    assert keys.second_name(key) == dependent


@given(queue_names, u64, u64)
def test_claims_of_a_queue_sort_by_moment_and_lie_in_its_range(queue: str, one: int, other: int) -> None:
    prefix, key = keys.claims(queue), keys.claims_at(queue, one)

    assert prefix <= key < keys.prefix_end(prefix)
    assert (key < keys.claims_at(queue, other)) == (one < other)
    assert keys.claims_parts(key) == (queue, one)


@given(u64, u64)
def test_pages_of_the_journal_sort_by_number(one: int, other: int) -> None:
    assert (keys.event(one) < keys.event(other)) == (one < other)
    assert keys.event_number(keys.event(one)) == one


@given(shards, u64, shards, u64)
def test_errands_sort_by_shard_then_number(one: int, first: int, other: int, second: int) -> None:
    assert (keys.outbox(one, first) < keys.outbox(other, second)) == ((one, first) < (other, second))
    assert keys.outbox_number(keys.outbox(one, first)) == first
    assert keys.outbox_last(one)[-1] == keys.inbox_last(one)[-1] == one


@given(log_indexes)
def test_the_index_of_a_log_key_is_read_back(index: int) -> None:
    assert keys.log_index(keys.log_entry(index)) == index


def test_no_family_lies_in_the_range_of_another() -> None:
    for one, other in combinations(keys.STATE_PREFIXES, 2):
        ranges = sorted([(one, keys.prefix_end(one)), (other, keys.prefix_end(other))])
        assert ranges[0][1] <= ranges[1][0]


@given(any_key)
def test_every_key_of_the_state_lies_in_exactly_one_family(key: bytes) -> None:
    assert sum(prefix <= key < keys.prefix_end(prefix) for prefix in keys.STATE_PREFIXES) == 1


def test_every_prefix_has_a_maker_and_every_maker_a_prefix() -> None:
    samples = {
        keys.job("x"),
        keys.job_error("x", 1),
        keys.pending("q", Priority.HIGH, 1, "x"),
        keys.pending("q", Priority.NORMAL, 1, "x"),
        keys.active("q", "x"),
        keys.scheduled("q", 1, "x"),
        keys.retrying("q", 1, "x"),
        keys.due(keys.DUE, 1, "x"),
        keys.due(keys.ALARMS, 1, "x"),
        keys.api_key("x"),
        keys.role("x"),
        keys.namespace("x"),
        keys.SSO,
        keys.REDACTION,
        keys.ACCESS_VERSION,
        keys.unique("q", "k"),
        keys.idempotent("q", "k"),
        keys.watcher("x", "y"),
        keys.forwarded("x"),
        keys.batch("b"),
        keys.batch_ask("b", 1),
        keys.schedule("s"),
        keys.bulk("b"),
        keys.bulk_ended("b"),
        keys.bulk_ids("b"),
        keys.bulk_memo("b"),
        keys.claims_at("q", 1),
        keys.audit(1),
        keys.event(1),
        keys.outbox(1, 1),
        keys.outbox_last(1),
        keys.inbox_last(1),
        keys.queue("q"),
        keys.minute("q", 1),
        keys.worker("w"),
        keys.node("node-1"),
        keys.DEFAULT_RETENTION,
        keys.WORKER_TIMEOUT,
    }

    assert {sample[: sample.index(b"|") + 1] for sample in samples} == set(keys.STATE_PREFIXES)


@given(queue_names, u64, job_ids, log_indexes)
def test_retrying_jobs_and_the_raft_log_share_a_prefix_without_meeting(
    queue: str, due_at: int, job: str, index: int
) -> None:
    first_of_queues, key = b"r|0", keys.retrying(queue, due_at, job)

    assert keys.log_entry(index) < first_of_queues <= key


@given(log_indexes, any_key)
def test_what_a_replica_keeps_for_itself_is_no_state(index: int, key: bytes) -> None:
    own = {keys.APPLIED, keys.LOG_META, keys.IDENTITY, keys.HARD_STATE, keys.MEMBERSHIP, keys.INCARNATION}
    own |= {keys.FEED_FLOOR, keys.INCOMING, keys.feed_record(index), keys.log_entry(index)}

    assert key not in own
    assert len(own) == 10


@given(log_indexes, any_key)
def test_the_ranges_of_the_state_hold_all_of_it_once_and_nothing_else(index: int, key: bytes) -> None:
    ranges = keys.state_ranges()
    own = [keys.APPLIED, keys.IDENTITY, keys.INCOMING, keys.feed_record(index), keys.log_entry(index)]

    assert sum(start <= key < stop for start, stop in ranges) == 1
    assert not any(start <= other < stop for start, stop in ranges for other in own)
    assert all(one[1] <= other[0] for one, other in pairwise(ranges))


@given(node_ids)
def test_the_name_in_a_node_key_is_read_back(node_id: str) -> None:
    assert keys.node_name(keys.node(node_id)) == node_id


@given(st.binary(max_size=20), st.binary(max_size=20))
def test_after_a_key_comes_nothing_smaller_than_its_successor(key: bytes, other: bytes) -> None:
    assert key < keys.after(key)
    assert not key < other < keys.after(key)


@given(st.binary(min_size=1, max_size=10).filter(lambda prefix: prefix[-1] < 255), st.binary(max_size=10))
def test_the_end_of_a_prefix_lies_after_all_that_begin_with_it(prefix: bytes, rest: bytes) -> None:
    assert prefix <= prefix + rest < keys.prefix_end(prefix)
    assert (prefix <= rest < keys.prefix_end(prefix)) == rest.startswith(prefix)


def test_a_queue_whose_name_begins_another_has_a_range_of_its_own() -> None:
    prefix = keys.pending_prefix("mail", Priority.NORMAL)

    stranger = keys.pending("mail.slow", Priority.NORMAL, 1, job_id(1))

    assert not prefix <= stranger < keys.prefix_end(prefix)
