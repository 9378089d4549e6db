"""The lives of peers: the numbered rules of the module."""

from __future__ import annotations

import pytest

from shards.raft.incarnations import Incarnations, Verdict
from shards.raft.messages import AppendReply, Hello, LeaderHeartbeat


def a_request(sender: int, receiver: int) -> LeaderHeartbeat:
    return LeaderHeartbeat("b", "a", sender, receiver, 1, commit=0, round=1)


def an_answer(sender: int, receiver: int) -> AppendReply:
    return AppendReply("b", "a", sender, receiver, 1, index=0)


def test_nothing_is_known_at_the_start() -> None:
    assert Incarnations(5).of("b") == 0


def test_every_message_teaches() -> None:
    incarnations = Incarnations(5)

    assert incarnations.judge(Hello("b", "a", 3, 0, 1)) is Verdict.ADMIT
    assert incarnations.of("b") == 3


def test_a_later_life_is_noticed_once_and_the_earlier_one_is_dropped() -> None:
    incarnations = Incarnations(5)
    incarnations.judge(a_request(3, 5))

    assert incarnations.judge(a_request(4, 5)) is Verdict.RESTARTED
    assert incarnations.judge(a_request(4, 5)) is Verdict.ADMIT
    assert incarnations.judge(a_request(3, 5)) is Verdict.STALE
    assert incarnations.of("b") == 4


@pytest.mark.parametrize(
    ("receiver", "for_request", "for_answer"),
    [
        (5, Verdict.ADMIT, Verdict.ADMIT),
        (4, Verdict.STALE, Verdict.STALE),
        (0, Verdict.ADMIT, Verdict.DROP),
        (6, Verdict.ROLLED_BACK, Verdict.ROLLED_BACK),
    ],
)
def test_a_message_is_for_one_life(receiver: int, for_request: Verdict, for_answer: Verdict) -> None:
    assert Incarnations(5).judge(a_request(1, receiver)) is for_request
    assert Incarnations(5).judge(an_answer(1, receiver)) is for_answer


def test_even_a_message_for_a_former_life_teaches_who_sent_it() -> None:
    incarnations = Incarnations(5)

    incarnations.judge(a_request(3, 4))

    assert incarnations.of("b") == 3


def test_zero_is_no_incarnation() -> None:
    with pytest.raises(AssertionError):
        Incarnations(0)
