"""Producers and workers over HTTP, in threads, and a history of what the server acknowledged.

A broken call has an unknown outcome: it is not recorded as done, and is retried on the next server, if there are
several. So a job may be enqueued twice; only the one whose id was returned counts as promised. Workers ack with their
lease token and repeat an ack whose answer was lost, as a careful client does.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from corvo.client.answers import FetchedJob
from corvo.client.bodies import AckBody, EnqueueBody, FailBody, FetchBatchBody
from corvo.client.calls import HttpCall, ServerRefused
from corvo.client.http import Client, Unreachable
from corvo.client.methods import Methods

REPEAT_S = 0.05

A = TypeVar("A")


class History(msgspec.Struct):
    """What the server acknowledged. Written by many threads, read when they have ended."""

    enqueued: set[str] = set()  # ids that the server acknowledged
    acked: dict[str, set[int]] = {}  # job → lease tokens whose ack was answered ok
    claims: dict[str, list[tuple[int, str]]] = {}  # job → lease token and worker, in the order seen
    refusals: Counter[str] = msgspec.field(default_factory=Counter)
    broken_calls: int = 0
    longest_trouble_s: float = 0.0  # from the first refusal of a request to its answer
    unhealed: list[str] = []  # requests that failed in spite of retries


class Workload:
    """`pace_s` is a producer's pause between two jobs, `patience_s` how long a refused request is retried."""

    def __init__(
        self,
        servers: Sequence[str],
        queues: list[str],
        producers: int = 2,
        workers: int = 3,
        seed: int = 0,
        pace_s: float = 0.0,
        patience_s: float = 15.0,
    ) -> None:
        self.history = History()
        self._servers = servers
        self._queues = queues
        self._pace_s = pace_s
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._stop_producing = threading.Event()
        self._stop_working = threading.Event()
        self._producers = [
            threading.Thread(target=self._produce, args=(random.Random(f"{seed}-{number}"), number), daemon=True)
            for number in range(producers)
        ]
        self._workers = [threading.Thread(target=self._work, args=(number,), daemon=True) for number in range(workers)]

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

    def unfinished(self) -> list[str]:
        with self._lock:
            return sorted(self.history.enqueued - self.history.acked.keys())

    def counts(self) -> tuple[int, int]:
        with self._lock:
            return len(self.history.enqueued), len(self.history.acked)

    def acked_by_shard(self) -> Counter[int]:
        with self._lock:
            return Counter(int(job_id[1:3]) for job_id in self.history.acked)

    def _produce(self, dice: random.Random, number: int) -> None:
        count = 0
        with _Caller(self, number) as caller:
            while not self._stop_producing.wait(self._pace_s):
                count += 1
                body = EnqueueBody(
                    queue=dice.choice(self._queues),
                    payload=msgspec.Raw(b'{"producer":%d,"number":%d}' % (number, count)),
                    priority=dice.choice(("critical", "high", "normal", "normal")),
                    max_retries=50,
                    retry_backoff="none",
                )
                try:
                    job_id = caller.enqueue(body).job_id
                except (ServerRefused, Unreachable):
                    continue
                with self._lock:
                    self.history.enqueued.add(job_id)

    def _work(self, number: int) -> None:
        worker_id = f"chaos-{number}"
        body = FetchBatchBody(queues=self._queues, worker_id=worker_id, timeout=1.0, lease_duration=5.0, count=10)
        with _Caller(self, number) as caller:
            while not self._stop_working.is_set():
                try:
                    jobs = caller.fetch_batch(body).jobs
                except (ServerRefused, Unreachable):
                    continue
                for job in jobs:
                    with self._lock:
                        self.history.claims.setdefault(job.job_id, []).append((job.lease_token, worker_id))
                    if job.attempt == 1 and hash(job.job_id) % 10 == 0:
                        self._fail(caller, job)  # some jobs take two attempts, so that failures are recorded too
                    else:
                        self._ack(caller, job)

    def _ack(self, caller: "_Caller", job: FetchedJob) -> None:
        deadline = time.monotonic() + 30.0
        while time.monotonic() < deadline:
            try:
                caller.ack(job.job_id, AckBody(lease_token=job.lease_token))
            except (ServerRefused, Unreachable) as error:
                if is_passing(error):
                    continue  # the outcome is unknown: retry, the lease makes it safe
                return
            with self._lock:
                self.history.acked.setdefault(job.job_id, set()).add(job.lease_token)
            return

    def _fail(self, caller: "_Caller", job: FetchedJob) -> None:
        body = FailBody(error="on purpose", lease_token=job.lease_token)
        try:
            caller.fail(job.job_id, body)
        except (ServerRefused, Unreachable):
            pass  # the lease expires by itself

    def _note(self, error: Exception) -> None:
        with self._lock:
            if isinstance(error, ServerRefused):
                self.history.refusals[error.code] += 1
            else:
                self.history.broken_calls += 1
        self._stop_working.wait(REPEAT_S)  # pause after a refusal

    def _note_trouble(self, path: str, seconds: float, error: Exception | None) -> None:
        with self._lock:
            self.history.longest_trouble_s = max(self.history.longest_trouble_s, seconds)
            if error is not None:
                self.history.unhealed.append(f"{path} for {seconds:.1f} s, at last: {error}")


class _Caller(Methods):
    """One thread's client: stays with one server until a call to it fails."""

    def __init__(self, load: Workload, number: int) -> None:
        self._load = load
        self._clients = [Client(url, timeout_s=15.0, deadline_s=0.0) for url in load._servers]
        self._turn = number

    def __enter__(self) -> "_Caller":
        return self

    def __exit__(self, *error: object) -> None:
        for client in self._clients:
            client.close()

    def call(self, call: HttpCall[A]) -> A:
        """Retries temporary failures until the patience ends; records every failure."""
        began: float | None = None
        while True:
            try:
                answer = self._clients[self._turn % len(self._clients)].call(call)
            except (ServerRefused, Unreachable) as error:
                now = time.monotonic()
                began = now if began is None else began
                self._load._note(error)
                self._turn += 1
                if is_passing(error) and now - began < self._load._patience_s:
                    continue
                if is_passing(error):
                    self._load._note_trouble(call.path, now - began, error)
                raise
            if began is not None:
                self._load._note_trouble(call.path, time.monotonic() - began, None)
            return answer


def is_passing(error: ServerRefused | Unreachable) -> bool:
    """Whether the failure is temporary, not caused by the request."""
    return isinstance(error, Unreachable) or error.status in (429, 503, 504)
