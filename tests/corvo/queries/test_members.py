"""Changes of members: which shards are asked what, and what is refused before any is."""

import pytest

from corvo.endpoint import Plan, PlanContext
from corvo.model.errors import Refusal
from corvo.model.ids import Minter
from corvo.queries import members
from corvo.queries.members import (
    AddNode,
    GroupMembers,
    GroupView,
    JoinBody,
    MembersView,
    MoveLeader,
    RemoveBody,
    RemoveNode,
    TransferBody,
)
from tests.support.builders import NOW, Clock

ASKING = PlanContext(3, 1_000, Minter(Clock([NOW]), 0), Clock([NOW]))
PLANS = {endpoint.name: endpoint.plan for endpoint in members.ENDPOINTS}


def planned(name: str, body: object) -> Plan:
    plan = PLANS[name]
    assert plan is not None
    return plan(ASKING, body)


@pytest.mark.parametrize(
    ("name", "body", "ask"),
    [
        ("cluster_join", JoinBody(node_id="d", address="db-4:9400"), AddNode("d", "db-4:9400")),
        ("cluster_join", JoinBody(node_id="d", addr="db-4:9400"), AddNode("d", "db-4:9400")),
        ("cluster_join", JoinBody(node_id="d", address="db-4:9400", addr="db-4:9400"), AddNode("d", "db-4:9400")),
        ("cluster_remove", RemoveBody(node_id="d"), RemoveNode("d")),
        ("cluster_transfer", TransferBody(node_id="d"), MoveLeader("d")),
    ],
)
def test_every_shard_is_asked_because_each_is_a_group_of_its_own(name: str, body: object, ask: object) -> None:
    assert planned(name, body).calls == [(0, ask), (1, ask), (2, ask)]


def test_the_leadership_of_one_shard_can_be_moved() -> None:
    plan = planned("cluster_transfer", TransferBody(node_id="d", shard=2))

    assert plan.calls == [(2, MoveLeader("d"))]
    assert plan.conclude([GroupMembers(1, ["a", "d"])]).body == MembersView("d", [GroupView(2, ["a", "d"], [], False)])


@pytest.mark.parametrize("shard", [-1, 3])
def test_a_shard_that_does_not_exist_is_refused(shard: int) -> None:
    with pytest.raises(Refusal, match=f"there is no shard {shard}; the last one is 2"):
        planned("cluster_transfer", TransferBody(node_id="d", shard=shard))


@pytest.mark.parametrize("address", ["db-4", ":9400", "db-4:0", ""])
def test_an_address_that_others_cannot_reach_is_refused(address: str) -> None:
    with pytest.raises(Refusal, match="address: "):
        planned("cluster_join", JoinBody(node_id="d", address=address))


def test_the_answer_shows_every_group_and_whether_it_still_changes() -> None:
    results = [GroupMembers(4, ["a"], [], ["d"]), GroupMembers(5, ["a", "d"], ["a"]), GroupMembers(6, ["a", "d"])]

    answer = planned("cluster_join", JoinBody(node_id="d", address="db-4:9400")).conclude(results)

    assert (answer.status, answer.body) == (
        200,
        MembersView(
            "d",
            [
                GroupView(0, ["a"], ["d"], False),
                GroupView(1, ["a", "d"], [], True),
                GroupView(2, ["a", "d"], [], False),
            ],
        ),
    )


@pytest.mark.parametrize(
    ("body", "field"), [(JoinBody(node_id="d"), "address"), (JoinBody("d", "db-4:9400", "db-5:9400"), "addr")]
)
def test_a_node_joins_at_one_address(body: JoinBody, field: str) -> None:
    with pytest.raises(Refusal) as refused:
        planned("cluster_join", body)

    assert (refused.value.code, refused.value.field) == ("VALIDATION_ERROR", field)
