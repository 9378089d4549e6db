import pytest

from corvo.model.errors import Refusal
from corvo.model.job import Minute, new_queue
from corvo.model.reach import Reach
from corvo.model.timestamps import to_rfc3339
from corvo.queries.throughput import ThroughputQuery
from corvo.state.minutes import MINUTE_NS, MINUTES_KEPT
from gateway.search import throughput
from gateway.search.database import Prepared
from tests.support.builders import NOW

LAST = NOW // MINUTE_NS


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    monkeypatch.setattr(throughput.time, "time_ns", lambda: LAST * MINUTE_NS + 1)


def a_queue(name="mail", minute=LAST, **amounts):
    """With so much in its newest minute, and something before."""
    queue = new_queue(name, NOW)
    queue.enqueued, queue.completed, queue.failed, queue.died = 100, 80, 20, 10
    queue.began = (minute, *(100 - amounts.get("enqueued", 0), 80 - amounts.get("completed", 0)), 20, 10)
    return queue


def amounts(points):
    return [(point.enqueued, point.completed, point.failed, point.dead) for point in points]


NOTHING = (0, 0, 0, 0)


def test_a_series_has_every_minute_and_ends_with_the_one_that_runs(written, ask):
    written.put(a_queue(enqueued=7, completed=5), Minute("mail", LAST - 2, 4, 3, 2, 1))

    points = ask(throughput.answer, ThroughputQuery(minutes=4), "mail")

    assert [point.minute for point in points] == [to_rfc3339((LAST - ago) * MINUTE_NS) for ago in (3, 2, 1, 0)]
    assert amounts(points) == [NOTHING, (4, 3, 2, 1), NOTHING, (7, 5, 0, 0)]


def test_the_newest_minute_of_a_queue_is_shown_where_it_was_also_when_it_is_over(written, ask):
    written.put(a_queue(minute=LAST - 1, enqueued=7))

    assert amounts(ask(throughput.answer, ThroughputQuery(minutes=2), "mail")) == [(7, 0, 0, 0), NOTHING]


def test_what_a_clock_ahead_of_ours_has_counted_belongs_to_the_last_minute(written, ask):
    written.put(a_queue(minute=LAST + 1, enqueued=7), Minute("mail", LAST, 1, 0, 0, 0))

    assert amounts(ask(throughput.answer, ThroughputQuery(minutes=2), "mail")) == [NOTHING, (8, 0, 0, 0)]


def test_what_is_older_than_asked_for_is_left_out(written, ask):
    written.put(a_queue(minute=LAST - 9, enqueued=7), Minute("mail", LAST - 10, 1, 1, 1, 1))

    assert amounts(ask(throughput.answer, ThroughputQuery(minutes=3), "mail")) == [NOTHING] * 3


def test_all_queues_of_all_shards_are_added_up(written, ask):
    written.put(a_queue(enqueued=1), Minute("mail", LAST - 1, 1, 2, 3, 4), shard=0)
    written.put(a_queue("sms", enqueued=10), Minute("sms", LAST - 1, 10, 20, 30, 40), shard=1)

    assert amounts(ask(throughput.answer, ThroughputQuery(minutes=2))) == [(11, 22, 33, 44), (11, 0, 0, 0)]
    assert amounts(ask(throughput.answer, ThroughputQuery(minutes=2), "sms")) == [(10, 20, 30, 40), (10, 0, 0, 0)]


def test_a_whole_day_can_be_asked_for_and_a_server_without_queues_has_one_too(written, ask):
    assert amounts(ask(throughput.answer, ThroughputQuery(minutes=MINUTES_KEPT))) == [NOTHING] * MINUTES_KEPT


def test_a_queue_that_nobody_knows_is_refused(written, ask):
    with pytest.raises(Refusal, match="no queue has the name 'nobody'") as refused:
        ask(throughput.answer, ThroughputQuery(), "nobody")

    assert refused.value.code == "QUEUE_NOT_FOUND"


@pytest.mark.parametrize(
    ("queue", "road"),
    [
        (
            None,
            "USING COVERING INDEX idx_queue_minutes_minute (namespace=? AND minute>? AND minute<?)",
        ),
        ("mail", "SEARCH queue_minutes USING PRIMARY KEY (queue=? AND minute>? AND minute<?)"),
    ],
)
def test_minutes_are_read_in_their_order_and_no_others(explain, queue, road):
    prepared = Prepared(throughput._over(throughput.Span(1, 2), queue, Reach()))

    plan = str(explain(prepared)[1])

    assert road in plan
    assert "TEMP B-TREE" not in plan
