"""The lists that are read from read.db, in the whole application."""

import time

import pytest

from corvo.model.job import JobError, Minute, Worker, new_queue
from corvo.model.lifecycle import State
from corvo.queries.cluster import GetIndex
from corvo.state.minutes import MINUTE_NS
from tests.gateway.asgi import Reply, a_scope, call, parts
from tests.gateway.search.conftest import Written
from tests.gateway.whole_house import WholeHouse
from tests.support.builders import NOW, a_job, job_id

LISTS = ("/jobs/dead", "/jobs/held", "/metrics/throughput", "/queues/mail/throughput", "/errors/groups")


def get(house: WholeHouse, path: str, query: bytes = b"") -> Reply:
    return house.ask(a_scope("GET", "/api/v1" + path, [], query_string=query))


@pytest.mark.parametrize(
    ("path", "state"),
    [("/jobs/dead", State.DEAD), ("/jobs/held", State.HELD), ("/dead", State.DEAD), ("/held", State.HELD)],
)
def test_jobs_of_one_state_are_listed_by_queue_and_page_by_page(
    house: WholeHouse, written: Written, path: str, state: State
) -> None:
    jobs = [a_job(number, state=state, created_at=NOW + number) for number in (1, 2, 3)]
    written.put(*jobs, a_job(4, state=state, queue="sms"), a_job(5, state=State.COMPLETED))

    first = get(house, path, b"queue=mail&limit=2").json
    second = get(house, path, b"queue=mail&limit=2&cursor=" + first["cursor"].encode()).json
    oldest = get(house, path, b"order=asc&limit=1").json

    assert [job["id"] for job in first["jobs"]] == [job_id(3), job_id(2)]
    assert [job["id"] for job in second["jobs"]] == [job_id(1)]
    assert (first["total"], first["has_more"], second["has_more"]) == (3, True, False)
    assert [job["id"] for job in oldest["jobs"]] == [job_id(4)]
    assert house.shards.asked == [], "no shard is asked"


def test_throughput_is_of_all_queues_or_of_one(house: WholeHouse, written: Written) -> None:
    before = time.time_ns() // MINUTE_NS - 5
    written.put(new_queue("mail", NOW), Minute("mail", before, 5, 4, 3, 2))
    written.put(new_queue("a/b", NOW), Minute("a/b", before, 10, 0, 0, 0))

    def enqueued(path: str) -> int:
        reply = get(house, path, b"minutes=10")
        assert (reply.status, len(reply.json)) == (200, 10)
        return sum(point["enqueued"] for point in reply.json)

    assert enqueued("/metrics/throughput") == 15
    assert enqueued("/queues/mail/throughput") == 5
    slashed = a_scope("GET", "/api/v1/queues/a/b/throughput", [], raw_path=b"/api/v1/queues/a%2Fb/throughput")
    assert sum(point["enqueued"] for point in house.ask(slashed).json) == 10


def test_a_worker_is_found_by_its_id(house: WholeHouse, written: Written) -> None:
    written.put(Worker("host/w1", "host", ["mail"], NOW, NOW), a_job(1, state=State.ACTIVE, worker_id="host/w1"))
    slashed = a_scope("GET", "/api/v1/workers/host/w1", [], raw_path=b"/api/v1/workers/host%2Fw1")

    found = house.ask(slashed)
    missing = get(house, "/workers/w2")

    assert (found.json["id"], [job["id"] for job in found.json["jobs"]]) == ("host/w1", [job_id(1)])
    assert (missing.status, missing.code) == (404, "WORKER_NOT_FOUND")


def test_errors_are_grouped(house: WholeHouse, written: Written) -> None:
    written.put(*[JobError(job_id(number), 1, 1, f"no user {number}", "", NOW, queue="mail") for number in (1, 2)])

    reply = get(house, "/errors/groups", b"queue=mail&since=2026-01-01T00:00:00Z&limit=5")

    assert [(group["message"], group["count"]) for group in reply.json["groups"]] == [("no user <number>", 2)]


@pytest.mark.parametrize("path", LISTS)
def test_a_list_is_consistent_when_asked(house: WholeHouse, written: Written, path: str) -> None:
    written.put(new_queue("mail", NOW))

    assert get(house, path, b"consistent=true").status == 200
    assert [type(ask) for _, ask in house.shards.asked] == [GetIndex]


@pytest.mark.parametrize("path", [*LISTS, "/workers/w1"])
def test_without_read_db_a_list_is_unavailable(blind_house: WholeHouse, path: str) -> None:
    reply = blind_house.runner.run(call(blind_house.app, a_scope("GET", "/api/v1" + path), parts()))

    assert (reply.status, reply.code) == (503, "READ_DB_UNAVAILABLE")


@pytest.mark.parametrize(
    ("path", "query"),
    [
        *[(path, query) for path in LISTS for query in (b"nonsense=1", b"consistent=maybe")],
        *[(path, query) for path in LISTS[:2] for query in (b"limit=0", b"limit=1001", b"cursor=x", b"queue=%20")],
        *[(path, query) for path in LISTS[2:4] for query in (b"minutes=0", b"minutes=1441", b"minutes=x")],
        *[(LISTS[4], query) for query in (b"limit=0", b"since=yesterday", b"since=", b"queue=%20")],
        ("/queues/ /throughput", b""),
    ],
)
def test_a_list_that_cannot_be_is_refused(house: WholeHouse, path: str, query: bytes) -> None:
    reply = get(house, path, query)

    assert (reply.status, reply.code) == (400, "VALIDATION_ERROR")


def test_the_throughput_of_no_queue_is_refused(house: WholeHouse) -> None:
    reply = get(house, "/queues/nobody/throughput")

    assert (reply.status, reply.code) == (404, "QUEUE_NOT_FOUND")
