import asyncio
import base64

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corvo.model.errors import Refusal
from corvo.model.job import JobError, Priority
from corvo.model.job_extras import Chain, ChainStep, JobExtras
from corvo.model.lifecycle import STATE_NAMES, State
from corvo.model.reach import Reach
from corvo.queries.search import SearchBody
from gateway.search import search
from gateway.search.filters import residual
from gateway.search.index_scan import slice_statement
from gateway.search.sorts import Sort
from tests.support.builders import NOW, SECOND, a_job, job_id

MOMENT = "2026-01-01T00:00:00Z"
INJECTIONS = ("'; DROP TABLE jobs; --", "%", "_", "\\", '"', "a' OR '1'='1", "\x00", ":name", "?", "𝕏", "s00_job_%")


@pytest.fixture
def find(ask):
    return lambda **body: ask(search.answer, SearchBody(**body))


def ids(answer):
    return [job.id for job in answer.jobs]


def refused(find, **body):
    with pytest.raises(Refusal) as refusal:
        find(**body)
    assert refusal.value.code == "VALIDATION_ERROR"
    return refusal.value.field


def test_a_summary_holds_what_the_row_holds(written, find):
    written.put(
        a_job(
            1,
            payload=b'{"a": [1,  2]}',
            tags=b'{"t":"x"}',
            state=State.COMPLETED,
            attempt=2,
            worker_id="w1",
            started_at=NOW + 1,
            completed_at=NOW + 2,
        ),
        JobError(job_id(1), 1, 1, "first", "", NOW),
        JobError(job_id(1), 2, 2, "second", "", NOW),
    )

    answer = find()

    (job,) = answer.jobs
    assert bytes(job.payload) == b'{"a": [1,  2]}'
    assert bytes(job.tags) == b'{"t":"x"}'
    assert (job.state, job.attempt, job.worker_id, job.last_error) == ("completed", 2, "w1", "second")
    assert (job.created_at, job.completed_at) == ("2026-01-01T00:00:00.000000000Z", "2026-01-01T00:00:00.000000002Z")
    assert (answer.total, answer.total_is_exact, answer.has_more, answer.cursor) == (1, True, False, None)
    assert msgspec.json.encode(answer)


def test_the_order_is_that_of_creation_then_of_the_id(written, find):
    written.put(a_job(1, created_at=NOW + 2), a_job(3, created_at=NOW + 1), a_job(2, created_at=NOW + 1))

    assert ids(find(order="asc")) == [job_id(2), job_id(3), job_id(1)]
    assert ids(find(order="desc")) == [job_id(1), job_id(3), job_id(2)]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ({"queue": "mail"}, [1, 2, 4]),
        ({"queue": "none"}, []),
        ({"state": ["active"]}, [2]),
        ({"state": ["active", "dead", "active"]}, [2, 3]),
        ({"queue": "sms", "state": ["dead"]}, [3]),
        ({"queue": "mail", "state": ["dead"]}, []),
        ({"priority": "critical"}, [4]),
        ({"worker_id": "w1"}, [2]),
        ({"job_id_prefix": "s00_job_"}, [1, 2, 3, 4]),
        ({"job_id_prefix": job_id(3)}, [3]),
        ({"job_id_prefix": job_id(3), "queue": "mail"}, []),
        ({"job_id_prefix": job_id(3), "state": ["dead"], "queue": "sms"}, [3]),
        ({"created_after": "2026-01-01T00:00:02Z"}, [3, 4]),
        ({"created_before": "2026-01-01T00:00:02Z"}, [1]),
        ({"created_after": "2026-01-01T01:00:01+01:00", "created_before": "2026-01-01T00:00:03.000Z"}, [2]),
        ({"started_after": "2026-01-01T00:00:00Z"}, [2]),
        ({"scheduled_before": "2027-01-01T00:00:00Z"}, [4]),
        ({"completed_after": "2026-01-01T00:00:00Z"}, []),
    ],
)
def test_filters(written, find, body, found):
    written.put(
        a_job(1, created_at=NOW + 1 * SECOND),
        a_job(2, created_at=NOW + 2 * SECOND, state=State.ACTIVE, worker_id="w1", started_at=NOW + 1),
        a_job(3, created_at=NOW + 3 * SECOND, state=State.DEAD, queue="sms"),
        a_job(4, created_at=NOW + 4 * SECOND, state=State.SCHEDULED, priority=Priority.CRITICAL, due_at=NOW + 5),
    )

    answer = find(order="asc", **body)

    assert ids(answer) == [job_id(number) for number in found]
    assert (answer.total, answer.total_is_exact) == (len(found), True)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ({"unique_key": "k"}, [1, 2]),
        ({"unique_key": "k", "queue": "mail"}, [1]),
        ({"batch_id": "b1"}, [2, 3]),
        ({"batch_id": "b1", "queue": "sms"}, [2]),
        ({"batch_id": "b1", "state": ["dead"]}, [3]),
        ({"batch_id": "b1", "unique_key": "k"}, [2]),
        ({"batch_id": "b1", "parent_id": "p"}, []),
        ({"chain_id": "c1"}, [4]),
        ({"parent_id": "p"}, [1]),
        ({"parent_id": "none"}, []),
    ],
)
def test_filters_by_what_binds_jobs_together(written, find, body, found):
    written.put(
        a_job(1, parent_id="p", extras=JobExtras(unique_key="k")),
        a_job(2, queue="sms", extras=JobExtras(unique_key="k", batch_id="b1")),
        a_job(3, state=State.DEAD, extras=JobExtras(batch_id="b1")),
        a_job(4, extras=JobExtras(chain=Chain("c1", 2, (ChainStep("mail"),)), hold_reason="why not")),
        a_job(5),
    )

    answer = find(order="asc", **body)

    assert ids(answer) == [job_id(number) for number in found]
    assert (answer.total, answer.total_is_exact) == (len(found), True)


def test_a_summary_names_what_binds_the_job(written, find):
    chain = Chain("c1", 2, (ChainStep("mail"),))
    written.put(a_job(1, extras=JobExtras(unique_key="k", batch_id="b", chain=chain, hold_reason="because")), a_job(2))

    plain, bound = find().jobs

    assert (bound.unique_key, bound.batch_id, bound.chain_id, bound.chain_step) == ("k", "b", "c1", 2)
    assert bound.hold_reason == "because"
    assert b"unique_key" not in msgspec.json.encode(plain)


def test_a_job_on_its_way_between_two_shards_is_listed_once(written, find):
    written.put(a_job(1), a_job(2, queue="old"), a_job(3), JobError(job_id(2), 1, 1, "boom", "", NOW))
    written.put(a_job(2, queue="new"), JobError(job_id(2), 1, 1, "boom", "", NOW), shard=1)

    assert ids(find(order="asc")) == [job_id(1), job_id(2), job_id(3)]
    assert [job.queue for job in find(queue="old").jobs] == ["old"]
    assert [job.queue for job in find(queue="new").jobs] == ["new"]
    for limit in (1, 2, 3):
        pages, cursor = [], None
        while True:
            answer = find(order="asc", limit=limit, cursor=cursor)
            pages += ids(answer)
            cursor = answer.cursor
            if cursor is None:
                break
        assert pages == [job_id(1), job_id(2), job_id(3)]


@pytest.mark.parametrize("text", INJECTIONS)
@pytest.mark.parametrize("field", ["queue", "worker_id", "job_id_prefix"])
def test_hostile_text_is_a_value_like_any_other(written, find, field, text):
    written.put(a_job(1), a_job("hostile", queue=text, worker_id=text), a_job(text[:64]))

    found = find(**{field: text})

    expected = {"queue": ["hostile"], "worker_id": ["hostile"], "job_id_prefix": [written.place.stored(text)]}[field]
    assert ids(found) == expected
    assert find().total == 3


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("created_after", "yesterday"),
        ("created_before", "2026-01"),
        ("scheduled_after", "2026-13-01T00:00:00Z"),
        ("started_before", "' OR 1=1 --"),
        ("completed_after", ""),
    ],
)
def test_what_is_no_moment_is_refused_by_name(written, find, field, text):
    assert refused(find, **{field: text}) == field


def a_cursor(*place):
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(place)).decode().rstrip("=")


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "!!!!",
        "AAAA",
        "é",
        "a" * 512,
        a_cursor("desc"),
        a_cursor("desc", "2026-01-01T00:00:00.000000000Z"),
        a_cursor("desc", "2026-01-01T00:00:00Z", "a"),
        a_cursor("desc", "2026-01-01T00:00:00.000000000Z", 7),
        a_cursor("desc", "' OR 1=1", "a"),
        a_cursor("sideways", "2026-01-01T00:00:00.000000000Z", "a"),
        a_cursor("asc", "2026-01-01T00:00:00.000000000Z", "a"),
        a_cursor("desc", "2026-01-01T00:00:00.000000000Z", "a", "more"),
    ],
)
def test_a_cursor_that_is_not_ours_is_refused(written, find, cursor):
    assert refused(find, cursor=cursor) == "cursor"


@given(cursor=st.text(max_size=64) | st.binary(max_size=64).map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_text_as_a_cursor_does_more_than_refuse(written, find, cursor):
    try:
        find(cursor=cursor)
    except Refusal as refusal:
        assert refusal.field == "cursor"


def test_the_total_is_exact_up_to_its_bound(written, find, monkeypatch):
    monkeypatch.setattr(search, "TOTAL_MAX", 10)
    written.put(*[a_job(number) for number in range(10)])
    assert (find(limit=1).total, find(limit=1).total_is_exact) == (10, True)

    written.put(a_job(10))

    assert (find(limit=1).total, find(limit=1).total_is_exact) == (10, False)
    assert find(limit=1, queue="mail").total_is_exact is False


def test_a_total_that_takes_too_long_is_left_out(written, find, monkeypatch):
    written.put(*[a_job(number) for number in range(2_000)])
    monkeypatch.setattr(search, "COUNT_BUDGET_MS", -1)

    answer = find(limit=5)

    assert len(answer.jobs) == 5
    assert (answer.total, answer.total_is_exact) == (6, False)


def walk(read_db, between=lambda: None, **body):
    """All pages, one after the other."""

    async def pages():
        found, cursor = [], None
        while True:
            answer = await search.answer(read_db.within(Reach()), SearchBody(cursor=cursor, **body))
            found += [job.id for job in answer.jobs]
            if not answer.has_more:
                assert answer.cursor is None
                return found
            cursor = answer.cursor
            between()

    return asyncio.run(pages())


@given(
    moments=st.lists(st.integers(0, 5), min_size=1, max_size=12),
    limit=st.integers(2, 5),
    order=st.sampled_from(["asc", "desc"]),
    by=st.sampled_from([{}, {"queue": "mail"}, {"state": ["pending", "dead"]}, {"queue": "mail", "state": ["dead"]}]),
    seed=st.randoms(use_true_random=False),
)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pages_hold_every_lasting_job_once_while_others_come_and_go(written, read_db, moments, limit, order, by, seed):
    states = [State.DEAD if "state" in by and len(by["state"]) == 1 else State.PENDING for _ in moments]
    lasting = [
        a_job(number, created_at=NOW + moment, state=state)
        for number, (moment, state) in enumerate(zip(moments, states, strict=True))
    ]
    written.place.tamper("DELETE FROM jobs")
    written.put(*lasting)

    def meanwhile():
        number = seed.randrange(1_000, 1_010)
        if seed.random() < 0.5:
            written.put(a_job(number, created_at=NOW + seed.randrange(6), state=lasting[0].state))
        else:
            written.delete(job_id(number))

    found = [job for job in walk(read_db, meanwhile, limit=limit, order=order, **by) if int(job[-4:]) < 1_000]

    expected = sorted(lasting, key=lambda job: (job.created_at, job.id), reverse=order == "desc")
    assert found == [job.id for job in expected]


@pytest.mark.parametrize(
    ("body", "indexes"),
    [
        ({}, ["idx_jobs_created"]),
        ({"queue": "mail"}, ["idx_jobs_queue_state_priority"]),
        ({"state": ["dead", "active"]}, ["idx_jobs_state"]),
        ({"queue": "mail", "state": ["dead"], "created_after": MOMENT}, ["idx_jobs_queue_state_priority"]),
        ({"sort": "priority", "order": "asc"}, ["idx_jobs_priority", "idx_jobs_created"]),
        ({"sort": "priority", "queue": "mail"}, ["idx_jobs_queue_state_priority", "idx_jobs_priority"]),
        ({"sort": "attempt"}, ["idx_jobs_attempt", "idx_jobs_created", "idx_jobs_created"]),
        ({"sort": "started_at", "payload_contains": "x"}, ["idx_jobs_started", "idx_jobs_created"]),
        ({"sort": "completed_at", "order": "asc"}, ["idx_jobs_completed", "idx_jobs_created"]),
        ({"sort": "failed_at", "state": ["dead"]}, ["idx_jobs_failed", "idx_jobs_state"]),
        ({"sort": "scheduled_at"}, ["idx_jobs_due", "idx_jobs_created"]),
    ],
)
def test_a_page_is_read_along_its_index(explain, body, indexes):
    asked = SearchBody(**body)
    sort = Sort(asked, Reach())
    legs = sort.legs_from(None)
    for leg, expected in zip(legs, indexes, strict=True):
        text, plan = explain(slice_statement(sort, leg, None, residual(asked, Reach()), 1_000, 51))

        assert text.count(f"INDEXED BY {expected}") == len(leg.branches)
        assert sum(f"INDEX {expected}" in step for step in plan) >= len(leg.branches), plan
        assert not [step for step in plan if step.startswith("SCAN jobs") and "INDEX" not in step], plan


def test_every_state_can_be_asked_for(written, find):
    written.put(*[a_job(state, state=state) for state in State])

    for state in State:
        assert ids(find(state=[STATE_NAMES[state]])) == [job_id(state)]
    assert find(state=list(STATE_NAMES)).total == len(State)
