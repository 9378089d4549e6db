"""Rates from two looks."""

from corvo.cli.screen.top.looks import SAMPLES_MAX, Past, Rates, rates
from tests.cli.answers import a_look, a_queue


def test_rates_are_differences_over_the_time_between_two_looks() -> None:
    before = a_look(10.0, queues=[a_queue(enqueued=100, completed_total=50, failed=5)])
    after = a_look(12.0, queues=[a_queue(enqueued=300, completed_total=60, failed=5), a_queue("new", enqueued=8)])

    assert rates(before, after) == Rates(enqueued=104.0, completed=5.0, failed=0.0)


def test_a_counter_that_went_back_is_no_negative_rate() -> None:
    assert rates(a_look(1, queues=[a_queue(enqueued=9)]), a_look(2, queues=[a_queue(enqueued=3)])) == Rates()


def test_the_first_look_has_the_rates_of_the_server() -> None:
    queue = a_queue(enqueued=9, enqueued_per_s=2.5, completed_per_s=1.5, failed_per_s=0.5)
    look = a_look(queues=[queue, a_queue("sms", enqueued_per_s=1.5)])

    assert rates(None, look) == Past(None, look).rates == Rates(enqueued=4.0, completed=1.5, failed=0.5)


def test_queues_that_could_not_be_read_are_no_burst_afterwards() -> None:
    unread, read = a_look(1.0, queues=None), a_look(2.0, queues=[a_queue(enqueued=10**6, enqueued_per_s=3.0)])

    assert rates(unread, read) == Rates(enqueued=3.0)
    assert rates(read, unread) == Rates()


def test_the_history_is_bounded() -> None:
    past = Past(None, a_look(0.0))
    for second in range(1, SAMPLES_MAX + 10):
        past = past.then(a_look(float(second), queues=[a_queue(enqueued=second)]))

    assert len(past.history) == SAMPLES_MAX
    assert past.rates == past.history[-1]
    assert past.span_s == 1.0
