"""What the gateway says of its node's health."""

from corvo import __version__
from corvo.errors import Refusal
from tests.gateway.answers.conftest import Written
from tests.gateway.whole_house import WholeHouse


def test_a_node_in_order_is_healthy(house: WholeHouse) -> None:
    status = house.get("/cluster/status").json

    assert (status["status"], status["mode"], status["node_id"]) == ("healthy", "single", "node-1")
    assert (status["version"], status["shards"], status["fsync"]) == (__version__, 1, True)
    group = status["groups"][0]
    assert (group["state"], group["leader_id"], group["term"], group["log_entries"]) == ("leader", "node-1", 3, 11)
    assert group["mirror_lag_entries"] == 3
    assert group["error"] is None
    assert status["mirror"]["lag_ms"] >= 0


def test_a_shard_that_is_gone_degrades_the_node_and_shows_why(blind_house: WholeHouse) -> None:
    blind_house.shards.refusing[1] = Refusal("SHARD_UNAVAILABLE", "not reachable")

    status = blind_house.get("/cluster/status").json

    assert status["status"] == "degraded"
    assert status["mirror"] is None
    assert [(group["shard"], group["state"]) for group in status["groups"]] == [(0, "leader"), (1, "unreachable")]
    assert status["groups"][1]["error"] == "not reachable"


def test_a_missing_read_db_degrades_the_node(blind_house: WholeHouse) -> None:
    assert blind_house.get("/cluster/status").json["status"] == "degraded"


def test_everything_may_be_gone_and_the_status_is_still_told(blind_house: WholeHouse) -> None:
    blind_house.shards.refusing = {shard: Refusal("SHARD_UNAVAILABLE", "gone") for shard in (0, 1)}

    assert blind_house.get("/cluster/status").status == 200


def test_the_versions_are_told(house: WholeHouse) -> None:
    reply = house.get("/info")

    assert reply.json == {"server_version": __version__, "api_version": __version__}


def test_averages_are_of_something(house: WholeHouse, written: Written) -> None:
    group = house.get("/cluster/status").json["groups"][0]

    assert (group["batch_size_avg"], group["sync_ms_avg"]) == (0.0, 0.0)
