"""Tokens of writes, the comparison of states, and options that contradict each other."""

from __future__ import annotations

import pytest

from shards.raft import Options
from shards.raft.divergence import StatePoints
from shards.raft.messages import StatePoint
from shards.raft.ready import ReadyBuilder


def test_writes_complete_in_order_and_once() -> None:
    outbox = ReadyBuilder()
    first, second = outbox.open_persist(3, 0), outbox.open_persist(5, 0)

    with pytest.raises(AssertionError):
        outbox.close_persist(second)
    assert outbox.close_persist(first).stable_index == 3
    with pytest.raises(AssertionError):
        outbox.close_persist(first)


def test_a_cut_lowers_what_pending_writes_make_stable() -> None:
    outbox = ReadyBuilder()
    tokens = [outbox.open_persist(index, 0) for index in (3, 5, 7)]

    outbox.cut(4)
    tokens.append(outbox.open_persist(6, 0))

    assert [outbox.close_persist(token).stable_index for token in tokens] == [3, 4, 4, 6]


def test_a_self_vote_belongs_to_one_write() -> None:
    outbox = ReadyBuilder()
    outbox.self_vote_term = 4
    first, second = outbox.open_persist(0, 0), outbox.open_persist(0, 0)

    assert outbox.close_persist(first).self_vote_term == 4
    assert outbox.close_persist(second).self_vote_term == 0


def test_the_age_of_the_oldest_write_is_known() -> None:
    outbox = ReadyBuilder()
    assert outbox.stalled_ns(100) == 0
    outbox.open_persist(0, 30)
    outbox.open_persist(0, 90)

    assert outbox.stalled_ns(100) == 70


def test_states_are_compared_where_both_are_known() -> None:
    points = StatePoints(2)
    for index in (1, 2, 3):
        points.add(index, b"%d" % index)

    assert points.latest == StatePoint(3, b"3")
    assert points.find_conflict(StatePoint(2, b"2")) is None
    assert points.find_conflict(StatePoint(3, b"x")) == b"3"
    assert points.find_conflict(StatePoint(1, b"x")) is None  # forgotten


@pytest.mark.parametrize(
    "options",
    [
        Options(heartbeat_ns=0),
        Options(heartbeat_ns=600, election_ns=1000),
        Options(lease_margin_ns=1000 * 1_000_000),
        Options(append_bytes_max=0),
        Options(inflight_messages_max=0),
    ],
    ids=str,
)
def test_contradictory_options_are_refused(options: Options) -> None:
    with pytest.raises(AssertionError):
        options.check()
