"""The calls of producers and workers in scenarios: many jobs per request, and answers parsed only as far as needed."""

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from benchmarks.load import Connection, LoadFailed, post, together

ENQUEUE_BATCH = 500
FETCH_BATCH = 100


class Fetched(msgspec.Struct):
    job_id: str
    lease_token: int


class FetchedBatch(msgspec.Struct):
    jobs: list[Fetched]


class Enqueued(msgspec.Struct):
    job_ids: list[str]


class Acked(msgspec.Struct):
    acked: int


encode = msgspec.json.Encoder().encode
decode_fetched = msgspec.json.Decoder(Fetched).decode
decode_batch = msgspec.json.Decoder(FetchedBatch).decode
_decode_enqueued = msgspec.json.Decoder(Enqueued).decode
_decode_acked = msgspec.json.Decoder(Acked).decode


def fetch_request(queues: Sequence[str], worker: str, timeout_s: float = 0.0) -> bytes:
    return post("/api/v1/fetch", encode({"queues": queues, "worker_id": worker, "timeout": timeout_s}))


def fetch_batch_request(queues: Sequence[str], worker: str, count: int = FETCH_BATCH) -> bytes:
    body = {"queues": queues, "worker_id": worker, "timeout": 0, "count": count}
    return post("/api/v1/fetch/batch", encode(body))


def ack_request(job: Fetched) -> bytes:
    return post(f"/api/v1/ack/{job.job_id}", encode({"lease_token": job.lease_token}))


async def ack_all(connection: Connection, jobs: list[Fetched]) -> None:
    """Acks all jobs; a refused ack ends the measurement."""
    acked = _decode_acked(await connection.require(post("/api/v1/ack/batch", encode({"acks": jobs})))).acked
    if acked != len(jobs):
        raise LoadFailed(f"{acked} of {len(jobs)} acks were accepted")


async def enqueue_many(
    connections: list[Connection],
    queues: Sequence[str],
    count: int,
    payload: object,
    advance: Callable[[float], None] = lambda jobs: None,
) -> None:
    """Enqueues `count` jobs, spread over the queues in turn, in batches over all connections."""
    sizes = iter([ENQUEUE_BATCH] * (count // ENQUEUE_BATCH) + [count % ENQUEUE_BATCH] * (count % ENQUEUE_BATCH > 0))
    requests: dict[int, bytes] = {}  # all batches of one size have the same bytes

    async def produce(connection: Connection) -> None:
        for size in sizes:
            if size not in requests:
                jobs = [{"queue": queues[number % len(queues)], "payload": payload} for number in range(size)]
                requests[size] = post("/api/v1/enqueue/batch", encode({"jobs": jobs}))
            ids = _decode_enqueued(await connection.require(requests[size])).job_ids
            if len(ids) != size:
                raise LoadFailed(f"{len(ids)} of {size} jobs were enqueued")
            advance(size)

    await together([produce(connection) for connection in connections])


async def close_all(connections: list[Connection]) -> None:
    for connection in connections:
        connection.close()
    await asyncio.sleep(0)
