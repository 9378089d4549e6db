"""Producers and workers over HTTP, in threads, and a history of what the server acknowledged.

A call that broke half-way has an unknown outcome: it is written down as nothing, never as done. Workers ack under
their lease token and repeat an ack whose answer was lost, as a careful client does.
"""

import random
import threading
import time
from collections import Counter

import msgspec

from corvo.client.calls import ServerRefused
from corvo.client.http import Client, Unreachable
from corvo.ops.jobs.ack import AckBody
from corvo.ops.jobs.enqueue import EnqueueBody
from corvo.ops.jobs.fail import FailBody
from corvo.ops.jobs.fetch import FetchBatchBody, FetchedJob


class History(msgspec.Struct):
    """What was promised. Written by many threads, read when they have ended."""

    enqueued: set[str] = set()  # ids that the server acknowledged
    acked: dict[str, set[int]] = {}  # job → lease tokens whose ack was answered ok
    claims: dict[str, list[tuple[int, str]]] = {}  # job → lease token and worker, in the order seen
    refusals: Counter[str] = msgspec.field(default_factory=Counter)
    broken_calls: int = 0


class Workload:
    def __init__(self, url: str, queues: list[str], producers: int = 2, workers: int = 3, seed: int = 0) -> None:
        self.history = History()
        self._url = url
        self._queues = queues
        self._lock = threading.Lock()
        self._stop_producing = threading.Event()
        self._stop_working = threading.Event()
        self._producers = [
            threading.Thread(target=self._produce, args=(random.Random(f"{seed}-{number}"), number), daemon=True)
            for number in range(producers)
        ]
        self._workers = [
            threading.Thread(target=self._work, args=(f"chaos-{number}",), daemon=True) for number in range(workers)
        ]

    def start(self) -> None:
        for thread in [*self._producers, *self._workers]:
            thread.start()

    def stop_producing(self) -> None:
        self._stop_producing.set()
        for thread in self._producers:
            thread.join(60.0)

    def stop(self) -> None:
        self.stop_producing()
        self._stop_working.set()
        for thread in self._workers:
            thread.join(60.0)

    def is_drained(self) -> bool:
        """Whether every acknowledged job was acked."""
        with self._lock:
            return self.history.enqueued <= self.history.acked.keys()

    def counts(self) -> tuple[int, int]:
        with self._lock:
            return len(self.history.enqueued), len(self.history.acked)

    def _produce(self, dice: random.Random, number: int) -> None:
        count = 0
        with Client(self._url, timeout_s=15.0) as client:
            while not self._stop_producing.is_set():
                count += 1
                body = EnqueueBody(
                    queue=dice.choice(self._queues),
                    payload=msgspec.Raw(b'{"producer":%d,"number":%d}' % (number, count)),
                    priority=dice.choice(("critical", "high", "normal", "normal")),
                    max_retries=50,
                    retry_backoff="none",
                )
                try:
                    job_id = client.enqueue(body).job_id
                except (ServerRefused, Unreachable) as error:
                    self._note(error)
                    continue
                with self._lock:
                    self.history.enqueued.add(job_id)

    def _work(self, worker_id: str) -> None:
        body = FetchBatchBody(queues=self._queues, worker_id=worker_id, timeout=1.0, lease_duration=5.0, count=10)
        with Client(self._url, timeout_s=15.0) as client:
            while not self._stop_working.is_set():
                try:
                    jobs = client.fetch_batch(body).jobs
                except (ServerRefused, Unreachable) as error:
                    self._note(error)
                    continue
                for job in jobs:
                    with self._lock:
                        self.history.claims.setdefault(job.job_id, []).append((job.lease_token, worker_id))
                    if job.attempt == 1 and hash(job.job_id) % 10 == 0:
                        self._fail(client, job)  # some jobs take two attempts, so that failures are recorded too
                    else:
                        self._ack(client, job)

    def _ack(self, client: Client, job: FetchedJob) -> None:
        deadline = time.monotonic() + 30.0
        while time.monotonic() < deadline:
            try:
                client.ack(job.job_id, AckBody(lease_token=job.lease_token))
            except Unreachable as error:
                self._note(error)  # the outcome is unknown: ask again, the lease makes it safe
                continue
            except ServerRefused as error:
                self._note(error)
                return
            with self._lock:
                self.history.acked.setdefault(job.job_id, set()).add(job.lease_token)
            return

    def _fail(self, client: Client, job: FetchedJob) -> None:
        try:
            client.fail(job.job_id, FailBody(error="on purpose", lease_token=job.lease_token))
        except (ServerRefused, Unreachable) as error:
            self._note(error)  # the lease ends by itself

    def _note(self, error: Exception) -> None:
        with self._lock:
            if isinstance(error, ServerRefused):
                self.history.refusals[error.code] += 1
            else:
                self.history.broken_calls += 1
        self._stop_working.wait(0.02)  # whoever was refused does not hammer
