"""What the gateway says of its node's health."""

from corvo import __version__
from corvo.model.errors import Refusal, Refused
from corvo.model.incidents import Incident, NodeRecord
from corvo.queries.cluster import Histogram, ReplicaStatus, TransferStatus
from corvo.queries.members import GroupMembers
from corvo.runtime.process import write_record
from tests.gateway.fake_shards import FakeShards, a_status
from tests.gateway.search.conftest import Written
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


def test_a_shard_that_is_gone_is_unavailable_and_shows_why(blind_house: WholeHouse) -> None:
    blind_house.shards.refusing[1] = Refusal("SHARD_UNAVAILABLE", "not reachable")

    status = blind_house.get("/cluster/status").json

    assert status["status"] == "unavailable"
    assert status["reasons"] == ["shard 1: no answer from the process on this node", "read.db cannot be read"]
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


# A cluster

NODES = {"node-1": "db-1:9400", "node-2": "db-2:9400", "node-3": "db-3:9400"}
MEMBERS = GroupMembers(7, ["node-1", "node-2"], [], ["node-3"])


def three_nodes(shards: FakeShards, shard: int = 0) -> None:
    """The replica here follows; node-2 leads; node-3 is being fed."""
    shared = {"members": MEMBERS, "nodes": NODES, "leader": "node-2"}
    beliefs = [
        ReplicaStatus("node-1", 20, "replicate", False, True, 12.3456),
        ReplicaStatus("node-2", 22, "replicate", False, True, 0.0),
        ReplicaStatus("node-3", 5, "snapshot", True, False, 40.0),
    ]
    shards.statuses[shard, ""] = a_status(shard, role="follower", commit_index=20, applied_index=18, **shared)
    shards.statuses[shard, "node-2"] = a_status(
        shard,
        node_id="node-2",
        commit_index=22,
        applied_index=22,
        log_bytes=900,
        state_hash="ab",
        replicas=beliefs,
        transfers=[TransferStatus("node-3", True, 20, 1_000, 64_000)],
        **shared,
    )
    shards.statuses[shard, "node-3"] = a_status(
        shard,
        node_id="node-3",
        role="follower",
        commit_index=5,
        applied_index=5,
        transfers=[TransferStatus("node-2", False, 20, 900, 60_000)],
        **shared,
    )


def test_all_replicas_are_shown_with_what_they_and_their_leader_say(house: WholeHouse) -> None:
    three_nodes(house.shards)

    status = house.get("/cluster/status").json

    assert (status["status"], status["mode"]) == ("healthy", "cluster")
    group = status["groups"][0]
    assert (group["state"], group["leader_id"], group["node_id"]) == ("follower", "node-2", "node-1")
    assert group["members"] == {"voters": ["node-1", "node-2"], "learners": ["node-3"], "outgoing": []}
    shown = [
        (one["node_id"], one["role"], one["lag"], one["last_contact_ms"], one["mode"]) for one in group["replicas"]
    ]
    assert shown == [
        ("node-1", "follower", 4, 12.346, "replicate"),
        ("node-2", "leader", 0, None, ""),
        ("node-3", "learner", 17, 40.0, "snapshot"),
    ]
    assert (group["replicas"][1]["log_bytes"], group["replicas"][1]["state_hash"]) == (900, "ab")
    assert all(one["error"] is None and one["log_entries"] == 11 for one in group["replicas"])


def test_a_transfer_is_told_once_by_its_sender(house: WholeHouse) -> None:
    three_nodes(house.shards)
    told = {"sender": "node-2", "receiver": "node-3", "index": 20}

    transfers = house.get("/cluster/status").json["groups"][0]["transfers"]
    house.shards.statuses[0, "node-2"] = Refused("SHARD_UNAVAILABLE", "away")
    without_sender = house.get("/cluster/status").json["groups"][0]["transfers"]

    assert transfers == [{**told, "records": 1_000, "bytes": 64_000}]
    assert without_sender == [{**told, "records": 900, "bytes": 60_000}]


def test_nodes_are_listed_with_their_addresses(house: WholeHouse) -> None:
    three_nodes(house.shards)

    nodes = house.get("/cluster/status").json["nodes"]

    assert [(one["node_id"], one["address"], one["is_reachable"]) for one in nodes] == [
        ("node-1", "db-1:9400", True),
        ("node-2", "db-2:9400", True),
        ("node-3", "db-3:9400", True),
    ]


def test_a_member_that_does_not_answer_degrades_the_cluster(house: WholeHouse) -> None:
    three_nodes(house.shards)
    house.shards.statuses[0, "node-3"] = Refused("OUTCOME_UNKNOWN", "look before repeating")

    status = house.get("/cluster/status").json

    assert (status["status"], status["reasons"]) == ("degraded", ["node-3 does not answer"])
    away = status["groups"][0]["replicas"][2]
    assert (away["role"], away["error"], away["lag"]) == ("unreachable", "node-3 does not answer", None)
    assert (away["last_contact_ms"], away["mode"]) == (40.0, "snapshot")  # what the leader has of it
    assert [node["is_reachable"] for node in status["nodes"]] == [True, True, False]
    for path in ("/readyz", "/healthz"):  # jobs are served
        assert (house.page(path).status, house.page(path).json["health"]) == (200, "degraded: node-3 does not answer")
    assert "\ncorvo_health 1.0\n" in house.page("/metrics").content.decode()


def test_without_a_leader_no_lag_is_known_and_nobody_is_healthy(house: WholeHouse) -> None:
    three_nodes(house.shards)
    house.shards.statuses[0, ""] = a_status(0, role="candidate", leader="", members=MEMBERS, nodes=NODES)
    house.shards.statuses[0, "node-2"] = Refused("SHARD_UNAVAILABLE", "away")

    status = house.get("/cluster/status").json

    assert status["status"] == "unavailable"
    assert status["reasons"] == ["shard 0: no quorum, 1 of 2 voters answers", "node-2 does not answer"]
    assert [one["lag"] for one in status["groups"][0]["replicas"]] == [None, None, None]
    told = "unavailable: shard 0: no quorum, 1 of 2 voters answers; node-2 does not answer"
    for path in ("/readyz", "/healthz"):
        assert (house.page(path).status, house.page(path).json["error"]) == (503, told)
    assert "\ncorvo_health 2.0\n" in house.page("/metrics").content.decode()


def test_restarts_and_incidents_of_the_node_are_told(house: WholeHouse) -> None:
    house.run_dir.mkdir()
    write_record(
        house.run_dir, NodeRecord({"mirror": 0, "shard-0": 2}, [Incident("2026-01-01T00:00:00Z", "shard-0", "x")])
    )

    status = house.get("/cluster/status").json

    assert status["restarts"] == {"mirror": 0, "shard-0": 2}
    assert status["incidents"] == [{"at": "2026-01-01T00:00:00Z", "process": "shard-0", "reason": "x"}]
    assert 'corvo_process_restarts_total{process="shard-0"} 2.0' in house.page("/metrics").content.decode()


def test_of_two_who_say_that_they_lead_the_later_term_is_believed(house: WholeHouse) -> None:
    three_nodes(house.shards)
    old = a_status(0, node_id="node-3", term=2, commit_index=900, members=MEMBERS, nodes=NODES)
    house.shards.statuses[0, "node-3"] = old

    replicas = house.get("/cluster/status").json["groups"][0]["replicas"]

    assert [one["lag"] for one in replicas] == [4, 0, 10]


def test_one_founder_alone_is_a_cluster_and_a_node_without_address_is_not(house: WholeHouse) -> None:
    alone = house.get("/cluster/status").json
    house.shards.statuses[0, ""] = a_status(0, members=GroupMembers(1, ["node-1"]), nodes={"node-1": "db-1:9400"})
    founder = house.get("/cluster/status").json

    assert (alone["mode"], founder["mode"]) == ("single", "cluster")
    assert alone["nodes"] == [{"node_id": "node-1", "address": "", "is_reachable": True}]
    assert alone["groups"][0]["members"]["voters"] == ["node-1"]
    assert [one["node_id"] for one in alone["groups"][0]["replicas"]] == ["node-1"]
    assert founder["status"] == "healthy"


def test_only_other_members_are_asked_through_the_replica_here(house: WholeHouse) -> None:
    three_nodes(house.shards)

    house.get("/cluster/status")

    asked = [ask.node_id for _, ask in house.shards.asked]  # type: ignore[union-attr]  # only GetStatus was asked
    assert asked == ["", "node-2", "node-3"]


def test_times_are_told_by_shard_and_for_the_node(house: WholeHouse) -> None:
    times = Histogram([0.001, 0.01], [8, 1, 1], 0.1)
    house.shards.statuses[0, ""] = a_status(queue_time_s=times, apply_time_s=Histogram([0.001], [0, 0]))

    status = house.get("/cluster/status").json

    buckets = [{"le": 0.001, "count": 8}, {"le": 0.01, "count": 9}, {"le": None, "count": 10}]
    told = {"count": 10, "avg": 0.01, "p50": 0.000625, "p90": 0.01, "p99": 0.01, "buckets": buckets}
    assert status["groups"][0]["queue_time_hist"] == status["queue_time_hist"] == told
    empty = status["groups"][0]["apply_time_hist"]
    assert (empty["count"], empty["avg"], empty["p99"]) == (0, 0.0, 0.0)


def test_snapshot_mirror_and_rebuild_have_the_names_of_the_seeds(house: WholeHouse) -> None:
    house.shards.statuses[0, ""] = a_status(
        log_first_index=8, applied_index=12, mirror_cursor=9, snapshot_term=3, state_bytes=4096
    )

    status = house.get("/cluster/status").json

    assert status["groups"][0]["snapshot"] == {
        "count": 1,
        "latest_index": 7,
        "transfers": 0,
        "latest_term": 3,
        "latest_id": "3-7",
        "latest_size": 4096,
    }
    mirror, rebuild = status["sqlite_mirror"], status["sqlite_rebuild"]
    assert (mirror["async"], mirror["dropped"], mirror["lag"]) == (True, 0, 3)
    assert (rebuild["ran"], rebuild["last_success"]) == (True, True)
    assert rebuild["last_started_at"] <= status["mirror"]["rebuilt_at"]


def test_without_read_db_there_is_no_mirror_to_tell_of(blind_house: WholeHouse) -> None:
    status = blind_house.get("/cluster/status").json

    assert (status["sqlite_mirror"], status["sqlite_rebuild"]) == (None, None)
