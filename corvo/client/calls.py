"""What to send for each request and how to read what comes back. Pure: no socket, no clock.

A `Call` is made from an endpoint of the core, so method, path and types of the answers cannot drift from the server's.
A driver (`http.py`) sends it and hands status, headers and bytes to `read_answer`.
"""

import functools
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from corvo.endpoint import Endpoint
from corvo.model.errors import RETRYABLE, STATUS
from corvo.ops import ENDPOINTS as WRITES
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
from corvo.queries import ENDPOINTS as READS
from corvo.queries.batches import BatchView
from corvo.queries.bulk_view import BulkView
from corvo.queries.cluster import ClusterStatus
from corvo.queries.error_groups import ErrorGroupsAnswer, ErrorGroupsQuery
from corvo.queries.events import EventsPage
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

PREFIX = "/api/v1"
BULK_S = 60.0  # jobs that a bulk action changes within its request take this long at the most
LONG_S = 600.0  # a queue is cleared or deleted slice by slice, and the server takes this long at the most
REASON_CHARS_MAX = 300  # of an answer that is not ours: a proxy's page must not fill the screen

A = TypeVar("A")
_ENDPOINTS: dict[str, Endpoint] = {endpoint.name: endpoint for endpoint in (*WRITES, *READS)}


class ServerRefused(Exception):
    """The server answered no, or answered something that cannot be read."""

    def __init__(self, code: str, message: str, status: int, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        self.retry_after_s = retry_after_s  # None: the server did not say

    @property
    def may_retry(self) -> bool:
        """Only what certainly changed nothing: after a 504 the first request may still have been applied. A proxy's
        429 or 503 has no code of ours and never reached the server."""
        if self.code in STATUS:
            return self.code in RETRYABLE
        return self.status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)


class HttpCall(NamedTuple, Generic[A]):
    method: str
    path: str
    body: bytes | None
    answers: Mapping[int, Any]  # status → type of the answer; None: an empty one
    wait_s: float = 0.0  # how long the server may hold the answer back on purpose


class _ErrorBody(msgspec.Struct):
    error: str
    code: str = ""


def enqueue(body: EnqueueBody) -> HttpCall[Enqueued]:
    return _call("enqueue", body)


def inspect(job_id: str) -> HttpCall[JobView]:
    return _call("get_job", job_id=job_id)


def retry(job_id: str) -> HttpCall[Done]:
    return _call("retry", job_id=job_id)


def requeue(job_id: str) -> HttpCall[Done]:
    return _call("requeue", job_id=job_id)


def cancel(job_id: str, body: CancelBody) -> HttpCall[Cancelled]:
    return _call("cancel", body, job_id=job_id)


def hold(job_id: str, body: HoldBody) -> HttpCall[Done]:
    return _call("hold", body, job_id=job_id)


def approve(job_id: str) -> HttpCall[Done]:
    return _call("approve", job_id=job_id)


def reject(job_id: str, body: RejectBody) -> HttpCall[Done]:
    return _call("reject", body, job_id=job_id)


def move(job_id: str, body: MoveBody) -> HttpCall[Done]:
    return _call("move", body, job_id=job_id)


def change_priority(job_id: str, body: PriorityBody) -> HttpCall[Done]:
    return _call("change_priority", body, job_id=job_id)


def replay(job_id: str, body: ReplayBody) -> HttpCall[Enqueued]:
    return _call("replay", body, job_id=job_id)


def delete(job_id: str) -> HttpCall[Done]:
    return _call("delete_job", job_id=job_id)


def bulk(body: BulkBody) -> HttpCall[BulkDone | BulkStarted]:
    return _call("bulk", body)._replace(wait_s=BULK_S)


def bulk_get(body: BulkGetBody) -> HttpCall[JobsView]:
    return _call("bulk_get", body)


def bulks() -> HttpCall[list[BulkView]]:
    return _call("bulks")


def get_bulk(bulk_id: str) -> HttpCall[BulkView]:
    return _call("get_bulk", bulk_id=bulk_id)


def cancel_bulk(bulk_id: str) -> HttpCall[BulkView]:
    return _call("cancel_bulk", bulk_id=bulk_id)


def why(job_id: str) -> HttpCall[WhyView]:
    return _call("why", job_id=job_id)


def cluster_events(cursor: str, limit: int, filters: Mapping[str, str]) -> HttpCall[EventsPage]:
    call = _call("cluster_events")
    return call._replace(path=f"{call.path}?{urlencode({'after_seq': cursor, 'limit': limit, **filters})}")


def search(body: SearchBody) -> HttpCall[SearchAnswer]:
    return _call("search", body)


def queues() -> HttpCall[list[QueueView]]:
    return _call("queues")


def workers() -> HttpCall[list[WorkerView]]:
    return _call("workers")


def get_worker(worker_id: str) -> HttpCall[WorkerDetail]:
    return _call("get_worker", worker_id=worker_id)


def dead(query: StateListQuery) -> HttpCall[SearchAnswer]:
    return _asking(_call("dead"), query)


def held(query: StateListQuery) -> HttpCall[SearchAnswer]:
    return _asking(_call("held"), query)


def throughput(query: ThroughputQuery, queue: str | None = None) -> HttpCall[list[ThroughputPoint]]:
    return _asking(_call("throughput") if queue is None else _call("queue_throughput", name=queue), query)


def error_groups(query: ErrorGroupsQuery) -> HttpCall[ErrorGroupsAnswer]:
    return _asking(_call("error_groups"), query)


def cluster_status() -> HttpCall[ClusterStatus]:
    return _call("cluster_status")


def cluster_join(body: JoinBody) -> HttpCall[MembersView]:
    return _call("cluster_join", body)


def cluster_remove(body: RemoveBody) -> HttpCall[MembersView]:
    return _call("cluster_remove", body)


def cluster_transfer(body: TransferBody) -> HttpCall[MembersView]:
    return _call("cluster_transfer", body)


def schedules() -> HttpCall[list[ScheduleView]]:
    return _call("schedules")


def get_schedule(schedule: str) -> HttpCall[ScheduleView]:
    return _call("get_schedule", schedule_id=schedule)


def create_schedule(body: CreateScheduleBody) -> HttpCall[ScheduleView]:
    return _call("create_schedule", body)


def update_schedule(schedule: str, body: UpdateScheduleBody) -> HttpCall[ScheduleView]:
    return _call("update_schedule", body, schedule_id=schedule)


def pause_schedule(schedule: str) -> HttpCall[ScheduleView]:
    return _call("pause_schedule", schedule_id=schedule)


def resume_schedule(schedule: str) -> HttpCall[ScheduleView]:
    return _call("resume_schedule", schedule_id=schedule)


def run_schedule(schedule: str) -> HttpCall[Enqueued]:
    return _call("run_schedule", schedule_id=schedule)


def delete_schedule(schedule: str) -> HttpCall[DeletedSchedule]:
    return _call("delete_schedule", schedule_id=schedule)


def create_batch(body: BatchBody) -> HttpCall[BatchMade]:
    return _call("create_batch", body)


def seal_batch(batch_id: str) -> HttpCall[Sealed]:
    return _call("seal_batch", batch_id=batch_id)


def get_batch(batch_id: str) -> HttpCall[BatchView]:
    return _call("get_batch", batch_id=batch_id)


def get_queue(queue: str) -> HttpCall[QueueDetail]:
    return _call("get_queue", name=queue)


def pause_queue(queue: str) -> HttpCall[QueueChanged]:
    return _call("pause_queue", name=queue)


def resume_queue(queue: str) -> HttpCall[QueueChanged]:
    return _call("resume_queue", name=queue)


def drain_queue(queue: str) -> HttpCall[QueueDraining]:
    return _call("drain_queue", name=queue)


def clear_queue(queue: str) -> HttpCall[QueueCleared]:
    return _call("clear_queue", name=queue)._replace(wait_s=LONG_S)


def delete_queue(queue: str, is_forced: bool = False) -> HttpCall[QueueChanged]:
    call = _call("delete_queue", name=queue)
    return call._replace(path=f"{call.path}?confirm=true{'&force=true' if is_forced else ''}", wait_s=LONG_S)


def set_concurrency(queue: str, body: ConcurrencyBody) -> HttpCall[QueueChanged]:
    return _call("set_concurrency", body, name=queue)


def set_throttle(queue: str, body: ThrottleBody) -> HttpCall[QueueChanged]:
    return _call("set_throttle", body, name=queue)


def remove_throttle(queue: str) -> HttpCall[QueueChanged]:
    return _call("remove_throttle", name=queue)


def set_retention(queue: str, body: RetentionBody) -> HttpCall[QueueChanged]:
    return _call("set_retention", body, name=queue)


def fetch(body: FetchBody) -> HttpCall[FetchedJob | None]:
    return _call("fetch", body)._replace(wait_s=body.timeout)


def fetch_batch(body: FetchBatchBody) -> HttpCall[FetchedBatch]:
    return _call("fetch_batch", body)._replace(wait_s=body.timeout)


def ack(job_id: str, body: AckBody) -> HttpCall[Acked]:
    return _call("ack", body, job_id=job_id)


def fail(job_id: str, body: FailBody) -> HttpCall[Failed]:
    return _call("fail", body, job_id=job_id)


def heartbeat(body: HeartbeatBody) -> HttpCall[HeartbeatAnswer]:
    return _call("heartbeat", body)


def read_answer(call: HttpCall[A], status: int, headers: Mapping[str, str], content: bytes) -> A:
    """The typed answer, or the refusal raised."""
    if status not in call.answers:
        raise refusal_of(status, headers, content)
    expected = call.answers[status]
    if expected is None:
        return None  # type: ignore[return-value]  # the call's own type says that this answer may be empty
    try:
        return _decoder(expected).decode(content)  # type: ignore[no-any-return]  # `A` is that type, by construction
    except msgspec.MsgspecError as error:
        raise ServerRefused(
            "UNREADABLE_ANSWER", f"the answer cannot be read ({error}): is the server of another version?", status
        ) from None


def _call(name: str, body: msgspec.Struct | None = None, /, **parameters: str) -> HttpCall[Any]:
    endpoint = _ENDPOINTS[name]
    path = endpoint.path.format_map({key: quote(value, safe="") for key, value in parameters.items()})
    content = None if body is None else msgspec.json.encode(_without_defaults(body))
    return HttpCall(endpoint.method, PREFIX + path, content, endpoint.answers)


def _asking(call: HttpCall[A], query: msgspec.Struct) -> HttpCall[A]:
    """With what stands after the `?`."""
    named = urlencode(_without_defaults(query))
    return call._replace(path=f"{call.path}?{named}") if named else call


def _without_defaults(value: Any) -> Any:
    """Bodies name only what differs from the default: an empty `Raw` has no form in JSON at all, and a default that
    the server changes should take effect without a new client."""
    if isinstance(value, msgspec.Struct):
        return {
            field.encode_name: _without_defaults(getattr(value, field.name))
            for field in msgspec.structs.fields(value)
            if not _is_default(getattr(value, field.name), field)
        }
    if isinstance(value, dict):
        return {key: _without_defaults(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_defaults(item) for item in value]
    return value


def _is_default(value: Any, field: msgspec.structs.FieldInfo) -> bool:
    default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    if isinstance(value, msgspec.Raw):  # equal only to itself
        return not bytes(value) or (isinstance(default, msgspec.Raw) and bytes(value) == bytes(default))
    return bool(value == default)


@functools.cache
def _decoder(answer: Any) -> "msgspec.json.Decoder[Any]":
    return msgspec.json.Decoder(answer)


def refusal_of(status: int, headers: Mapping[str, str], content: bytes) -> ServerRefused:
    try:
        body = _decoder(_ErrorBody).decode(content)
    except msgspec.MsgspecError:  # not an answer of ours: a proxy, or another program on this port
        text = " ".join(content.decode(errors="replace").split())[:REASON_CHARS_MAX]
        body = _ErrorBody(f"HTTP {status} instead of an answer of Corvo's: {text or 'no text'}")
    return ServerRefused(body.code or f"HTTP_{status}", body.error, status, _retry_after_s(headers))


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Only seconds: the other form of the header, a date, is never sent by Corvo."""
    try:
        return max(0.0, float(headers.get("retry-after", "")))
    except ValueError:
        return None
