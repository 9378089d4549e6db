import time

import pytest
import zmq

from corvo.links.serial_link import SerialLink
from corvo.model.errors import Refusal, Refused
from corvo.queries.feed import FeedBatch, Pull
from corvo.wire import decode_ask, decode_calls, encode_replies, reply_to
from tests.support.waiting import eventually


@pytest.fixture
def ends(tmp_path):
    """A link and the raw socket of the shard that it leads to."""
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        router.setsockopt(zmq.LINGER, 0)
        router.setsockopt(zmq.RCVTIMEO, 5_000)
        router.bind(f"ipc://{tmp_path}/s")
        link = SerialLink(context, 0, f"ipc://{tmp_path}/s")
        yield link, router
        link.close()


def up(link):
    eventually(lambda: not link.notice() and link.is_up)


def asked(link, after=0):
    eventually(lambda: link.ask(Pull(after, 0, 10), 1_000, time.monotonic()))


def heard(router):
    peer, message = router.recv_multipart()
    return peer, decode_calls(message)


def test_an_answer_is_matched_by_its_id_and_taken_once(ends):
    link, router = ends
    up(link)
    asked(link, after=7)
    peer, (call,) = heard(router)
    assert decode_ask(call.ask) == Pull(7, 0, 10)

    router.send_multipart(
        [peer, encode_replies([reply_to(call.id + 5, FeedBatch(1, [])), reply_to(call.id, FeedBatch(9, []))])]
    )
    answer = eventually(link.receive)

    assert answer == FeedBatch(9, [])
    assert not link.is_asking
    router.send_multipart([peer, encode_replies([reply_to(call.id, FeedBatch(10, []))])])
    asked(link)
    heard(router)
    assert link.receive() is None


def test_a_question_asked_again_has_a_new_id_and_forgets_the_old_one(ends):
    link, router = ends
    up(link)
    asked(link)
    peer, (first,) = heard(router)

    asked(link)
    _, (forgotten, second) = heard(router)

    assert (forgotten.id, forgotten.ask) == (first.id, b"")
    assert second.id != first.id
    router.send_multipart(
        [peer, encode_replies([reply_to(first.id, FeedBatch(1, [])), reply_to(second.id, FeedBatch(2, []))])]
    )
    assert eventually(link.receive) == FeedBatch(2, [])


def test_a_refusal_is_an_answer(ends):
    link, router = ends
    up(link)
    asked(link)
    peer, (call,) = heard(router)

    router.send_multipart([peer, encode_replies([reply_to(call.id, Refused("OVERLOADED", "later", 250))])])
    answer = eventually(link.receive)

    assert isinstance(answer, Refusal)
    assert (answer.code, answer.retry_after_ms) == ("OVERLOADED", 250)


def test_nothing_is_sent_to_a_shard_that_is_not_there(tmp_path):
    with zmq.Context() as context:
        link = SerialLink(context, 0, f"ipc://{tmp_path}/nobody")

        assert not link.ask(Pull(0, 0, 10), 1_000, time.monotonic())

        assert not link.is_up
        assert not link.is_asking
        link.close()


def test_a_line_that_drops_takes_the_question_with_it(tmp_path):
    with zmq.Context() as context:
        router = context.socket(zmq.ROUTER)
        router.bind(f"ipc://{tmp_path}/s")
        link = SerialLink(context, 0, f"ipc://{tmp_path}/s")
        up(link)
        asked(link)

        router.close(linger=0)

        eventually(link.notice)
        assert not link.is_up
        assert not link.is_asking
        link.close()
