"""Pages beside the interface of jobs: health, figures, documents."""

import json
import re
import time

import pytest
from prometheus_client.parser import text_string_to_metric_families

from corvo.model.errors import Refusal
from corvo.runtime.heartbeat import ProcessHeartbeat
from gateway.health import LAG_WAIT_S
from tests.gateway.fake_shards import a_status
from tests.gateway.search.conftest import Written
from tests.gateway.whole_house import WholeHouse

GONE = Refusal("SHARD_UNAVAILABLE", "shard 0 is not reachable")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/docs", "text/html; charset=utf-8"),
        ("/openapi.json", "application/json"),
        ("/llms.txt", "text/plain; charset=utf-8"),
        ("/metrics", "text/plain; version=0.0.4; charset=utf-8"),
        ("/api/v1/metrics", "text/plain; version=0.0.4; charset=utf-8"),
        ("/livez", "application/json"),
        ("/healthz", "application/json"),
        ("/readyz", "application/json"),
    ],
)
def test_each_page_is_served_as_what_it_is(house: WholeHouse, path: str, kind: str) -> None:
    reply = house.page(path)

    assert (reply.status, reply.headers["content-type"]) == (200, kind)
    assert int(reply.headers["content-length"]) == len(reply.content) > 0
    assert reply.headers["server-timing"].startswith("proc;dur="), "as on every answer"
    assert house.page(path, "HEAD").status == 200


def test_the_root_leads_to_the_documents_and_nowhere_else(house: WholeHouse) -> None:
    reply = house.page("/", headers=[(b"host", b"evil.example")])

    assert (reply.status, reply.headers["location"]) == (307, "docs"), "this house has no console"


def test_the_host_that_a_client_names_is_repeated_nowhere(house: WholeHouse) -> None:
    """S29. A redirect made from it would lead visitors of a shared cache elsewhere."""
    for path in ["/docs/", "/livez/", "/nowhere", "/", "//evil.example", "//evil.example/.."]:
        headers = [(b"host", b"evil.example"), (b"x-forwarded-host", b"evil.example")]
        reply = house.page(path, headers=headers)
        location = reply.headers.get("location", "")

        assert "evil.example" not in location
        assert not location.startswith("//")
        assert path == "/" or reply.status == 404


def test_documents_may_load_nothing_from_elsewhere(house: WholeHouse) -> None:
    policy = house.page("/docs").headers["content-security-policy"]

    assert policy.startswith("default-src 'none'")
    assert "unsafe-eval" not in policy
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/=]+'$", policy), "the page's own script, and no other"


def test_the_description_is_json(house: WholeHouse) -> None:
    assert json.loads(house.page("/openapi.json").content)["openapi"].startswith("3.1")


def test_the_index_for_machines_names_every_endpoint_and_links_to_what_is_served(house: WholeHouse) -> None:
    text = house.page("/llms.txt").content.decode()
    description = json.loads(house.page("/openapi.json").content)
    anchors = set(re.findall(r'<section id="([^"]+)"', house.page("/docs").content.decode()))

    assert text.startswith("# Corvo\n\n> ") and len(text) < 40_000
    operations = {one["operationId"] for path in description["paths"].values() for one in path.values()}
    assert {f"/docs#{name}" for name in operations if name in anchors} <= set(re.findall(r"\]\((\S+)\)", text))
    for link in re.findall(r"\]\((\S+)\)", text):
        page, _, anchor = link.partition("#")
        assert house.page(page).status == 200 and (not anchor or anchor in anchors), link


@pytest.mark.parametrize("path", ["/nowhere", "/docs/../etc/passwd", "/.env", "/api", "/static/x.js.map", "/<script>"])
def test_nothing_else_is_served(house: WholeHouse, path: str) -> None:
    reply = house.page(path)

    assert (reply.status, reply.code) == (404, "NOT_FOUND")
    assert reply.headers["content-type"] == "application/json"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_pages_are_only_looked_at(house: WholeHouse, method: str) -> None:
    reply = house.page("/livez", method)

    assert (reply.status, reply.code) == (405, "METHOD_NOT_ALLOWED")


# Health


def test_a_node_whose_shards_lead_is_healthy_and_ready(house: WholeHouse) -> None:
    shards = [{"shard": shard, "raft_state": "leader", "leader": "node-1"} for shard in range(len(house.shards))]
    told = {"raft_state": "leader", "leader": "node-1", "health": "healthy", "shards": shards}
    assert house.page("/healthz").json == {"status": "ok", **told}
    assert house.page("/readyz").json == {"status": "ready", **told}


def test_the_state_and_leader_of_each_shard_are_told_as_they_are(blind_house: WholeHouse) -> None:
    statuses = blind_house.shards.statuses
    statuses[1, ""] = a_status(1, role="follower", leader="node-2")

    told = blind_house.page("/healthz").json
    assert (told["raft_state"], told["leader"]) == ("mixed", "")
    assert told["shards"][1] == {"shard": 1, "raft_state": "follower", "leader": "node-2"}

    statuses[0, ""] = a_status(0, role="follower", leader="node-2")
    told = blind_house.page("/healthz").json
    assert (told["raft_state"], told["leader"]) == ("follower", "node-2")


def test_a_shard_says_what_it_waits_for(blind_house: WholeHouse) -> None:
    waits, behind = "a leader: candidate in term 7", "2000 entries that the group has and it has not applied"
    statuses = blind_house.shards.statuses
    statuses[0, ""] = a_status(0, role="candidate", leader="", waits_for=waits)
    statuses[1, ""] = a_status(1, role="follower", leader="node-2", waits_for=behind)

    for path in ("/healthz", "/readyz"):
        reply = blind_house.page(f"{path}?verbose")
        assert (reply.status, reply.code) == (503, "UNHEALTHY")
        assert [each["waits_for"] for each in reply.json["shards"]] == [waits, behind]
        assert "shard 0: no" in reply.json["error"]
        assert "shard 1" not in reply.json["error"], "one that is behind serves"
        assert "shards" not in blind_house.page(path).json


def test_life_asks_nobody(blind_house: WholeHouse) -> None:
    blind_house.shards.refusing = {0: GONE, 1: GONE}
    blind_house.draining.set()

    assert blind_house.page("/livez").status == 200
    assert blind_house.shards.asked == []


def test_a_process_without_a_heartbeat_ends_life(house: WholeHouse) -> None:
    house.run_dir.mkdir()
    ProcessHeartbeat(house.run_dir, "mirror", 30.0).beat()
    assert house.page("/livez").status == 200

    long_ago = time.monotonic_ns() - 34 * 10**9
    ProcessHeartbeat(house.run_dir, "shard-1", 30.0, lambda: long_ago).beat()
    reply = house.page("/livez")

    assert (reply.status, reply.code) == (503, "UNHEALTHY")
    assert reply.json["error"] == "shard-1 has given no heartbeat for 34 s"


def test_a_shard_that_is_gone_makes_the_node_unhealthy_and_names_itself(blind_house: WholeHouse) -> None:
    blind_house.shards.refusing[1] = GONE

    reply = blind_house.page("/healthz")

    assert (reply.status, reply.code) == (503, "UNHEALTHY")
    assert reply.json["error"].startswith("unavailable: shard 1: no answer from the process on this node")


def test_a_node_that_drains_is_healthy_but_not_ready(house: WholeHouse) -> None:
    house.draining.set()

    assert house.page("/healthz").status == 200
    assert house.page("/readyz").status == 503
    assert "draining" in house.page("/readyz").json["error"]


def test_without_its_read_db_a_node_is_healthy_but_not_ready(blind_house: WholeHouse) -> None:
    assert blind_house.page("/healthz").status == 200
    assert (blind_house.page("/readyz").status, blind_house.page("/readyz").json["error"]) == (
        503,
        "read.db cannot be read",
    )


def test_with_an_old_read_db_a_node_is_not_ready(house: WholeHouse, written: Written) -> None:
    written.put_cursor(index=100, age_ms=60_000)

    assert "behind" in house.page("/readyz").json["error"]


def test_an_old_read_db_does_not_keep_a_node_from_serving_for_long(house: WholeHouse, written: Written) -> None:
    written.put_cursor(index=100, age_ms=60_000)
    house.uptime_s = LAG_WAIT_S

    assert house.page("/readyz").status == 200
    assert house.page("/readyz?verbose").json["read_db_lag_ms"] > 10_000


# Figures


def families(house: WholeHouse) -> dict[str, float]:
    text = house.page("/metrics").content.decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {sample.name: sample.value for sample in samples if sample.labels.keys() <= {"gateway"}}


def test_figures_are_shown_with_what_is_known(house: WholeHouse, blind_house: WholeHouse) -> None:
    assert {"corvo_read_db_lag_seconds", "corvo_queues", "corvo_http_requests_in_flight"} <= set(families(house))
    blind_house.shards.refusing = {0: GONE, 1: GONE}
    assert "corvo_read_db_lag_seconds" not in families(blind_house), "the missing line is the alarm"


def test_figures_leave_out_a_shard_that_does_not_answer(blind_house: WholeHouse) -> None:
    blind_house.shards.refusing[0] = GONE

    content = blind_house.page("/metrics").content

    assert b'corvo_raft_term{shard="1"}' in content
    assert b'corvo_raft_term{shard="0"}' not in content
