"""The synchronous driver: sends calls over httpx, waits out an overload, and gives up at a deadline.

A call is repeated only when the server said that it changed nothing (429, 503). A connection that breaks half-way is
not repeated: whoever called knows whether the job may exist twice.
"""

import re
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self, TypeVar

import httpx

from corvo import __version__
from corvo.client import DEFAULT_SERVER, calls
from corvo.client.calls import HttpCall, ServerRefused
from corvo.client.trust import trusting
from corvo.ops.batches.add_to_batch import BatchBody, BatchMade
from corvo.ops.batches.seal_batch import Sealed
from corvo.ops.bulk.begin_bulk import BulkBody, BulkDone, BulkStarted
from corvo.ops.jobs.ack import AckBody, Acked
from corvo.ops.jobs.actions import Done
from corvo.ops.jobs.cancel import CancelBody, Cancelled
from corvo.ops.jobs.change_priority import PriorityBody
from corvo.ops.jobs.enqueue import EnqueueBody, Enqueued
from corvo.ops.jobs.fail import FailBody, Failed
from corvo.ops.jobs.fetch import FetchBatchBody, FetchBody, FetchedBatch, FetchedJob
from corvo.ops.jobs.heartbeat import HeartbeatAnswer, HeartbeatBody
from corvo.ops.jobs.hold import HoldBody
from corvo.ops.jobs.move import MoveBody
from corvo.ops.jobs.reject import RejectBody
from corvo.ops.jobs.replay import ReplayBody
from corvo.ops.queues.clear_queue import QueueCleared
from corvo.ops.queues.control import QueueChanged
from corvo.ops.queues.drain_queue import QueueDraining
from corvo.ops.queues.set_concurrency import ConcurrencyBody
from corvo.ops.queues.set_retention import RetentionBody
from corvo.ops.queues.set_throttle import ThrottleBody
from corvo.ops.schedules.create_schedule import CreateScheduleBody
from corvo.ops.schedules.delete_schedule import DeletedSchedule
from corvo.ops.schedules.update_schedule import UpdateScheduleBody
from corvo.queries.batches import BatchView
from corvo.queries.bulk_view import BulkView
from corvo.queries.cluster import ClusterStatus
from corvo.queries.error_groups import ErrorGroupsAnswer, ErrorGroupsQuery
from corvo.queries.job import JobView
from corvo.queries.jobs import BulkGetBody, JobsView
from corvo.queries.members import JoinBody, MembersView, RemoveBody, TransferBody
from corvo.queries.queue import QueueDetail
from corvo.queries.queues import QueueView
from corvo.queries.schedule_view import ScheduleView
from corvo.queries.search import SearchAnswer, SearchBody
from corvo.queries.state_lists import StateListQuery
from corvo.queries.throughput import ThroughputPoint, ThroughputQuery
from corvo.queries.why import WhyView
from corvo.queries.worker import WorkerDetail
from corvo.queries.workers import WorkerView

PAUSE_S_FIRST = 0.2  # between attempts when the server named no time; doubled each time
PAUSE_S_MAX = 5.0
_LOOKS_LIKE_TLS = re.compile("without sending a response|illegal (?:status|request) line")  # who is told no TLS

A = TypeVar("A")


class Unreachable(Exception):
    """No answer came: nobody listens there, or the connection broke."""


class UntrustedServer(Unreachable):
    """Somebody answers, but not by TLS, or with a certificate that convinces nobody. Says what to do."""


class BadServer(ValueError):
    """The address of the server is no address."""


class Client:
    """One connection pool to one server. `sleep` and `clock` are handed in by tests. `secure` is the context of its
    connections, for others to the same server; None where it speaks no TLS."""

    def __init__(
        self,
        server: str = DEFAULT_SERVER,
        *,
        timeout_s: float = 10.0,  # for one answer, beyond the time the server may hold it back
        deadline_s: float = 15.0,  # for all attempts of one call together
        ca_cert: str | None = None,  # file of the authorities to trust; None: see `trusting`
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.server = _checked(server)
        self._timeout_s = timeout_s
        self._deadline_s = deadline_s
        self._sleep = sleep
        self._clock = clock
        self.secure = trusting(ca_cert) if self.server.startswith("https:") else None
        self._http = httpx.Client(
            base_url=self.server,
            verify=self.secure or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),  # not used; httpx would load authorities
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

    def call(self, call: HttpCall[A]) -> A:
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

    def _send(self, call: HttpCall[A]) -> A:
        headers = {} if call.body is None else {"content-type": "application/json"}
        patience_s = self._timeout_s + call.wait_s
        with self._reached(patience_s):
            response = self._http.request(
                call.method,
                call.path,
                content=call.body,
                headers=headers,
                timeout=httpx.Timeout(self._timeout_s, read=patience_s),
            )
        return calls.read_answer(call, response.status_code, response.headers, response.content)

    @contextmanager
    def open_stream(
        self, path: str, query: dict[str, str], headers: dict[str, str], silence_s: float
    ) -> Iterator[httpx.Response]:
        """An answer that goes on; it is lost when nothing comes for so long."""
        timeout = httpx.Timeout(self._timeout_s, read=silence_s)
        with (
            self._reached(silence_s),
            self._http.stream("GET", path, params=query, headers=headers, timeout=timeout) as response,
        ):
            yield response

    @contextmanager
    def _reached(self, patience_s: float) -> Iterator[None]:
        try:
            yield
        except httpx.ConnectError as error:
            if "SSL" in str(error):
                raise UntrustedServer(_distrust(self.server, str(error))) from None
            raise Unreachable(f"nothing answers at {self.server} ({error})") from None
        except httpx.TimeoutException:
            raise Unreachable(f"{self.server} did not answer within {patience_s:g} s") from None
        except httpx.RemoteProtocolError as error:
            hint = "; if it speaks TLS, its address begins with https://"
            is_likely = self.secure is None and _LOOKS_LIKE_TLS.search(str(error))
            raise Unreachable(f"the connection to {self.server} broke ({error}){hint if is_likely else ''}") from None
        except httpx.TransportError as error:
            raise Unreachable(f"the connection to {self.server} broke ({error})") from None

    def enqueue(self, body: EnqueueBody) -> Enqueued:
        return self.call(calls.enqueue(body))

    def inspect(self, job_id: str) -> JobView:
        return self.call(calls.inspect(job_id))

    def retry(self, job_id: str) -> Done:
        return self.call(calls.retry(job_id))

    def requeue(self, job_id: str) -> Done:
        return self.call(calls.requeue(job_id))

    def cancel(self, job_id: str, body: CancelBody) -> Cancelled:
        return self.call(calls.cancel(job_id, body))

    def hold(self, job_id: str, body: HoldBody) -> Done:
        return self.call(calls.hold(job_id, body))

    def approve(self, job_id: str) -> Done:
        return self.call(calls.approve(job_id))

    def reject(self, job_id: str, body: RejectBody) -> Done:
        return self.call(calls.reject(job_id, body))

    def move(self, job_id: str, body: MoveBody) -> Done:
        return self.call(calls.move(job_id, body))

    def change_priority(self, job_id: str, body: PriorityBody) -> Done:
        return self.call(calls.change_priority(job_id, body))

    def replay(self, job_id: str, body: ReplayBody) -> Enqueued:
        return self.call(calls.replay(job_id, body))

    def delete(self, job_id: str) -> Done:
        return self.call(calls.delete(job_id))

    def bulk(self, body: BulkBody) -> BulkDone | BulkStarted:
        return self.call(calls.bulk(body))

    def bulk_get(self, body: BulkGetBody) -> JobsView:
        return self.call(calls.bulk_get(body))

    def bulks(self) -> list[BulkView]:
        return self.call(calls.bulks())

    def get_bulk(self, bulk_id: str) -> BulkView:
        return self.call(calls.get_bulk(bulk_id))

    def cancel_bulk(self, bulk_id: str) -> BulkView:
        return self.call(calls.cancel_bulk(bulk_id))

    def why(self, job_id: str) -> WhyView:
        return self.call(calls.why(job_id))

    def search(self, body: SearchBody) -> SearchAnswer:
        return self.call(calls.search(body))

    def queues(self) -> list[QueueView]:
        return self.call(calls.queues())

    def workers(self) -> list[WorkerView]:
        return self.call(calls.workers())

    def get_worker(self, worker_id: str) -> WorkerDetail:
        return self.call(calls.get_worker(worker_id))

    def dead(self, query: StateListQuery) -> SearchAnswer:
        return self.call(calls.dead(query))

    def held(self, query: StateListQuery) -> SearchAnswer:
        return self.call(calls.held(query))

    def throughput(self, query: ThroughputQuery, queue: str | None = None) -> list[ThroughputPoint]:
        return self.call(calls.throughput(query, queue))

    def error_groups(self, query: ErrorGroupsQuery) -> ErrorGroupsAnswer:
        return self.call(calls.error_groups(query))

    def cluster_status(self) -> ClusterStatus:
        return self.call(calls.cluster_status())

    def cluster_join(self, body: JoinBody) -> MembersView:
        return self.call(calls.cluster_join(body))

    def cluster_remove(self, body: RemoveBody) -> MembersView:
        return self.call(calls.cluster_remove(body))

    def cluster_transfer(self, body: TransferBody) -> MembersView:
        return self.call(calls.cluster_transfer(body))

    def schedules(self) -> list[ScheduleView]:
        return self.call(calls.schedules())

    def get_schedule(self, schedule: str) -> ScheduleView:
        return self.call(calls.get_schedule(schedule))

    def create_schedule(self, body: CreateScheduleBody) -> ScheduleView:
        return self.call(calls.create_schedule(body))

    def update_schedule(self, schedule: str, body: UpdateScheduleBody) -> ScheduleView:
        return self.call(calls.update_schedule(schedule, body))

    def pause_schedule(self, schedule: str) -> ScheduleView:
        return self.call(calls.pause_schedule(schedule))

    def resume_schedule(self, schedule: str) -> ScheduleView:
        return self.call(calls.resume_schedule(schedule))

    def run_schedule(self, schedule: str) -> Enqueued:
        return self.call(calls.run_schedule(schedule))

    def delete_schedule(self, schedule: str) -> DeletedSchedule:
        return self.call(calls.delete_schedule(schedule))

    def create_batch(self, body: BatchBody) -> BatchMade:
        return self.call(calls.create_batch(body))

    def seal_batch(self, batch_id: str) -> Sealed:
        return self.call(calls.seal_batch(batch_id))

    def get_batch(self, batch_id: str) -> BatchView:
        return self.call(calls.get_batch(batch_id))

    def get_queue(self, queue: str) -> QueueDetail:
        return self.call(calls.get_queue(queue))

    def pause_queue(self, queue: str) -> QueueChanged:
        return self.call(calls.pause_queue(queue))

    def resume_queue(self, queue: str) -> QueueChanged:
        return self.call(calls.resume_queue(queue))

    def drain_queue(self, queue: str) -> QueueDraining:
        return self.call(calls.drain_queue(queue))

    def clear_queue(self, queue: str) -> QueueCleared:
        return self.call(calls.clear_queue(queue))

    def delete_queue(self, queue: str, is_forced: bool = False) -> QueueChanged:
        return self.call(calls.delete_queue(queue, is_forced))

    def set_concurrency(self, queue: str, body: ConcurrencyBody) -> QueueChanged:
        return self.call(calls.set_concurrency(queue, body))

    def set_throttle(self, queue: str, body: ThrottleBody) -> QueueChanged:
        return self.call(calls.set_throttle(queue, body))

    def remove_throttle(self, queue: str) -> QueueChanged:
        return self.call(calls.remove_throttle(queue))

    def set_retention(self, queue: str, body: RetentionBody) -> QueueChanged:
        return self.call(calls.set_retention(queue, body))

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


def _distrust(server: str, error: str) -> str:
    if found := re.search(r"certificate verify failed: (.+?)(?: \(_ssl|$)", error):
        return (
            f"the certificate of {server} is not trusted: {found[1]};"
            " --ca-cert or CORVO_CA_CERT names the file of the authority that signed it"
        )
    return f"{server} does not speak TLS as it should ({error}); if it speaks none, its address begins with http://"


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
