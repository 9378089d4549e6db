"""Timers: how late they fire on an idle machine, and what scheduled jobs cost while they wait.

A worker waits on the queue. Jobs are scheduled for known times, retried after a known delay, and created by a schedule
that fires each second; the worker records how late each one is. Then the same runs with many jobs scheduled for next
year (`--backlog`), and the server's CPU is measured while they wait.
"""

import time
from typing import Any

import msgspec

from benchmarks.figures import Findings, Goal, value
from benchmarks.jobs import ENQUEUE_BATCH, close_all
from benchmarks.load import Connection, connect, connect_many, on_uvloop, percentiles_ms, post, together
from benchmarks.node import Node
from benchmarks.scenario import PAYLOAD, Scenario, Setup
from corvo.model.timestamps import parse_rfc3339, to_rfc3339

JOBS, JOBS_QUICK = 200, 40
BETWEEN_NS = 47_000_000  # a prime number of ms, so that no common period hides a late timer
BEGIN_NS = 500_000_000
RETRY_MS = 333
SLOTS, SLOTS_QUICK = 6, 3
IDLE_S, IDLE_S_QUICK = 15, 4
PRODUCERS = 4
SETTLE_S_MAX = 90.0
QUEUE = "timers"
LATE = Goal("< 50 ms", most=50.0)

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder().decode


def run(setup: Setup) -> Findings:
    jobs = JOBS_QUICK if setup.is_quick else JOBS
    slots = SLOTS_QUICK if setup.is_quick else SLOTS
    with Node(setup.folder / "node", *setup.flags) as node:
        advance = setup.watch.stage("timers of an idle server", 3)
        scheduled = on_uvloop(_scheduled(node, jobs))
        advance(1)
        retried = on_uvloop(_retried(node, jobs // 4))
        advance(1)
        fired = on_uvloop(_fired(node, slots))
        advance(1)
        fill = setup.watch.stage(f"{setup.backlog:,} jobs for next year", setup.backlog)
        on_uvloop(_fill(node, setup.backlog, fill))
        node.await_settled(SETTLE_S_MAX)
        idle = _idle(node, IDLE_S_QUICK if setup.is_quick else IDLE_S)
        beside = on_uvloop(_scheduled(node, jobs))
    figures = []
    for label, late_s in (
        ("scheduled jobs", scheduled),
        ("retries", retried),
        ("slots of a schedule", fired),
        (f"scheduled jobs, beside {setup.backlog:,} that wait", beside),
    ):
        p50, _, _ = percentiles_ms(late_s)
        figures.append(value(f"{label}: late by, p50", [p50], "ms"))
        figures.append(value(f"{label}: late by, worst", [max(late_s) * 1000], "ms", LATE))
    figures.append(
        value(f"CPU of all processes while {setup.backlog:,} wait", [idle], "% of a core", Goal("< 2 %", most=2.0))
    )
    return Findings(figures)


async def _scheduled(node: Node, jobs: int) -> list[float]:
    worker, producer = await connect(node.address), await connect(node.address)
    first = time.time_ns() + BEGIN_NS
    moments = [first + number * BETWEEN_NS for number in range(jobs)]
    bodies = [{"queue": QUEUE, "payload": {"at": at}, "scheduled_at": to_rfc3339(at)} for at in moments]
    await producer.require(post("/api/v1/enqueue/batch", encode({"jobs": bodies})))
    late = []
    for _ in range(jobs):
        job = await _fetch(worker)
        late.append((time.time_ns() - job["payload"]["at"]) / 1e9)
        await _ack(worker, job)
    await close_all([worker, producer])
    return late


async def _retried(node: Node, jobs: int) -> list[float]:
    worker = await connect(node.address)
    late = []
    for number in range(jobs):
        await worker.require(post("/api/v1/enqueue", encode({"queue": QUEUE, "payload": {"number": number}})))
        job = await _fetch(worker)
        fail = {"lease_token": job["lease_token"], "retry_after_ms": RETRY_MS}
        failed = decode(await worker.require(post(f"/api/v1/fail/{job['job_id']}", encode(fail))))
        job = await _fetch(worker)
        late.append((time.time_ns() - parse_rfc3339(failed["next_attempt_at"])) / 1e9)
        await _ack(worker, job)
    await close_all([worker])
    return late


async def _fired(node: Node, slots: int) -> list[float]:
    worker = await connect(node.address)
    body = {"name": "timers", "queue": QUEUE, "cron": "@every 1s"}
    schedule = decode(await worker.require(post("/api/v1/schedules", encode(body))))
    late = []
    for _ in range(slots):
        job = await _fetch(worker)
        late.append((time.time_ns() - parse_rfc3339(job["tags"]["slot"])) / 1e9)
        await _ack(worker, job)
    await worker.require(post(f"/api/v1/schedules/{schedule['id']}/pause", b"{}"))
    await close_all([worker])
    return late


async def _fetch(worker: Connection) -> dict[str, Any]:
    body = {"queues": [QUEUE], "worker_id": "timers", "timeout": 30}
    while not (raw := await worker.require(post("/api/v1/fetch", encode(body)))):
        pass
    job: dict[str, Any] = decode(raw)
    return job


async def _ack(worker: Connection, job: dict[str, Any]) -> None:
    await worker.require(post(f"/api/v1/ack/{job['job_id']}", encode({"lease_token": job["lease_token"]})))


async def _fill(node: Node, jobs: int, advance: Any) -> None:
    producers = await connect_many(node.address, PRODUCERS)
    body = {"queue": f"{QUEUE}.waiting", "payload": PAYLOAD, "delay": "8760h"}
    sizes = iter([ENQUEUE_BATCH] * (jobs // ENQUEUE_BATCH))
    request = post("/api/v1/enqueue/batch", encode({"jobs": [body] * ENQUEUE_BATCH}))

    async def produce(producer: Connection) -> None:
        for size in sizes:
            await producer.require(request)
            advance(size)

    await together([produce(producer) for producer in producers])
    await close_all(producers)


def _idle(node: Node, seconds: int) -> float:
    """The share of a core, in percent."""
    began, before = time.monotonic(), node.cpu_s()
    time.sleep(seconds)
    return (node.cpu_s() - before) / (time.monotonic() - began) * 100


SCENARIO = Scenario("timers", "timers on an idle machine", run)
