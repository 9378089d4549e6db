"""Three tenants with the same names on one server: no list, no search and no id of one shows anything of another.

The walk takes every endpoint that reads jobs or queues, and fails for one that it does not know.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from chaos.node import Node, wait_until
from gateway.access.confinement import OF_QUEUES
from gateway.app import ENDPOINTS

pytestmark = pytest.mark.system

TENANTS = ("default", "acme", "umbrella")
QUEUES = ("mail.out", "mail.in", "bills")
SCOPE = "mail.*"

# Endpoint → what is sent: parameters, query or body, and whether the answer must hold something of its tenant's.
READS: dict[str, dict[str, Any]] = {
    "queues": {"params": {"consistent": "true"}},
    "workers": {},
    "dead": {},
    "held": {},
    "throughput": {"params": {"consistent": "true"}},
    "error_groups": {},
    "batches": {"params": {"consistent": "true"}},
    "bulks": {},
    "schedules": {},
    "search": {"json": {"consistent": True}},
    "fulltext": {"params": {"q": "common", "consistent": "true"}},
    "cluster_events": {},
    "get_worker": {"path": "/workers/w1"},
    "get_queue": {"path": "/queues/mail.out"},
    "queue_throughput": {"path": "/queues/mail.out/throughput"},
    "get_schedule": {"path": "/schedules/nightly"},
}
# Reads by an id: below, for ids of every tenant. Events are a stream: `cluster_events` has the same ones in pages.
BY_ID = {"get_job", "bulk_get", "why", "get_batch", "get_bulk", "bulk_progress"}
STREAMS = {"events"}
HAVE_MARKS = {"search", "fulltext", "workers", "batches", "error_groups", "get_schedule", "get_worker"}
FILTERS: tuple[dict[str, Any], ...] = (
    {"state": ["dead"]},
    {"queue": "mail.out"},
    {"worker_id": "w1"},
    {"tags": {"kind": "letter"}},
    {"payload_contains": "common"},
    {"payload_jq": '.word == "common"'},
    {"unique_key": "once"},
    {"has_errors": True},
    {"error_contains": "boom"},
    {"sort": "started_at"},
    {"sort": "priority"},
    {"attempt_min": 1},
    {"job_id_prefix": "s0"},
)


class Tenant(msgspec.Struct):
    name: str
    client: httpx.Client  # with an admin key of the namespace
    scoped: httpx.Client  # with a key for SCOPE
    job_ids: dict[str, str] = {}  # one in each queue
    dead: str = ""
    batch_ids: dict[str, str] = {}
    bulk_id: str = ""

    def post(self, path: str, **body: Any) -> Any:
        answer = self.client.post(path, json=body)
        assert answer.is_success, (self.name, path, answer.text)
        return answer.json()

    @property
    def mark(self) -> str:
        return f"of-{self.name}"


def fill(tenant: Tenant) -> None:
    for queue in QUEUES:
        payload = {"word": "common", "mark": tenant.mark, "queue": queue}
        made = tenant.post("/enqueue", queue=queue, payload=payload, tags={"kind": "letter"}, unique_key="once")
        tenant.job_ids[queue] = made["job_id"]
        batch = tenant.post("/batch", description=tenant.mark, on_complete={"queue": queue, "payload": payload})
        tenant.batch_ids[queue] = batch["batch_id"]
        tenant.post("/enqueue", queue=queue, payload=payload, batch_id=batch["batch_id"])
        job = tenant.post("/fetch", queues=[queue], worker_id="w1", hostname=tenant.mark)
        tenant.post(f"/fail/{job['job_id']}", error=f"boom {tenant.mark}", lease_token=job["lease_token"])
    terms = {"name": "nightly", "queue": "bills", "cron": "0 3 * * *", "payload": {"mark": tenant.mark}}
    tenant.client.post("/schedules", json=terms).raise_for_status()
    made = tenant.post("/enqueue", queue="bills", payload={"mark": tenant.mark}, max_retries=0)
    tenant.dead = made["job_id"]
    answer = tenant.client.post(
        "/jobs/bulk",
        json={"action": "change_priority", "priority": "high", "filter": {"queue": "bills"}, "async": True},
    )
    assert answer.status_code == 202, answer.text
    tenant.bulk_id = answer.json()["bulk_operation_id"]


@pytest.fixture(scope="module")
def house() -> Iterator[tuple[Node, list[Tenant]]]:
    with tempfile.TemporaryDirectory(prefix="corvo-") as folder:
        node = Node.start(Path(folder) / "data", "--shards", "3")
        url = f"{node.url}/api/v1"
        try:
            with httpx.Client(base_url=url, timeout=30.0) as root:
                tenants = [*settle(root, url)]
            for tenant in tenants:
                fill(tenant)
            yield node, tenants
            for tenant in tenants:
                tenant.client.close()
                tenant.scoped.close()
        finally:
            node.stop()


def settle(root: httpx.Client, url: str) -> Iterator[Tenant]:
    for name in TENANTS[1:]:
        root.post("/namespaces", json={"name": name}).raise_for_status()
    root.headers["x-api-key"] = new_key(root, name="root", role="admin")
    for name in TENANTS:
        keys = [
            new_key(root, name=f"{name} {scope}", namespace=name, role="admin", **limit)
            for scope, limit in (("", {}), (SCOPE, {"queue_scope": SCOPE}))
        ]
        yield Tenant(name, *(httpx.Client(base_url=url, timeout=30.0, headers={"x-api-key": key}) for key in keys))


def new_key(root: httpx.Client, **body: Any) -> str:
    answer = root.post("/auth/keys", json=body)
    assert answer.is_success, answer.text
    return str(answer.json()["api_key"])


def send(client: httpx.Client, name: str, **sent: Any) -> httpx.Response:
    endpoint = next(one for one in ENDPOINTS if one.name == name)
    return client.request(endpoint.method, sent.pop("path", endpoint.path), **sent)


def foreign_to(tenant: Tenant, others: list[Tenant]) -> list[str]:
    """Texts that no answer for this tenant may contain."""
    endings = [f"_{other.name}" for other in others if other.name != "default"]
    return [*endings, *(other.mark for other in others), *(f"{other.name}|" for other in others), f"{tenant.name}|"]


def test_the_walk_knows_every_endpoint_that_reads_jobs_or_queues() -> None:
    reads = {
        one.name
        for one in ENDPOINTS
        if one.access.partition(":")[0] in OF_QUEUES and one.access.endswith((":read", ":list"))
    }

    assert reads == set(READS) | BY_ID | STREAMS


@pytest.mark.parametrize("name", sorted(READS))
def test_a_read_shows_a_tenant_its_own_and_nothing_of_another(house: tuple[Node, list[Tenant]], name: str) -> None:
    _, tenants = house
    for tenant in tenants:
        others = [other for other in tenants if other is not tenant]
        for client in (tenant.client, tenant.scoped):
            answer = send(client, name, **READS[name])
            if client is tenant.scoped and name == "get_schedule":
                assert answer.status_code == 404  # it is of the queue bills
                continue
            assert answer.status_code == 200, (tenant.name, answer.text)
            shown = answer.text
            assert not [text for text in foreign_to(tenant, others) if text in shown], (tenant.name, shown)
            if client is tenant.scoped:
                assert "bills" not in shown, (tenant.name, shown)
        if name in HAVE_MARKS:
            assert tenant.mark in send(tenant.client, name, **READS[name]).text


@pytest.mark.parametrize("wanted", FILTERS, ids=lambda wanted: next(iter(wanted)))
def test_a_search_finds_and_counts_the_own_jobs_only(house: tuple[Node, list[Tenant]], wanted: dict[str, Any]) -> None:
    _, tenants = house
    totals = set()
    for tenant in tenants:
        for client in (tenant.client, tenant.scoped):
            answer = client.post("/jobs/search", json={"consistent": True, **wanted}).json()
            assert answer["total"] == len(answer["jobs"])
            for job in answer["jobs"]:
                assert job["payload"].get("mark") == tenant.mark
                assert client is tenant.client or job["queue"].startswith("mail.")
        totals.add(tenant.client.post("/jobs/search", json={"consistent": True, **wanted}).json()["total"])
    assert len(totals) == 1  # the tenants did the same


def test_a_cursor_is_of_its_namespace(house: tuple[Node, list[Tenant]]) -> None:
    _, (first, second, _) = house
    search = first.post("/jobs/search", limit=1, consistent=True)["cursor"]
    batches = first.client.get("/batches", params={"limit": 1, "consistent": "true"}).json()["cursor"]

    assert first.client.post("/jobs/search", json={"limit": 1, "cursor": search}).status_code == 200
    assert first.client.get("/batches", params={"cursor": batches}).status_code == 200
    for answer in (
        second.client.post("/jobs/search", json={"limit": 1, "cursor": search}),
        first.scoped.post("/jobs/search", json={"limit": 1, "cursor": search}),
        second.client.get("/batches", params={"cursor": batches}),
    ):
        assert answer.status_code == 400
        assert answer.json()["field"] == "cursor"


ON_A_JOB = ["cancel", "retry", "requeue", "hold", "approve", "reject", "replay", "priority", "reschedule", "move"]
BODIES: dict[str, Any] = {
    "priority": {"priority": "high"},
    "reschedule": {"delay": "1h"},
    "move": {"queue": "mail.in"},
    "replay": {"from": 1},
}


def refused_like_an_unknown(client: httpx.Client, method: str, path: str, id_: str, **sent: Any) -> None:
    made_up = id_[:12] + "f" * 8 + id_[20:]
    answers = [client.request(method, path.replace("{id}", one), **sent) for one in (id_, made_up)]
    assert [answer.status_code for answer in answers] == [404, 404], (path, answers[0].text)
    told, told_of_none = (answer.text.replace(one, "ID") for answer, one in zip(answers, (id_, made_up), strict=True))
    assert told == told_of_none


def test_ids_of_others_are_unknown(house: tuple[Node, list[Tenant]]) -> None:
    """To another namespace, and to a key with a scope that does not hold their queue."""
    _, tenants = house
    for tenant, other in zip(tenants, [*tenants[1:], tenants[0]], strict=True):
        for client in (other.client, tenant.scoped):
            job_id = tenant.job_ids["bills"]
            refused_like_an_unknown(client, "GET", "/jobs/{id}", job_id)
            refused_like_an_unknown(client, "GET", "/jobs/{id}/why", job_id)
            refused_like_an_unknown(client, "DELETE", "/jobs/{id}", job_id)
            for action in ON_A_JOB:
                refused_like_an_unknown(client, "POST", f"/jobs/{{id}}/{action}", job_id, json=BODIES.get(action, {}))
            refused_like_an_unknown(client, "GET", "/batches/{id}", tenant.batch_ids["bills"])
            refused_like_an_unknown(client, "POST", "/batches/{id}/seal", tenant.batch_ids["bills"])
            refused_like_an_unknown(client, "GET", "/bulk/{id}", tenant.bulk_id)
            refused_like_an_unknown(client, "GET", "/bulk/{id}/progress", tenant.bulk_id)
            refused_like_an_unknown(client, "POST", "/bulk/{id}/cancel", tenant.bulk_id)
            body = {"queue": "mail.out", "depends_on": [job_id]}
            assert client.post("/enqueue", json=body).status_code in (400, 404)
            into = {"queue": "mail.out", "batch_id": tenant.batch_ids["bills"]}
            assert client.post("/enqueue", json=into).status_code == 404
            acks = client.post("/ack/batch", json={"acks": [{"job_id": job_id}]}).json()
            assert acks["acked"] == 0, acks
            beats = client.post("/heartbeat", json={"jobs": {job_id: {}}}).json()
            assert beats["jobs"][job_id]["status"] != "ok", beats
            bulk = {"action": "delete", "job_ids": [job_id]}
            changed = client.post("/jobs/bulk", json=bulk)
            assert changed.status_code == 400 or changed.json()["affected"] == 0, changed.text
        assert tenant.client.get(f"/jobs/{tenant.job_ids['bills']}").status_code == 200
        assert tenant.scoped.get(f"/jobs/{tenant.job_ids['mail.out']}").status_code == 200
        assert tenant.scoped.get(f"/batches/{tenant.batch_ids['mail.out']}").status_code == 200


def test_an_admin_of_the_installation_acts_in_a_namespace_by_header(house: tuple[Node, list[Tenant]]) -> None:
    _, (default, acme, _) = house
    wanted = {"consistent": True, "payload_contains": "mark"}

    chosen = default.client.post("/jobs/search", json=wanted, headers={"x-corvo-namespace": "acme"}).json()
    own = acme.client.post("/jobs/search", json=wanted).json()

    assert [job["id"] for job in chosen["jobs"]] == [job["id"] for job in own["jobs"]]
    refused = acme.client.post("/jobs/search", json=wanted, headers={"x-corvo-namespace": "umbrella"})
    assert refused.status_code == 403


def test_quotas_hold_over_all_shards(house: tuple[Node, list[Tenant]]) -> None:
    node, (default, *_) = house
    default.post("/namespaces", name="small")
    key = new_key(default.client, name="small", namespace="small", role="admin")
    quotas = {"max_jobs": 6, "max_payload_bytes": 1_000}
    assert default.client.put("/namespaces/small/quotas", json=quotas).status_code == 200
    with httpx.Client(base_url=f"{node.url}/api/v1", timeout=30.0, headers={"x-api-key": key}) as client:

        def enqueue(queue: str, size: int = 2) -> str:
            answer = client.post("/enqueue", json={"queue": queue, "payload": "x" * (size - 2)})
            return str(answer.json().get("code", "")) if answer.status_code != 201 else ""

        assert [enqueue("one") for _ in range(8)] == [""] * 6 + ["QUOTA_EXCEEDED"] * 2  # exact on one shard
        wait_until(lambda: all(enqueue(f"q{number}") for number in range(9)), "the other shards to know", 20.0)
        stored = client.post("/jobs/search", json={"consistent": True}).json()["total"]
        assert 6 <= stored < 6 + 27, "what the others accepted until then"
        batch = client.post("/batch", json={}).json()["batch_id"]

        def refuses_a_member() -> bool:
            return client.post("/enqueue", json={"queue": "one", "batch_id": batch}).status_code == 409

        wait_until(refuses_a_member, "the gateway to know all shards", 20.0)

        client.post("/queues/one/clear").raise_for_status()
        for number in range(9):
            client.delete(f"/queues/q{number}", params={"confirm": "true", "force": "true"})
        wait_until(lambda: enqueue("q1") == "", "room again", 20.0)
        assert enqueue("q1", size=1_001) == "QUOTA_EXCEEDED"
        assert default.client.post("/enqueue", json={"queue": "one"}).status_code == 201, "others are not concerned"
