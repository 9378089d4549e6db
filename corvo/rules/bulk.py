"""Bulk operations: one action on every job that a filter matches, or on a list of jobs, in slices.

The record of an operation lives on shard 0. A gateway works on it under a lease; another one takes over when the lease
expires. A slice is written into the record before its jobs are changed, so the next gateway repeats exactly that slice.
A shard that has done its part gives the same answer again and changes nothing (`Memo`). So every job is changed once
and counted once. The newest ended operations are kept for a while.

Like everything stored, these are msgpack arrays: add a field last, with a default; never reorder.
"""

from enum import IntEnum
from hashlib import blake2b
from itertools import islice

import msgspec

from corvo.model.errors import Refusal
from corvo.model.job import Count, Priority, QualifiedName, ShortText, SpanMs
from corvo.model.lifecycle import State
from corvo.model.limits import BULK_ERRORS_KEPT, BULKS_ENDED_KEPT, RETENTION_MS_DEFAULT
from corvo.model.namespaces import namespace_of_id
from corvo.model.reach import Reach
from corvo.state import keys
from corvo.state.tables import Tables

BULK_SHARD = 0  # keeps the records of all operations
BULK_ALARM = "k"  # followed by an operation that has ended
MEMO_ALARM = "o"  # followed by an operation that this shard has worked on
_MS = 1_000_000


class Action(IntEnum):
    """Stored by number: never renumber."""

    RETRY = 0
    REQUEUE = 1
    DELETE = 2
    CANCEL = 3
    MOVE = 4
    CHANGE_PRIORITY = 5
    HOLD = 6
    APPROVE = 7
    REJECT = 8


class Status(IntEnum):
    """Stored by number: never renumber."""

    QUEUED = 0
    RUNNING = 1
    COMPLETED = 2
    FAILED = 3
    CANCELLED = 4


ACTION_NAMES: tuple[str, ...] = tuple(action.name.lower() for action in Action)
STATUS_NAMES: tuple[str, ...] = tuple(status.name.lower() for status in Status)
OPEN = frozenset({Status.QUEUED, Status.RUNNING})


class Order(msgspec.Struct, array_like=True, frozen=True):
    """The action for each job, with its parameters."""

    action: Action
    queue: QualifiedName | None = None  # where a job moves to
    priority: Priority = Priority.NORMAL
    reason: ShortText = ""  # of a hold or a rejection
    grace_ms: SpanMs = 0  # of a cancellation
    # Parts of the filter that the shard checks again, because the search may be behind the shard.
    only_queue: str = ""
    only_states: tuple[State, ...] = ()
    scope: tuple[str, ...] = ()  # of the key that ordered it: globs of queues; a job elsewhere does not exist for it
    resets_attempts: bool = False  # of a move
    resets_priority: bool = False  # of a move


class BulkFailure(msgspec.Struct, array_like=True, frozen=True):
    job_id: str
    code: str
    message: str


class BulkCounts(msgspec.Struct, array_like=True):
    """Results of an operation. All refused jobs are counted; the first ones are listed."""

    affected: Count = 0
    errors: dict[str, Count] = msgspec.field(default_factory=dict)  # by code
    samples: list[BulkFailure] = msgspec.field(default_factory=list)

    @property
    def processed(self) -> int:
        return self.affected + sum(self.errors.values())

    def add(self, other: "BulkCounts") -> None:
        self.affected += other.affected
        for code, count in other.errors.items():
            self.errors[code] = self.errors.get(code, 0) + count
        self.samples = (self.samples + other.samples)[:BULK_ERRORS_KEPT]

    def refuse(self, failure: BulkFailure) -> None:
        self.errors[failure.code] = self.errors.get(failure.code, 0) + 1
        if len(self.samples) < BULK_ERRORS_KEPT:
            self.samples.append(failure)


class Bulk(msgspec.Struct, array_like=True):
    id: str
    order: Order
    created_at: int
    # A search as JSON, with names as the tenant knows them; empty for a list of jobs, which has a key of its own.
    filter: bytes = b""
    total: int = 0  # jobs that matched when the operation was created
    total_is_exact: bool = False  # False: there are at least `total`
    status: Status = Status.QUEUED
    node_id: str = ""  # the node of the gateway that works on it
    gateway: int = 0  # the number of that gateway
    claim: int = 0  # its claim, which every report must name
    lease_ends_at: int = 0
    step: int = 0  # number of the slice
    slice: list[str] = []  # jobs of the current slice
    cursor: str = ""  # of the search, after the slice
    is_last: bool = False  # no slice follows
    tally: BulkCounts = msgspec.field(default_factory=BulkCounts)  # of all earlier slices
    started_at: int = 0
    claimed_at: int = 0
    claimed_processed: int = 0  # jobs processed when it was last claimed, to compute the rate since then
    updated_at: int = 0
    finished_at: int = 0
    is_cancelling: bool = False  # no further slice is started
    failure: str = ""  # why it failed


class Memo(msgspec.Struct, array_like=True):
    """What a shard did in the newest slice of an operation, so that a repeated slice changes nothing."""

    step: int
    done: list[str]
    touched_at: int
    kept_ms: int


encode = msgspec.msgpack.Encoder().encode
decode_bulk = msgspec.msgpack.Decoder(Bulk).decode
decode_memo = msgspec.msgpack.Decoder(Memo).decode
_decode_ids = msgspec.msgpack.Decoder(list[str]).decode


def ask_id_of(bulk_id: str) -> int:
    """The id under which a job remembers the action of this operation (`corvo/ops/jobs/actions.py`)."""
    return int.from_bytes(blake2b(bulk_id.encode(), digest_size=8).digest()) >> 1


# The records


def find_bulk(tables: Tables, bulk_id: str) -> Bulk | None:
    raw = tables.overlay.get(keys.bulk(bulk_id)) or tables.overlay.get(keys.bulk_ended(bulk_id))
    return None if raw is None else decode_bulk(raw)


def require_bulk(tables: Tables, bulk_id: str) -> Bulk:
    bulk = find_bulk(tables, bulk_id)
    if bulk is None:
        raise Refusal("BULK_NOT_FOUND", f"no bulk operation has the id {bulk_id!r}")
    return bulk


def open_bulks(tables: Tables) -> list[Bulk]:
    """Oldest first."""
    return [decode_bulk(value) for _, value in tables.overlay.scan(keys.BULKS, keys.prefix_end(keys.BULKS))]


def ended_bulks(tables: Tables, limit: int, reach: Reach | None = None) -> list[Bulk]:
    """The newest ones that a principal with this reach may see, newest first. None: all."""
    raws = [value for _, value in tables.overlay.scan(keys.BULKS_ENDED, keys.prefix_end(keys.BULKS_ENDED))]
    found = (decode_bulk(raw) for raw in reversed(raws))
    return list(islice((bulk for bulk in found if reach is None or is_within(bulk, reach)), limit))


def is_within(bulk: Bulk, reach: Reach) -> bool:
    """Whether a principal with this reach may see the operation: it touches nothing beyond it."""
    if namespace_of_id(bulk.id) != reach.namespace:
        return False
    if not reach.scope or (bulk.order.only_queue and reach.holds(bulk.order.only_queue)):
        return True
    return bool(bulk.order.scope) and set(bulk.order.scope) <= set(reach.scope)


def put_bulk(tables: Tables, bulk: Bulk) -> None:
    bulk.updated_at = tables.now
    tables.put(keys.bulk(bulk.id), encode(bulk))


def end_bulk(tables: Tables, bulk: Bulk, status: Status) -> None:
    """Move the operation to the ended ones, and drop the oldest of those."""
    bulk.status = status
    bulk.slice = []
    bulk.finished_at = bulk.updated_at = tables.now
    tables.put(keys.bulk(bulk.id), None)
    tables.put(keys.bulk_ids(bulk.id), None)
    tables.put(keys.bulk_ended(bulk.id), encode(bulk))
    tables.alarms.add(tables.now + RETENTION_MS_DEFAULT * _MS, BULK_ALARM + bulk.id)
    ended = [key for key, _ in tables.overlay.scan(keys.BULKS_ENDED, keys.prefix_end(keys.BULKS_ENDED))]
    for key in ended[:-BULKS_ENDED_KEPT]:
        tables.put(key, None)


def put_ids(tables: Tables, bulk_id: str, job_ids: list[str]) -> None:
    tables.put(keys.bulk_ids(bulk_id), encode(job_ids))


def find_ids(tables: Tables, bulk_id: str) -> list[str]:
    raw = tables.overlay.get(keys.bulk_ids(bulk_id))
    return [] if raw is None else _decode_ids(raw)


def forget(tables: Tables, bulk_id: str, value: bytes) -> int:
    """The alarm of an operation that has ended."""
    tables.put(keys.bulk_ended(bulk_id), None)
    return 1


# What a shard remembers of its part


def find_memo(tables: Tables, bulk_id: str) -> Memo | None:
    raw = tables.overlay.get(keys.bulk_memo(bulk_id))
    return None if raw is None else decode_memo(raw)


def put_memo(tables: Tables, bulk_id: str, memo: Memo) -> None:
    """One alarm serves all slices: it is set with the first slice, and set again when it finds a later one."""
    if find_memo(tables, bulk_id) is None:
        tables.alarms.add(tables.now + memo.kept_ms * _MS, MEMO_ALARM + bulk_id)
    memo.touched_at = tables.now
    tables.put(keys.bulk_memo(bulk_id), encode(memo))


def forget_memo(tables: Tables, bulk_id: str, value: bytes) -> int:
    memo = find_memo(tables, bulk_id)
    if memo is not None:
        forget_at = memo.touched_at + memo.kept_ms * _MS
        if forget_at <= tables.now:
            tables.put(keys.bulk_memo(bulk_id), None)
        else:
            tables.alarms.add(forget_at, MEMO_ALARM + bulk_id)
    return 1
