"""Every method of PyPI's `corvo-client` 0.3.0 and its worker, as their users call them.

Run by test_published_clients.py in an environment that has them and nothing of ours. Prints one line of JSON for each
check: its name, and what went wrong, or null.
"""

import json
import sys
import threading
import time
import traceback
from collections.abc import Callable

from corvo_client import CorvoClient, EnqueueOptions, PayloadTooLargeError
from corvo_client.client import ChainConfig, ChainStep, CorvoError
from corvo_worker import CorvoWorker, WorkerConfig

client = CorvoClient(sys.argv[1])
QUIET_S = 30.0  # how long a worker may need to be done
CHECKS: list[Callable[[], None]] = []


def check(function: Callable[[], None]) -> Callable[[], None]:
    CHECKS.append(function)
    return function


def until(condition: Callable[[], bool]) -> None:
    ends = time.monotonic() + QUIET_S
    while not condition():
        assert time.monotonic() < ends, "it does not become true"
        time.sleep(0.02)


@check
def enqueue_and_get() -> None:
    made = client.enqueue("c.get", {"n": 1}, priority="high", tags={"team": "a"})
    assert made["status"] == "pending" and made["unique_existing"] is False
    job = client.get_job(made["job_id"])
    assert (job["queue"], job["payload"], job["state"], job["tags"]) == ("c.get", {"n": 1}, "pending", {"team": "a"})


@check
def enqueue_with_all_options() -> None:
    options = EnqueueOptions(
        queue="c.options",
        payload=[1],
        priority="critical",
        unique_key="k",
        unique_period=60,
        max_retries=2,
        scheduled_at="2099-01-01T00:00:00Z",
        tags={"a": "b"},
        expire_after="1h",
        retry_backoff="fixed",
        retry_base_delay="1s",
        retry_max_delay="1m",
    )
    assert client.enqueue_with(options)["status"] == "scheduled"
    assert client.enqueue_with(options)["unique_existing"] is True


@check
def enqueue_a_chain() -> None:
    chain = ChainConfig(
        [ChainStep("c.chain", {"n": 1}), ChainStep("c.chain2", {"n": 2})], None, ChainStep("c.exit", {})
    )
    made = client.enqueue_with(EnqueueOptions(queue="c.chain", payload={"n": 1}, chain=chain))
    job = client.fetch(["c.chain"], "w", timeout=5)
    assert job is not None and job["job_id"] == made["job_id"]
    client.ack(job["job_id"], {"result": {}})
    second = client.fetch(["c.chain2"], "w", timeout=5)
    assert second is not None


@check
def a_chain_with_a_queue_for_failures_is_refused() -> None:
    """This client sends the name of a queue where servers, the original too, expect a step."""
    chain = ChainConfig([ChainStep("c.failing", {"n": 1})], on_failure="c.cleanup")
    try:
        client.enqueue_with(EnqueueOptions(queue="c.failing", payload={"n": 1}, chain=chain))
    except CorvoError as error:
        assert "chain.on_failure" in str(error)
    else:
        raise AssertionError("no error")


@check
def enqueue_many_and_a_batch() -> None:
    made = client.enqueue_batch([{"queue": "c.batch", "payload": {}}, {"queue": "c.batch", "payload": {}}])
    assert len(made["job_ids"]) == 2
    made = client.enqueue_batch(
        [{"queue": "c.batch", "payload": {}}], batch={"callback_queue": "c.done", "callback_payload": {"n": 1}}
    )
    assert made["batch_id"]


@check
def fetch_heartbeat_ack() -> None:
    client.enqueue("c.work", {"n": 1})
    job = client.fetch(["c.work"], "w", timeout=5)
    assert job is not None and job["payload"] == {"n": 1} and job["attempt"] == 1
    update = {"progress": {"current": 1, "total": 2, "message": "half"}, "checkpoint": {"at": 1}}
    assert client.heartbeat({job["job_id"]: update})["jobs"][job["job_id"]]["status"] == "ok"
    assert client.ack(job["job_id"])["status"] == "ok"
    shown = client.get_job(job["job_id"])
    assert shown["state"] == "completed" and shown["checkpoint"] == {"at": 1}


@check
def nothing_to_fetch() -> None:
    assert client.fetch(["c.none"], "w", timeout=0) is None


@check
def fetch_batch_and_ack_batch() -> None:
    client.enqueue_batch([{"queue": "c.many", "payload": {"n": n}} for n in range(3)])
    jobs = client.fetch_batch(["c.many"], "w", timeout=5, count=3)["jobs"]
    assert len(jobs) == 3
    assert client.ack_batch([{"job_id": job["job_id"]} for job in jobs])["acked"] == 3


@check
def fail_and_retry() -> None:
    client.enqueue("c.fail", {}, max_retries=1)
    job = client.fetch(["c.fail"], "w", timeout=5)
    assert job is not None
    assert client.fail(job["job_id"], "boom", "trace")["status"] == "dead"
    assert client.retry_job(job["job_id"])["status"] == "retried"


@check
def cancel_move_delete() -> None:
    ids = client.enqueue_batch([{"queue": "c.act", "payload": {}} for _ in range(3)])["job_ids"]
    assert client.cancel_job(ids[0])["status"] in ("cancelled", "cancelling")
    assert client.move_job(ids[1], "c.there")["status"] == "moved"
    assert client.delete_job(ids[2])["status"] == "deleted"


@check
def search_and_bulk() -> None:
    client.enqueue_batch([{"queue": "c.search", "payload": {"n": n}} for n in range(3)])
    until(lambda: client.search({"queue": "c.search"})["total"] == 3)
    done = client.bulk({"filter": {"queue": "c.search"}, "action": "cancel"})
    assert done["affected"] == 3
    started = client.bulk({"filter": {"queue": "c.search"}, "action": "delete", "async": True})
    until(lambda: client.bulk_status(started["bulk_operation_id"])["status"] == "completed")


@check
def bulk_get_and_info() -> None:
    made = client.enqueue("c.info", {})
    assert [job["id"] for job in client.bulk_get_jobs([made["job_id"]])] == [made["job_id"]]
    assert "server_version" in client.get_server_info()


@check
def errors() -> None:
    try:
        client.get_job("job_nowhere")
    except CorvoError as error:
        assert str(error) and not str(error).startswith("HTTP")
    else:
        raise AssertionError("no error")
    try:
        client.enqueue("c.big", "x" * 11_000_000)
    except PayloadTooLargeError:
        pass
    else:
        raise AssertionError("no error")


@check
def events() -> None:
    heard = client.subscribe(queues=["c.events"], last_event_id=0)
    made: list[str] = []
    enqueuing = threading.Timer(0.5, lambda: made.append(client.enqueue("c.events", {})["job_id"]))
    enqueuing.start()
    event = next(heard)
    enqueuing.join()
    assert event["type"] == "enqueued" and event["data"]["job_id"] == made[0], event


def run_worker(batch: int) -> None:
    queue = f"c.worker{batch}"
    jobs = client.enqueue_batch([{"queue": queue, "payload": {"n": n}, "max_retries": 1} for n in range(6)])["job_ids"]
    worker = CorvoWorker(
        CorvoClient(sys.argv[1]),
        WorkerConfig([queue], f"w{batch}", concurrency=2, fetch_batch_size=batch, ack_batch_size=batch),
    )

    def handle(job: dict, context: object) -> None:
        context.progress(1, 2, "half")  # type: ignore[attr-defined]
        context.checkpoint({"n": job["payload"]["n"]})  # type: ignore[attr-defined]
        assert not context.is_cancelled()  # type: ignore[attr-defined]
        if job["payload"]["n"] == 5:
            raise ValueError("five")

    worker.register(queue, handle)
    threading.Thread(target=worker.start, daemon=True).start()
    expected = ["completed"] * 5 + ["dead"]
    until(lambda: [client.get_job(job_id)["state"] for job_id in jobs] == expected)
    worker.stop()
    assert client.get_job(jobs[5])["errors"][-1]["error"] == "five"


@check
def worker() -> None:
    run_worker(1)


if __name__ == "__main__":
    for each in CHECKS:
        try:
            each()
            trouble = None
        except Exception:
            trouble = traceback.format_exc(limit=-2)
        print(json.dumps([each.__name__, trouble]), flush=True)
