"""Who gets a vote."""

from __future__ import annotations

import pytest
from raft_cluster import MS, Cluster, T

from shards.raft.messages import AppendReply, HeartbeatReply, PreVote, PreVoteReply, ReadReply, Vote, VoteReply


def test_strangers_are_not_believed() -> None:
    cluster = Cluster("abc")
    leader = cluster.elect("a")
    cluster.propose("a", b"one")

    for message in (
        AppendReply("x", "a", 1, 1, 9, index=9),
        HeartbeatReply("x", "a", 1, 1, 9, round=9),
        PreVoteReply("x", "a", 1, 1, 9, granted=False),
        ReadReply("x", "a", 1, 1, 9, number=1, index=1),
    ):
        cluster.deliver(message)

    assert leader.is_leader and leader.term == 1


@pytest.mark.parametrize(
    ("last", "granted"),
    [((3, 2), True), ((4, 2), True), ((1, 3), True), ((2, 2), False), ((9, 1), False)],
)
def test_a_vote_needs_a_log_that_is_not_behind(last: tuple[int, int], granted: bool) -> None:
    cluster = Cluster("abc", logs={"b": [1, 2, 2]})
    request = Vote("a", "b", 1, 1, 5, last_index=last[0], last_term=last[1], is_transfer=False)

    cluster.deliver(request)

    assert [reply.granted for reply in cluster.sent_by("b", VoteReply)] == [granted]
    assert cluster["b"].vote == ("a" if granted else "") and cluster["b"].term == 5


def test_a_pre_vote_changes_neither_term_nor_vote() -> None:
    cluster = Cluster("abc")

    cluster.deliver(PreVote("a", "b", 1, 1, 7, last_index=0, last_term=0))

    assert [(reply.granted, reply.term) for reply in cluster.sent_by("b", PreVoteReply)] == [(True, 7)]
    assert (cluster["b"].term, cluster["b"].vote) == (0, "")


def test_a_promise_ends_by_the_clock_not_by_the_last_tick() -> None:
    cluster = Cluster("abc")
    cluster.elect("a")
    cluster.run(200 * MS)
    cluster.crash("a")
    request = PreVote("c", "b", 1, 1, 2, last_index=9, last_term=1)

    cluster.now_ns += T - 1
    cluster.deliver(request)
    assert not cluster.sent_by("b", PreVoteReply)[1:]
    cluster.sent.clear()
    cluster.now_ns += 100 * MS  # b slept all the time: nobody ticked it
    cluster.deliver(request)

    assert [reply.granted for reply in cluster.sent_by("b", PreVoteReply)] == [True]


def test_a_transfer_frees_only_those_in_the_term_of_the_leader_that_ordered_it() -> None:
    cluster = Cluster("abc")
    leader = cluster.elect("a")
    cluster.run(200 * MS)
    cluster.sent.clear()

    for term in (leader.term + 2, leader.term + 1):
        cluster.deliver(Vote("b", "c", 1, 1, term, last_index=9, last_term=1, is_transfer=True))

    assert [(reply.term, reply.granted) for reply in cluster.sent_by("c", VoteReply)] == [(2, True)]
