"""Figures in Prometheus' format: readable by its own reader, and with labels that no client can grow."""

import re
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from corvo.queries.cluster import HealthReport, Histogram, JobFigures, ReplicaStatus, ShardStatus
from corvo.queries.members import GroupMembers
from corvo.queries.queues import QueueView
from gateway.app import ENDPOINTS
from gateway.http.messages import METHODS
from gateway.metrics import Metrics
from gateway.search.lag import Lag
from tests.gateway.asgi import House, a_scope
from tests.gateway.fake_shards import a_histogram, a_status
from tests.support.builders import job_id

Samples = dict[str, list[tuple[dict[str, str], float]]]

WELL = HealthReport("healthy")


def samples_of(content: bytes) -> Samples:
    samples: Samples = {}
    for family in text_string_to_metric_families(content.decode()):
        assert family.documentation
        for sample in family.samples:
            samples.setdefault(sample.name, []).append((sample.labels, sample.value))
    return samples


def a_lag(lag_ms: float) -> Lag:
    return Lag(lag_ms, "g1", rows_total=12, rebuilt_at=1_700_000_000.0, rebuild_ms=250.0)


def rendered(statuses: list[ShardStatus], queues: list[QueueView] | None = None, lag: float | None = 5.0) -> Samples:
    return samples_of(Metrics().render(statuses, queues or [], None if lag is None else a_lag(lag), WELL, {}))


def a_queue(name: str, **counts: int) -> QueueView:
    states = ("pending", "active", "held", "completed", "dead", "scheduled", "retrying", "cancelled")
    return QueueView(
        name=name,
        created_at="2026-01-01T00:00:00Z",
        enqueued=0,
        failed=0,
        **{state: counts.get(state, 0) for state in states},
    )


def test_health_and_restarts_are_figures() -> None:
    samples = samples_of(Metrics().render([], [], None, HealthReport("unavailable"), {"mirror": 0, "shard-1": 2}))

    assert samples["corvo_health"] == [({}, 2.0)]
    assert samples["corvo_process_restarts_total"] == [({"process": "mirror"}, 0.0), ({"process": "shard-1"}, 2.0)]


def test_the_page_is_read_by_prometheus_own_reader() -> None:
    content = Metrics().render([a_status(0), a_status(1)], [a_queue("mail", pending=2)], a_lag(1_500), WELL, {})
    families = {family.name: family.type for family in text_string_to_metric_families(content.decode())}

    assert families["corvo_http_requests"] == "counter"
    assert families["corvo_http_request_duration_seconds"] == "histogram"
    assert families["corvo_raft_sync_time_seconds"] == "histogram"
    assert families["corvo_shard_operations"] == "counter"
    assert families["corvo_jobs"] == "gauge"
    assert all(name.startswith("corvo_") for name in families)
    names = re.findall(rb"^# TYPE (\S+)", content, re.MULTILINE)
    assert len(names) == len(set(names)), "a family twice"


def test_every_shard_has_its_line() -> None:
    samples = rendered([a_status(0, term=3), a_status(2, term=5, role="follower")])

    assert samples["corvo_raft_term"] == [({"shard": "0"}, 3.0), ({"shard": "2"}, 5.0)]
    assert samples["corvo_cluster_is_leader"] == [({"shard": "0"}, 1.0), ({"shard": "2"}, 0.0)]
    assert samples["corvo_mirror_lag_entries"] == [({"shard": "0"}, 3.0), ({"shard": "2"}, 3.0)]
    assert samples["corvo_shard_operations_total"] == [({"shard": "0"}, 20.0), ({"shard": "2"}, 20.0)]


def test_a_leader_tells_how_far_behind_its_replicas_are() -> None:
    beliefs = [
        ReplicaStatus("node-1", 12, "replicate", False, True, 0.0),
        ReplicaStatus("node-2", 9, "replicate", False, True, 250.0),
    ]
    leads = a_status(0, members=GroupMembers(1, ["node-1", "node-2"]), replicas=beliefs, elections_total=4)
    follows = a_status(1, role="follower", members=GroupMembers(1, ["node-1", "node-2"]))

    samples = rendered([leads, follows])

    assert samples["corvo_raft_replica_lag_entries"] == [({"shard": "0", "node": "node-2"}, 3.0)]
    assert samples["corvo_raft_replica_silence_seconds"] == [({"shard": "0", "node": "node-2"}, 0.25)]
    assert samples["corvo_raft_members"] == [({"shard": "0"}, 2.0), ({"shard": "1"}, 2.0)]
    assert samples["corvo_raft_elections_total"] == [({"shard": "0"}, 4.0), ({"shard": "1"}, 0.0)]


def test_a_node_alone_has_no_replicas_to_tell_of() -> None:
    samples = rendered([a_status(0)])

    assert "corvo_raft_replica_lag_entries" not in samples
    assert samples["corvo_raft_members"] == [({"shard": "0"}, 1.0)]


def test_a_histogram_is_cumulative_and_ends_with_everything() -> None:
    samples = rendered([a_status(0, sync_time_s=a_histogram(4, 0, 2, 1, total=1.25))])

    buckets = samples["corvo_raft_sync_time_seconds_bucket"]
    assert [value for _, value in buckets] == [4, 4, 6, 7]
    assert [labels["le"] for labels, _ in buckets] == ["0.001", "0.01", "0.1", "+Inf"]
    assert samples["corvo_raft_sync_time_seconds_count"] == [({"shard": "0"}, 7.0)]
    assert samples["corvo_raft_sync_time_seconds_sum"] == [({"shard": "0"}, 1.25)]


def test_an_empty_histogram_is_no_fault() -> None:
    samples = rendered([a_status(0, batch_size=a_histogram(0, 0))])

    assert [value for _, value in samples["corvo_shard_batch_size_bucket"]] == [0, 0]


def test_jobs_are_summed_over_queues_and_no_queue_is_a_label() -> None:
    samples = rendered([], [a_queue("mail", pending=2, dead=1), a_queue("sms", pending=3)])

    assert {labels["state"]: value for labels, value in samples["corvo_jobs"]}["pending"] == 5
    assert samples["corvo_queues"] == [({}, 2.0)]
    assert len(samples["corvo_jobs"]) == 8


def test_a_lag_that_nobody_knows_is_not_shown() -> None:
    assert rendered([], lag=1_500)["corvo_read_db_lag_seconds"] == [({}, 1.5)]
    assert "corvo_read_db_lag_seconds" not in rendered([], lag=None)


def test_the_read_database_says_how_much_was_written_and_when_it_was_built() -> None:
    samples = rendered([])

    assert samples["corvo_read_db_rows_total"] == [({}, 12)]
    assert samples["corvo_read_db_rebuilt_timestamp_seconds"] == [({}, 1_700_000_000)]
    assert samples["corvo_read_db_rebuild_seconds"] == [({}, 0.25)]
    assert samples["corvo_read_db_info"] == [({"generation": "g1"}, 1)]


# What is counted of requests


def counted(house: House) -> dict[tuple[str, str, str], float]:
    samples = samples_of(house.metrics.render([], [], None, WELL, {}))
    return {
        (labels["method"], labels["route"], labels["status"]): value
        for labels, value in samples.get("corvo_http_requests_total", [])
    }


def test_requests_are_counted_by_the_template_of_their_route() -> None:
    with House() as house:
        for number in range(3):
            house.get(f"/jobs/{job_id(number)}")
        house.post("/enqueue", {"queue": "mail"})
        house.post("/enqueue", b"{")
        house.get("/nothing/here")
        house.ask(a_scope("GET", "/docs"))

        assert counted(house) == {
            ("GET", "/jobs/{job_id}", "404"): 3,
            ("POST", "/enqueue", "201"): 1,
            ("POST", "/enqueue", "400"): 1,
            ("GET", "unmatched", "404"): 1,
            ("GET", "page", "200"): 1,
        }


def test_a_page_is_counted_with_the_status_that_it_had() -> None:
    with House() as house:
        house.ask(a_scope("GET", "/nowhere"))

        assert counted(house) == {("GET", "page", "404"): 1}


def test_clients_cannot_grow_the_labels() -> None:
    routes = {endpoint.path for endpoint in ENDPOINTS} | {"page", "unmatched"}
    with House() as house:
        for number in range(50):
            house.ask(a_scope(f"M{number}", f"/api/v1/x{number}"))
            house.ask(a_scope("POST", f"/api/v1/x{number}"))
            house.ask(a_scope("GET", f"/page{number}"))
            house.get(f"/jobs/{number}")
        labels = set(counted(house))

    assert {route for _, route, _ in labels} <= routes
    assert {method for method, _, _ in labels} <= METHODS | {"other"}
    assert len(labels) == 4


def test_the_time_of_a_request_falls_into_a_bucket() -> None:
    with House() as house:
        for _ in range(4):
            house.post("/enqueue", {"queue": "mail"})
        samples = samples_of(house.metrics.render([], [], None, WELL, {}))

    buckets = [value for _, value in samples["corvo_http_request_duration_seconds_bucket"]]
    assert buckets == sorted(buckets)
    assert buckets[-1] == 4
    assert samples["corvo_http_request_duration_seconds_count"] == [
        ({"gateway": "0", "method": "POST", "route": "/enqueue"}, 4.0)
    ]


def test_every_count_says_of_which_gateway_it_is() -> None:
    metrics = Metrics(3)
    metrics.observe("POST", "/enqueue", 201, 0.0)
    samples = samples_of(metrics.render([a_status(0)], [], None, WELL, {}))

    for name, found in samples.items():
        assert all(labels.get("gateway") == ("3" if "_http_" in name else None) for labels, _ in found), name


def test_requests_under_way_are_shown() -> None:
    seen: list[Any] = []

    async def page(scope: Any, receive: Any, send: Any) -> None:
        seen.append(samples_of(house.metrics.render([], [], None, WELL, {}))["corvo_http_requests_in_flight"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"a page"})

    with House(pages=page) as house:
        house.ask(a_scope("GET", "/metrics"))

        assert seen == [[({"gateway": "0"}, 1.0)]]
        assert house.metrics.in_flight == 0


@pytest.mark.parametrize("count", [0, 1, 64])
def test_any_number_of_shards_can_be_shown(count: int) -> None:
    assert len(rendered([a_status(shard) for shard in range(count)]).get("corvo_raft_term", [])) == count


# Jobs and queues


def test_jobs_are_counted_and_timed_by_shard() -> None:
    jobs = JobFigures(7, 5, 3, 1, Histogram([1.0, 10.0], [2, 1, 0], 4.0), Histogram([1.0, 10.0], [0, 5, 0], 20.0))
    samples = rendered([a_status(0, jobs=jobs), a_status(1)])

    for name, value in (("enqueued", 7), ("completed", 5), ("failed", 3), ("dead", 1)):
        assert samples[f"corvo_jobs_{name}_total"] == [({"shard": "0"}, value), ({"shard": "1"}, 0)]
    assert ({"shard": "0"}, 4.0) in samples["corvo_job_wait_seconds_sum"]
    assert ({"shard": "0", "le": "10.0"}, 5.0) in samples["corvo_job_run_seconds_bucket"]


def test_the_oldest_pending_job_of_all_queues_is_told() -> None:
    queues = [a_queue("a"), a_queue("b", pending=1), a_queue("c", pending=1)]
    queues[1].oldest_pending_age_ms, queues[2].oldest_pending_age_ms = 1_500, 90_000

    assert rendered([], queues)["corvo_oldest_pending_seconds"] == [({}, 90.0)]
    assert rendered([], [])["corvo_oldest_pending_seconds"] == [({}, 0.0)]


def test_names_of_queues_are_labels_only_where_a_setting_allows_it() -> None:
    queues = [a_queue(name, pending=number) for number, name in enumerate("abcd")]
    for number, queue in enumerate(queues):
        queue.enqueued = 10 * number

    assert not [name for name in rendered([], queues) if name.startswith("corvo_queue_")]

    samples = samples_of(Metrics(queues_max=2).render([], queues, None, HealthReport("healthy"), {}))
    pending = {labels["queue"]: value for labels, value in samples["corvo_queue_jobs"] if labels["state"] == "pending"}
    assert pending == {"d": 3, "c": 2, "_other": 1}
    assert {labels["queue"]: value for labels, value in samples["corvo_queue_enqueued_total"]} == {
        "d": 30,
        "c": 20,
        "_other": 10,
    }
