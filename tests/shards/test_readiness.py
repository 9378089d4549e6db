"""What a replica says that it waits for, in its status and in its log."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from shards.readiness import ENTRIES_BEHIND_MAX
from tests.shards.replica_group import Group, Node
from tests.support.builders import enqueue


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Group]:
    group = Group(tmp_path)
    yield group
    group.close()


def waits_for(node: Node) -> str:
    return node.replica.status().waits_for


def test_a_replica_that_serves_waits_for_nothing(group: Group) -> None:
    leader, follower = group.leader(), group.follower()

    assert (waits_for(leader), waits_for(follower)) == ("", "")


def test_one_that_is_cut_off_waits_for_a_leader(group: Group) -> None:
    follower = group.follower()
    group.cut_off.add(follower.name)
    with structlog.testing.capture_logs() as lines:
        group.pass_time(4_000)

    assert waits_for(follower).startswith("a leader: ")
    assert any(line["event"] == "waiting" and line["waits_for"].startswith("a leader") for line in lines)
    with structlog.testing.capture_logs() as lines:
        group.cut_off.clear()
        group.until(lambda: waits_for(follower) == "", "the leader is heard")
        group.pass_time(200)
    assert [line["event"] for line in lines if line["event"] in ("waiting", "ready")] == ["ready"]


def test_one_that_comes_back_says_how_many_entries_it_lacks(group: Group) -> None:
    leader, follower = group.leader(), group.follower()
    follower.kill()
    for number in range(ENTRIES_BEHIND_MAX + 50):
        leader.send(enqueue(number + 1))
    group.deliver()
    follower.start()

    told: set[str] = set()

    def is_there() -> bool:
        told.add(waits_for(follower))
        return waits_for(follower) == ""

    group.while_delivering = lambda: told.add(waits_for(follower)) if follower.is_running else None
    group.until(is_there, "it has caught up")

    assert any("entries that the group has" in reason for reason in told), told


def test_a_newcomer_waits_until_the_group_takes_it_in(group: Group) -> None:
    group.leader()
    group.cut_off.add("node-4")
    newcomer = group.join("node-4")
    group.pass_time(100)

    assert waits_for(newcomer) == "the group to take it in"
