import pytest

from corvo.model.errors import Refusal
from corvo.model.fingerprint import fingerprint
from corvo.model.job import JobError
from corvo.model.reach import Reach
from corvo.model.timestamps import to_rfc3339
from corvo.queries.error_groups import ErrorGroupsQuery
from corvo.state import keys
from gateway.mirror.rows import to_rows
from gateway.mirror.shard_writes import ShardWrite
from gateway.readdb.schema import job_errors
from gateway.search import error_groups
from gateway.search.database import Prepared
from tests.support.builders import NOW, job_id


def failure(number, error, claim=1, after=0, queue="mail", is_interrupted=False):
    return JobError(job_id(number), claim, claim, error, "", NOW + after, "w1", NOW, is_interrupted, queue)


def test_the_same_error_is_one_group_with_its_newest_as_sample(written, ask):
    written.put(
        failure(1, "user 1 not found", after=1),
        failure(1, "user 1 not found", claim=2, after=5),
        failure(2, "user 22 not found\nat line 3", after=3),
        failure(3, "boom", after=9),
    )

    found = ask(error_groups.answer, ErrorGroupsQuery())

    often, once = found.groups
    assert (often.fingerprint, often.queue, often.count) == (fingerprint("user 5 not found"), "mail", 3)
    assert (often.message, often.sample_error, often.sample_job_id) == (
        "user <number> not found",
        "user 1 not found",
        job_id(1),
    )
    assert (often.first_at, often.last_at) == (to_rfc3339(NOW + 1), to_rfc3339(NOW + 5))
    assert (once.message, once.count) == ("boom", 1)
    assert not found.has_more


def test_each_queue_has_groups_of_its_own(written, ask):
    written.put(failure(1, "boom"), failure(2, "boom", queue="sms"), failure(3, "boom", queue="sms"))

    both = ask(error_groups.answer, ErrorGroupsQuery()).groups
    sms = ask(error_groups.answer, ErrorGroupsQuery(queue="sms")).groups

    assert [(group.queue, group.count) for group in both] == [("sms", 2), ("mail", 1)]
    assert [(group.queue, group.count) for group in sms] == [("sms", 2)]


def test_what_failed_earlier_than_asked_for_is_not_counted(written, ask):
    written.put(failure(1, "boom", after=0), failure(2, "boom", after=10), failure(3, "bang", after=0))

    [group] = ask(error_groups.answer, ErrorGroupsQuery(since=to_rfc3339(NOW + 10))).groups

    assert (group.count, group.first_at, group.sample_job_id) == (1, to_rfc3339(NOW + 10), job_id(2))


def test_what_was_ended_by_somebody_is_no_failure(written, ask):
    written.put(failure(1, "held while it ran", is_interrupted=True))

    assert ask(error_groups.answer, ErrorGroupsQuery()).groups == []


def test_what_is_deleted_is_no_longer_counted(written, ask):
    written.put(failure(1, "boom"), failure(2, "boom"))
    written.writer.write([ShardWrite(shard=0, rows=to_rows(0, [(keys.job_error(job_id(1), 1), None)]))])

    [group] = ask(error_groups.answer, ErrorGroupsQuery()).groups

    assert (group.count, group.sample_job_id) == (1, job_id(2))


def test_the_limit_is_of_groups_and_the_answer_says_when_there_are_more(written, ask):
    written.put(*[failure(number, error) for number, error in enumerate(("a", "b", "c"), 1)])

    assert [len(ask(error_groups.answer, ErrorGroupsQuery(limit=limit)).groups) for limit in (2, 3)] == [2, 3]
    assert [ask(error_groups.answer, ErrorGroupsQuery(limit=limit)).has_more for limit in (2, 3)] == [True, False]


def test_a_moment_that_is_none_is_refused(written, ask):
    with pytest.raises(Refusal, match="since: expected an RFC 3339 time") as refused:
        ask(error_groups.answer, ErrorGroupsQuery(since="yesterday"))

    assert (refused.value.code, refused.value.field) == ("VALIDATION_ERROR", "since")


@pytest.mark.parametrize("queue", [None, "mail"])
def test_groups_are_counted_along_the_index_alone(explain, queue):
    prepared = Prepared(error_groups._groups(ErrorGroupsQuery(queue=queue), to_rfc3339(NOW), Reach()))

    plan = str(explain(prepared)[1])

    assert "USING COVERING INDEX idx_job_errors_fingerprint" in plan
    assert "FOR GROUP BY" not in plan


@pytest.mark.parametrize("order", [job_errors.c.created_at, job_errors.c.created_at.desc()])
def test_the_ends_of_a_group_are_a_step_into_the_index(explain, order):
    plan = str(explain(error_groups._OF_GROUP.order_by(order))[1])

    assert "idx_job_errors_fingerprint (namespace=? AND queue=? AND fingerprint=? AND created_at>?)" in plan
    assert "TEMP B-TREE" not in plan
