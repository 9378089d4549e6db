"""The scale of health: healthy, degraded (what is missing), unavailable (which shards)."""

from typing import Any

import pytest

from corvo.model.errors import Refusal
from corvo.queries.cluster import HealthReport, ShardStatus
from corvo.queries.members import GroupMembers
from gateway.shards.health_scale import LAG_MS_MAX, REPLICA_LAG_MAX, health_of, read_db_fault
from gateway.shards.replicas import Group
from tests.gateway.fake_shards import a_status

THREE = ["node-1", "node-2", "node-3"]
GONE = Refusal("SHARD_UNAVAILABLE", "away")


def a_group(shard: int, away: tuple[str, ...] = (), leader: str = "node-1", **applied: int) -> Group:
    """Three voters; `applied` by the name of the node, with an underscore."""
    shared: dict[str, Any] = {"members": GroupMembers(1, THREE), "leader": leader, "commit_index": 100_000}
    return {
        node: GONE
        if node in away
        else a_status(
            shard,
            node_id=node,
            role="leader" if node == leader else "follower",
            applied_index=applied.get(node.replace("-", "_"), 100_000),
            **shared,
        )
        for node in THREE
    }


def health(*groups: Group, lag_ms: float | None = 5.0, hung: tuple[str, ...] = ()) -> HealthReport:
    return health_of([group.get("node-1", GONE) for group in groups], groups, lag_ms, hung)


def test_a_node_alone_and_a_whole_cluster_are_healthy() -> None:
    assert health({"node-1": a_status(0)}).sentence == "healthy"
    assert health(a_group(0), a_group(1)) == HealthReport("healthy", [])


def test_a_cluster_that_misses_a_node_names_it() -> None:
    away = ("node-2",)

    assert health(a_group(0, away), a_group(1, away)).sentence == "degraded: node-2 does not answer"


def test_a_node_that_answers_for_some_shards_is_told_with_the_others() -> None:
    groups = [a_group(0), a_group(1, ("node-3",)), a_group(2, ("node-3",))]

    assert health(*groups).sentence == "degraded: node-3 does not answer for shards 1, 2"


def test_a_cluster_without_a_quorum_is_unavailable_with_its_shards() -> None:
    away = ("node-2", "node-3")
    groups = [a_group(shard, away, leader="") for shard in range(4)]

    report = health(*groups)

    assert report.level == "unavailable"
    assert report.reasons == [
        "shards 0-3: no quorum, 1 of 3 voters answers",
        "node-2 does not answer",
        "node-3 does not answer",
    ]


def test_an_election_is_no_lack_of_voters() -> None:
    assert health(a_group(0), a_group(1, leader="")).sentence == "unavailable: shard 1: no leader"


def test_a_shard_without_a_process_here_is_unavailable_here() -> None:
    groups: list[Group] = [{}, a_group(1), {}, {}]

    assert health(*groups).sentence == "unavailable: shards 0, 2, 3: no answer from the process on this node"


def test_different_reasons_are_told_apart() -> None:
    groups: list[Group] = [{}, a_group(1, leader="")]

    assert health(*groups).reasons == ["shard 0: no answer from the process on this node", "shard 1: no leader"]


def test_a_voter_far_behind_degrades_and_a_learner_does_not() -> None:
    late = 100_000 - REPLICA_LAG_MAX - 1
    learning = a_group(0, node_3=late)
    for status in learning.values():
        assert isinstance(status, ShardStatus)
        status.members = GroupMembers(1, THREE[:2], [], ["node-3"])

    assert health(a_group(0, node_3=late)).sentence == "degraded: node-3 is 10001 entries behind for shard 0"
    assert health(a_group(0, node_3=late + 1)).level == "healthy"
    assert health(learning).level == "healthy"


@pytest.mark.parametrize(
    ("lag_ms", "fault"),
    [(LAG_MS_MAX, ""), (LAG_MS_MAX + 1, "read.db is 10001 ms behind"), (None, "read.db cannot be read")],
)
def test_an_old_read_db_degrades(lag_ms: float | None, fault: str) -> None:
    assert read_db_fault(lag_ms) == fault
    assert health(a_group(0), lag_ms=lag_ms).reasons == ([fault] if fault else [])


def test_a_process_that_hangs_degrades() -> None:
    report = health(a_group(0), hung=("gateway-1 has given no heartbeat for 34 s",))

    assert report.sentence == "degraded: gateway-1 has given no heartbeat for 34 s"


def test_levels_are_numbers_too() -> None:
    assert [HealthReport(level).number for level in ("healthy", "degraded", "unavailable")] == [0, 1, 2]
