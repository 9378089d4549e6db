"""A request whose answer is lost is sent again, and is carried out once. A real server behind a proxy that cuts."""

import asyncio
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import httpx
import pytest

from chaos.node import Node
from corvo.client.aio import AsyncClient
from corvo.client.answers import FetchedJob
from corvo.client.bodies import (
    AckBody,
    BatchBody,
    BulkBody,
    CreateScheduleBody,
    EnqueueBatchBody,
    EnqueueBody,
    FailBody,
    FetchBatchBody,
    FetchBody,
    MoveBody,
    ReplayBody,
)
from corvo.client.errors import InvalidRequest, Unreachable
from corvo.client.http import Client
from corvo.client.refusals import JobNotFound
from corvo.model.sharding import shard_of_queue
from tests.client.cutting import Cutting, cutting_in_front_of

pytestmark = pytest.mark.system
_numbers = count(1)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="corvo-") as folder:
        node = Node.start(Path(folder) / "data")
        yield node.url
        node.stop()


@pytest.fixture
def cutting(url: str) -> Iterator[Cutting]:
    with cutting_in_front_of(url) as cutting:
        yield cutting


@pytest.fixture
def client(cutting: Cutting) -> Iterator[Client]:
    with Client(cutting.url, sleep=lambda _: None) as client:
        yield client


@pytest.fixture
def queue() -> str:
    return f"lost{next(_numbers)}"


def claimed(client: Client, queue: str) -> FetchedJob:
    job = client.fetch(FetchBody(queues=[queue], worker_id="w", timeout=0))
    assert job is not None
    return job


def test_one_job_is_enqueued(client: Client, cutting: Cutting, queue: str) -> None:
    cutting.cuts_left = 2

    made = client.enqueue(EnqueueBody(queue=queue, payload={"n": 1}))

    assert cutting.lost == [201, 201]
    assert made.status == "pending"
    assert client.get_job(made.job_id).payload == {"n": 1}
    assert client.get_queue(queue).enqueued == 1


def test_another_request_is_another_job(client: Client, queue: str) -> None:
    client.enqueue(EnqueueBody(queue=queue))
    client.enqueue(EnqueueBody(queue=queue))

    assert client.get_queue(queue).enqueued == 2


def test_one_key_for_two_requests_is_two_jobs_and_a_key_without_chance_is_refused(url: str, queue: str) -> None:
    def enqueue(key: str, n: int) -> httpx.Response:
        body = {"queue": queue, "payload": n}
        return httpx.post(f"{url}/api/v1/enqueue", json=body, headers={"idempotency-key": key})

    same, again, other = (enqueue("0123456789abcdef", n) for n in (1, 1, 2))

    assert same.json() == again.json()
    assert other.json()["job_id"] != same.json()["job_id"]
    assert enqueue("7", 1).json()["code"] == "VALIDATION_ERROR"


def test_a_batch_is_made_once_and_so_are_its_jobs(client: Client, cutting: Cutting, queue: str) -> None:
    cutting.cuts_left = 1

    jobs = [EnqueueBody(queue=queue) for _ in range(3)]
    made = client.enqueue_batch(EnqueueBatchBody(jobs=jobs, batch=BatchBody(description="once")))

    assert client.get_queue(queue).enqueued == 3
    assert made.batch_id is not None
    assert client.get_batch(made.batch_id).total == 3
    assert {client.get_job(job_id).batch_id for job_id in made.job_ids} == {made.batch_id}


def test_a_lost_fetch_brings_the_same_job_again(client: Client, cutting: Cutting, queue: str) -> None:
    jobs = [client.enqueue(EnqueueBody(queue=queue)).job_id for _ in range(2)]
    cutting.cuts_left = 1

    job = claimed(client, queue)

    assert (job.job_id, job.attempt) == (jobs[0], 1)
    assert client.get_queue(queue).active == 1


def test_a_lost_fetch_from_several_shards_brings_the_same_jobs_again(
    client: Client, cutting: Cutting, queue: str
) -> None:
    names = {shard_of_queue(name, 4): name for name in (f"{queue}-{number}" for number in range(64))}
    one, other = list(names.values())[:2]
    for name in (one, other, one):
        client.enqueue(EnqueueBody(queue=name))
    cutting.cuts_left = 1

    jobs = client.fetch_batch(FetchBatchBody(queues=[one, other], worker_id="w", count=10, timeout=0)).jobs

    assert sorted(job.queue for job in jobs) == sorted([one, other, one])
    assert all(job.attempt == 1 for job in jobs)


def test_ack_and_fail_without_a_token_get_the_old_answer(client: Client, cutting: Cutting, queue: str) -> None:
    for _ in range(2):
        client.enqueue(EnqueueBody(queue=queue))
    done, failed = claimed(client, queue), claimed(client, queue)

    cutting.cuts_left = 1
    assert client.ack(done.job_id, AckBody(result=[1])).status == "ok"
    cutting.cuts_left = 1
    assert client.fail(failed.job_id, FailBody(error="boom")).status == "retrying"

    assert client.get_job(done.job_id).state == "completed"
    assert client.get_job(failed.job_id).attempt == 1


def test_actions_on_a_job_are_taken_once(client: Client, cutting: Cutting, queue: str) -> None:
    job_id = client.enqueue(EnqueueBody(queue=queue)).job_id

    for action in (client.hold, client.approve, client.cancel, client.retry):
        cutting.cuts_left = 1
        action(job_id)
    cutting.cuts_left = 1
    client.move(job_id, MoveBody(queue=f"{queue}-there"))
    cutting.cuts_left = 1
    copy = client.replay(job_id, ReplayBody(iteration=1))

    assert client.get_job(job_id).queue == f"{queue}-there"
    assert client.get_queue(f"{queue}-there").pending == 2
    assert client.get_job(copy.job_id).parent_id == job_id


def test_a_schedule_is_run_once(client: Client, cutting: Cutting, queue: str) -> None:
    cutting.cuts_left = 1
    schedule = client.create_schedule(CreateScheduleBody(name=queue, queue=queue, cron="0 0 1 1 *"))
    cutting.cuts_left = 1

    client.run_schedule(schedule.id)

    assert client.get_queue(queue).enqueued == 1


def test_a_queue_is_cleared_once(client: Client, cutting: Cutting, queue: str) -> None:
    client.enqueue(EnqueueBody(queue=queue))
    cutting.cuts_left = 1

    cleared = client.clear_queue(queue)

    assert cleared.deleted == 1


def test_what_must_not_be_repeated_is_not(client: Client, cutting: Cutting, queue: str) -> None:
    job_id = client.enqueue(EnqueueBody(queue=queue)).job_id
    cutting.cuts_left = 1

    with pytest.raises(Unreachable) as lost:
        client.bulk(BulkBody(action="delete", job_ids=[job_id]))

    assert lost.value.was_sent and cutting.lost == [200]
    with pytest.raises(JobNotFound):
        client.get_job(job_id)


def test_the_asynchronous_client_does_the_same(cutting: Cutting, queue: str) -> None:
    async def test() -> None:
        async with AsyncClient(cutting.url) as client:
            cutting.cuts_left = 1
            made = await client.enqueue(EnqueueBody(queue=queue))
            cutting.cuts_left = 1
            job = await client.fetch(FetchBody(queues=[queue], worker_id="w", timeout=0))
            assert job is not None and (job.job_id, job.attempt) == (made.job_id, 1)
            assert (await client.get_queue(queue)).enqueued == 1
            made_many = await asyncio.gather(*(client.enqueue(EnqueueBody(queue=queue)) for _ in range(50)))
            assert len({one.job_id for one in made_many}) == 50
            with pytest.raises(InvalidRequest) as refused:
                await client.enqueue(EnqueueBody(queue=queue, max_retries=-1))
            assert refused.value.field == "max_retries"

    asyncio.run(test())
