"""Replicas whose disks are slow: they are not taken for dead, and nothing is said before it is on disk."""

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from corvo.model.lifecycle import State
from corvo.queries.job import GetJob, JobRecord
from corvo.wire import Call, encode
from shards.group.messages import PeerMessage, RaftMessage
from shards.raft.messages import LeaderHeartbeat
from shards.storage.leveldb import DiskFailed
from shards.storage.sync_thread import SyncThread, at_once
from tests.shards.replica_group import MS, Group
from tests.support.builders import ack, enqueue, fetch, job_id


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Group]:
    group = Group(tmp_path)
    yield group
    group.close()


@pytest.fixture
def in_thread() -> Iterator[SyncThread]:
    writing = SyncThread()
    yield writing
    writing.close()


def test_whoever_is_alone_just_waits() -> None:
    done: list[str] = []
    at_once(lambda: done.append("written"), lambda: done.append("listened"))
    assert done == ["written"]


def test_while_a_thread_writes_its_owner_gives_heartbeats() -> None:
    may_end = threading.Event()
    writing = SyncThread(beat=may_end.set)

    writing(lambda: _wait_for(may_end), lambda: None)

    writing.close()
    assert may_end.is_set()


def test_while_a_thread_writes_its_owner_listens(in_thread: SyncThread) -> None:
    may_end = threading.Event()
    heard: list[bool] = []

    def listen() -> None:
        heard.append(may_end.is_set())
        if len(heard) == 3:
            may_end.set()

    in_thread(lambda: _wait_for(may_end), listen)

    assert heard[:3] == [False, False, False]


def test_a_write_that_fails_in_the_thread_fails_for_its_owner(in_thread: SyncThread) -> None:
    def fail() -> None:
        raise DiskFailed("no space left")

    with pytest.raises(DiskFailed, match="no space left"):
        in_thread(fail, lambda: None)


def test_a_leader_with_a_slow_disk_stays_leader_and_answers_when_it_is_back(group: Group) -> None:
    leader = group.leader()
    term = leader.replica.raft.term
    leader.slow_ms = 3_000

    assert group.ask(leader, enqueue(1)) == [State.PENDING]

    assert group.leader() is leader and leader.replica.raft.term == term
    group.agree()


def test_a_follower_with_a_slow_disk_keeps_its_leader_and_catches_up(group: Group) -> None:
    leader, follower = group.leader(), group.follower()
    term = leader.replica.raft.term
    follower.slow_ms = 3_000

    group.ask(leader, enqueue(1))
    group.ask(leader, enqueue(2))

    assert group.leader() is leader and leader.replica.raft.term == term
    assert follower.replica.raft.leader_id == leader.name
    group.agree()


def test_a_follower_says_nothing_of_what_its_disk_has_not_written(group: Group) -> None:
    leader, follower = group.leader(), group.follower()
    (third,) = set(group.nodes) - {leader.name, follower.name}
    group.cut_off = {third}
    known = leader.replica.raft.commit_index
    seen: list[int] = []
    follower.slow_ms = 1_000
    follower.while_writing = lambda: seen.append(leader.replica.raft.commit_index)

    group.ask(leader, enqueue(1))

    assert seen and set(seen) == {known}, "a majority without a disk is no majority"
    assert leader.replica.raft.commit_index > known


def test_what_is_not_listened_to_costs_the_leadership(group: Group) -> None:
    """The tests above can fail: without listening, the same slow disk makes the others elect somebody."""
    leader = group.leader()
    leader.slow_ms, leader.listens = 3_000, False

    number = leader.send(enqueue(1))
    group.until(lambda: number in leader.answers, "an answer")

    assert not leader.replica.raft.is_leader


def test_a_leader_whose_disk_is_silent_for_long_hands_over(group: Group) -> None:
    leader = group.leader()
    leader.slow_ms = 8_000

    number = leader.send(enqueue(1))
    group.until(lambda: number in leader.answers, "an answer")

    assert group.leader() is not leader
    group.agree()


@pytest.mark.parametrize("seed", range(12))
def test_slow_disks_at_random_lose_nothing_and_repeat_nothing(group: Group, seed: int) -> None:
    choose = random.Random(seed)
    taken = []
    for number in range(25):
        slow = choose.choice(list(group.nodes.values()))
        slow.slow_ms = choose.choice((0, 40, 300, 1_500, 2_600))
        group.cut_off = {choose.choice(list(group.nodes))} if choose.random() < 0.2 else set()
        running = [node for node in group.nodes.values() if node.name not in group.cut_off]
        node = choose.choice(running)
        if group.ask(node, enqueue(number), 60_000) == [State.PENDING]:
            taken.append(number)
        claimed = group.ask(node, fetch("mail"), 60_000)
        if isinstance(claimed, list) and claimed and choose.random() < 0.7:
            group.ask(node, ack(claimed[0].job_id, token=claimed[0].lease_token), 60_000)
    group.cut_off = set()
    group.agree()
    for number in taken:
        assert isinstance(group.ask(group.leader(), GetJob(job_id(number))), JobRecord), f"job {number} is lost"


def _wait_for(event: threading.Event) -> None:
    assert event.wait(10)


def test_in_a_turn_that_takes_long_the_others_hear_from_the_leader(group: Group) -> None:
    leader = group.leader()
    heartbeats = 0

    def count(sender: str, posted: PeerMessage) -> bool:
        nonlocal heartbeats
        heartbeats += isinstance(posted.body, RaftMessage) and isinstance(posted.body.message, LeaderHeartbeat)
        return False

    def slow_clock() -> int:
        group.now_ns += 10 * MS
        return group.now_ns

    group.lost = count
    leader.replica._monotonic_ns = slow_clock
    calls = [(b"gateway", [Call(1_000 + number, 60_000, encode(enqueue(number)))]) for number in range(40)]
    leader.asked.update({1_000 + number: type(enqueue(0)) for number in range(40)})
    leader.turn(calls)

    assert heartbeats >= 2 * 3, "one to each of the two others, every tenth of a second of this turn"
    group.agree()
