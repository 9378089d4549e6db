"""Batches: jobs on any queues whose ends are counted together, with callback jobs when all have ended.

A batch lives on one shard, which its id names. Members are counted there before they are created, so the count is never
too low; each member reports its end once, by an errand. A sealed batch without open members is finished: its callback
jobs are created, each once, because their ids follow from the batch's id. A finished batch is removed after the default
retention.
"""

from collections.abc import Iterable
from itertools import islice

import msgspec

from corvo.model.errors import Refusal
from corvo.model.events import EventKind
from corvo.model.globs import is_in_scope
from corvo.model.job_extras import OUTCOME_NAMES, ChainStep, Outcome
from corvo.model.json_input import keys_of
from corvo.model.limits import BATCH_ASKS_KEPT_MS, BATCH_QUEUES_KEPT, RETENTION_MS_DEFAULT
from corvo.model.namespaces import namespace_of_id, qualify, shown_name
from corvo.model.reach import Reach
from corvo.model.sharding import shard_of_queue
from corvo.rules.errands.make_job import MakeJob
from corvo.rules.job_creation import NewJob, derived_id
from corvo.state import keys
from corvo.state.tables import Tables

BATCH_ALARM = "b"  # followed by the batch's id; for a request that added jobs to it, also NUL and the request's id
OTHER_QUEUES = ""  # in `Batch.queues`: there are more
_MS = 1_000_000


class BatchSpec(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The definition of a batch by its producer. Each callback is a job that is created when all members have ended."""

    on_complete: ChainStep | None = None  # always
    on_success: ChainStep | None = None  # if all members are completed
    on_failure: ChainStep | None = None  # if at least one is not
    description: str = ""


class Batch(msgspec.Struct, array_like=True):
    id: str
    created_at: int
    on_complete: ChainStep | None = None
    on_success: ChainStep | None = None
    on_failure: ChainStep | None = None
    description: str = ""
    is_sealed: bool = False
    total: int = 0
    ended: list[int] = msgspec.field(default_factory=lambda: [0] * len(Outcome))  # by outcome
    finished_at: int = 0
    queues: tuple[str, ...] = ()  # of its members; at most `BATCH_QUEUES_KEPT`, then `OTHER_QUEUES`

    @property
    def open(self) -> int:
        return self.total - sum(self.ended)

    @property
    def failed(self) -> int:
        return sum(self.ended) - self.ended[Outcome.COMPLETED]

    @property
    def is_success(self) -> bool:
        return self.ended[Outcome.COMPLETED] == self.total


encode = msgspec.msgpack.Encoder().encode
decode_batch = msgspec.msgpack.Decoder(Batch).decode


def new_batch(tables: Tables, batch_id: str, spec: BatchSpec) -> Batch:
    """The caller stores it."""
    return Batch(batch_id, tables.now, spec.on_complete, spec.on_success, spec.on_failure, spec.description)


def find_batch(tables: Tables, batch_id: str) -> Batch | None:
    raw = tables.overlay.get(keys.batch(batch_id))
    return None if raw is None else decode_batch(raw)


def require_batch(tables: Tables, batch_id: str) -> Batch:
    batch = find_batch(tables, batch_id)
    if batch is None:
        raise Refusal("BATCH_NOT_FOUND", f"no batch has the id {batch_id!r}")
    return batch


def note_queues(batch: Batch, queues: Iterable[str]) -> None:
    known = dict.fromkeys((*batch.queues, *queues))
    known.pop(OTHER_QUEUES, None)
    kept = tuple(islice(known, BATCH_QUEUES_KEPT))
    has_more = len(kept) < len(known) or OTHER_QUEUES in batch.queues
    batch.queues = (*kept, OTHER_QUEUES) if has_more else kept


def is_within(batch: Batch, reach: Reach) -> bool:
    """Whether a principal with this reach may know the batch: no job or callback of it is outside."""
    if namespace_of_id(batch.id) != reach.namespace:
        return False
    steps = (batch.on_complete, batch.on_success, batch.on_failure)
    queues = (*batch.queues, *(step.queue for step in steps if step is not None))
    return not reach.scope or all(is_in_scope(shown_name(queue), reach.scope) for queue in queues)


def put_batch(tables: Tables, batch: Batch) -> None:
    tables.put_record(keys.batch(batch.id), encode(batch))


def was_asked(tables: Tables, batch_id: str, ask_id: int) -> bool:
    """Whether this request has already added its jobs."""
    return tables.overlay.get(keys.batch_ask(batch_id, ask_id)) is not None


def remember_ask(tables: Tables, batch_id: str, ask_id: int) -> None:
    tables.put(keys.batch_ask(batch_id, ask_id), b"")
    tables.alarms.add(tables.now + BATCH_ASKS_KEPT_MS * _MS, f"{BATCH_ALARM}{batch_id}\0{ask_id}")


def finish_if_over(tables: Tables, batch: Batch) -> None:
    """Create the callback jobs if all members have ended. The caller stores the batch."""
    if not batch.is_sealed or batch.open or batch.finished_at:
        return
    batch.finished_at = tables.now
    tables.alarms.add(tables.now + RETENTION_MS_DEFAULT * _MS, BATCH_ALARM + batch.id)
    for name, step in callbacks(batch):
        shard = shard_of_queue(step.queue, tables.errands.shard_count)
        new = NewJob(callback_id(batch, name, shard, step.queue), step.queue, _payload(batch, name, step))
        tables.errands.send(shard, MakeJob(new))
    nowhere = qualify(namespace_of_id(batch.id), "")  # no queue, but a namespace
    tables.event_log.tell(EventKind.BATCH_COMPLETED, "", nowhere, msgspec.json.encode(summary(batch)))


def callbacks(batch: Batch) -> list[tuple[str, ChainStep]]:
    """The callbacks that apply to a finished batch, by name."""
    earned = ("on_success", batch.on_success) if batch.is_success else ("on_failure", batch.on_failure)
    return [(name, step) for name, step in (("on_complete", batch.on_complete), earned) if step is not None]


def callback_id(batch: Batch, name: str, shard: int, queue: str) -> str:
    return derived_id(shard, batch.id, name, queue=queue)


def summary(batch: Batch) -> dict[str, object]:
    counts = dict(zip(OUTCOME_NAMES, batch.ended, strict=True))
    totals = {"total": batch.total, "succeeded": batch.ended[Outcome.COMPLETED], "failed": batch.failed}
    return {"batch_id": batch.id, **totals, **counts}


def _payload(batch: Batch, callback: str, step: ChainStep) -> bytes:
    """The keys of the callback's payload, and the outcome of the batch under `batch`."""
    return msgspec.json.encode({**keys_of(step.payload), "batch": {**summary(batch), "callback": callback}})


def forget(tables: Tables, subject: str, value: bytes) -> int:
    """The alarm of a finished batch, or of a request that added jobs to a batch."""
    batch_id, _, ask_id = subject.partition("\0")
    if ask_id:
        tables.put(keys.batch_ask(batch_id, int(ask_id)), None)
    else:
        tables.put_record(keys.batch(batch_id), None)
    return 1
