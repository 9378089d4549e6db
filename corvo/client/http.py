"""The synchronous driver: sends calls over httpx, waits out an overload, and gives up at a deadline.

A call is repeated only when the server said that it changed nothing (429, 503). A connection that breaks half-way is
not repeated: whoever called knows whether the job may exist twice.
"""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

import httpx

from corvo import __version__
from corvo.client import DEFAULT_SERVER, calls
from corvo.client.calls import Call, ServerRefused
from corvo.ops.jobs.ack import AckBody, Acked
from corvo.ops.jobs.enqueue import EnqueueBody, Enqueued
from corvo.ops.jobs.fail import FailBody, Failed
from corvo.ops.jobs.fetch import FetchBatchBody, FetchBody, FetchedBatch, FetchedJob
from corvo.ops.jobs.heartbeat import HeartbeatAnswer, HeartbeatBody
from corvo.queries.cluster import ClusterStatus
from corvo.queries.job import JobView
from corvo.queries.members import JoinBody, MembersView, RemoveBody, TransferBody
from corvo.queries.queues import QueueView
from corvo.queries.search import SearchAnswer, SearchBody
from corvo.queries.workers import WorkerView

PAUSE_S_FIRST = 0.2  # between attempts when the server named no time; doubled each time
PAUSE_S_MAX = 5.0

A = TypeVar("A")


class Unreachable(Exception):
    """No answer came: nobody listens there, or the connection broke."""


class BadServer(ValueError):
    """The address of the server is no address."""


class Client:
    """One connection pool to one server. `sleep` and `clock` are handed in by tests."""

    def __init__(
        self,
        server: str = DEFAULT_SERVER,
        *,
        timeout_s: float = 10.0,  # for one answer, beyond the time the server may hold it back
        deadline_s: float = 15.0,  # for all attempts of one call together
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.server = _checked(server)
        self._timeout_s = timeout_s
        self._deadline_s = deadline_s
        self._sleep = sleep
        self._clock = clock
        self._http = httpx.Client(
            base_url=self.server,
            headers={"user-agent": f"corvo/{__version__}", "accept": "application/json"},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def call(self, call: Call[A]) -> A:
        deadline = self._clock() + self._deadline_s
        pause = PAUSE_S_FIRST
        while True:
            try:
                return self._send(call)
            except ServerRefused as refused:
                wait = pause if refused.retry_after_s is None else refused.retry_after_s
                if not refused.may_retry or self._clock() + wait > deadline:
                    raise
            self._sleep(wait)
            pause = min(2 * pause, PAUSE_S_MAX)

    def _send(self, call: Call[A]) -> A:
        headers = {} if call.body is None else {"content-type": "application/json"}
        try:
            response = self._http.request(
                call.method,
                call.path,
                content=call.body,
                headers=headers,
                timeout=httpx.Timeout(self._timeout_s, read=self._timeout_s + call.wait_s),
            )
        except httpx.ConnectError as error:
            raise Unreachable(f"nothing answers at {self.server} ({error})") from None
        except httpx.TimeoutException:
            raise Unreachable(f"{self.server} did not answer within {self._timeout_s + call.wait_s:g} s") from None
        except httpx.TransportError as error:
            raise Unreachable(f"the connection to {self.server} broke ({error})") from None
        return calls.read_answer(call, response.status_code, response.headers, response.content)

    def enqueue(self, body: EnqueueBody) -> Enqueued:
        return self.call(calls.enqueue(body))

    def inspect(self, job_id: str) -> JobView:
        return self.call(calls.inspect(job_id))

    def search(self, body: SearchBody) -> SearchAnswer:
        return self.call(calls.search(body))

    def queues(self) -> list[QueueView]:
        return self.call(calls.queues())

    def workers(self) -> list[WorkerView]:
        return self.call(calls.workers())

    def cluster_status(self) -> ClusterStatus:
        return self.call(calls.cluster_status())

    def cluster_join(self, body: JoinBody) -> MembersView:
        return self.call(calls.cluster_join(body))

    def cluster_remove(self, body: RemoveBody) -> MembersView:
        return self.call(calls.cluster_remove(body))

    def cluster_transfer(self, body: TransferBody) -> MembersView:
        return self.call(calls.cluster_transfer(body))

    def fetch(self, body: FetchBody) -> FetchedJob | None:
        return self.call(calls.fetch(body))

    def fetch_batch(self, body: FetchBatchBody) -> FetchedBatch:
        return self.call(calls.fetch_batch(body))

    def ack(self, job_id: str, body: AckBody) -> Acked:
        return self.call(calls.ack(job_id, body))

    def fail(self, job_id: str, body: FailBody) -> Failed:
        return self.call(calls.fail(job_id, body))

    def heartbeat(self, body: HeartbeatBody) -> HeartbeatAnswer:
        return self.call(calls.heartbeat(body))


def _checked(server: str) -> str:
    """`localhost:8080` is what people type; a scheme is added to it."""
    if "://" not in server:
        server = f"http://{server}"
    try:
        url = httpx.URL(server)
    except httpx.InvalidURL as error:
        raise BadServer(f"{server!r} is no address of a server: {error}") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise BadServer(f"{server!r} is no address of a server: expected such as {DEFAULT_SERVER}")
    return server.rstrip("/")
