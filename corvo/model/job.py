"""The job and the records beside it, as they are stored and replicated.

All are msgpack arrays: a field is its position. To change a record: add the field last, with a default, and pin its
bytes in `tests/golden`. Rename freely; never reorder, never reuse a position. Times are nanoseconds since 1970, 0 for
"not yet"; an empty text or JSON document means "none".
"""

from enum import IntEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from corvo.model.job_extras import JobExtras
from corvo.model.lifecycle import State
from corvo.model.limits import DELAY_MS_MAX, LEASE_MS_DEFAULT, QUALIFIED_NAME, QUEUE_NAME
from corvo.model.name_fields import NameKind
from corvo.model.retry import Backoff
from corvo.model.timestamps import LATEST_NS

# Types of public fields: decoding checks them, OpenAPI describes them.
QueueName = Annotated[
    str,
    Meta(
        pattern=rf"^{QUEUE_NAME.pattern}\Z",
        description="1 to 200 characters of letters, digits and `._:/-`, beginning with a letter or digit",
    ),
    NameKind.QUEUE,
]
WorkerId = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}\Z",
        description="1 to 200 characters of letters, digits and `._:/@+-`, beginning with a letter or digit",
    ),
    NameKind.WORKER,
]
QualifiedName = Annotated[str, Meta(pattern=rf"^{QUALIFIED_NAME.pattern}\Z")]  # of a queue, inside the server
JobId = Annotated[str, Meta(min_length=1, max_length=128), NameKind.ID]
ShortText = Annotated[str, Meta(max_length=256)]

# Types of numbers inside operations. The gateway has checked them; these keep a number that no key or clock can hold
# out of the log, where it would stop every replica at the same entry.
Count = Annotated[int, Meta(ge=0, le=2**53 - 1)]
RequestId = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Moment = Annotated[int, Meta(ge=0, le=LATEST_NS)]
SpanMs = Annotated[int, Meta(ge=0, le=DELAY_MS_MAX)]


class Priority(IntEnum):
    """Lower is fetched first. Stored as its number, also inside keys: never renumber."""

    CRITICAL = 0
    HIGH = 1
    NORMAL = 2


PRIORITY_NAMES: tuple[str, ...] = tuple(priority.name.lower() for priority in Priority)


class Job(msgspec.Struct, array_like=True, gc=False):
    id: str
    queue: str
    state: State
    priority: Priority
    payload: bytes  # JSON, byte for byte as it was sent
    max_retries: int  # attempts in all
    backoff: Backoff
    base_delay_ms: int
    max_delay_ms: int
    created_at: int
    position: int = 0  # place in the pending order; unique in the shard, also its tie-breaker
    due_at: int = 0  # when it becomes pending, while scheduled or retrying
    attempt: int = 0  # claims since creation or the last manual retry
    started_at: int = 0
    completed_at: int = 0
    failed_at: int = 0
    lease_expires_at: int = 0
    lease_ms: int = LEASE_MS_DEFAULT  # span that each heartbeat renews
    lease_token: int = 0  # number of the newest claim; it never goes back
    claim_id: int = 0  # the fetch that made the newest claim
    settled_id: int = 0  # the request that ended the newest claim: sent again, it gets the same answer
    worker_id: str = ""
    hostname: str = ""
    tags: bytes = b""
    progress: bytes = b""
    checkpoint: bytes = b""
    result: bytes = b""
    parent_id: str = ""
    extras: JobExtras | None = None  # conditions, and ties to other jobs


class JobError(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One failed attempt. Its key holds the claim's number, which a manual retry does not reset."""

    job_id: str
    claim: int
    attempt: int
    error: str
    backtrace: str
    created_at: int
    worker_id: str = ""
    started_at: int = 0
    is_interrupted: bool = False  # it did not fail: a hold ended it
    queue: str = ""  # where it failed: the job may have moved since


class Controls(msgspec.Struct, array_like=True):
    """Settings of one queue. 0 means no limit; a retention of -1 means the server's default."""

    is_paused: bool = False
    is_draining: bool = False
    max_concurrency: int = 0
    rate: int = 0  # claims
    window_ms: int = 0  # within any span of this length
    retention_ms: tuple[int, int, int] = (-1, -1, -1)  # of completed, dead, cancelled jobs


class Queue(msgspec.Struct, array_like=True):
    """The record of a queue. The counts are exact: every change of state updates them."""

    name: str
    created_at: int
    counts: list[int]  # jobs now in each state, by the state's number
    cursors: list[int]  # per priority, the position of the last job claimed: nothing pending lies before it
    enqueued: int = 0  # ever
    completed: int = 0  # ever
    failed: int = 0  # attempts that failed, ever
    controls: Controls | None = None
    # The newest clear: its request id, how many jobs it removed, and up to which creation time (negative: it is done).
    # A repeated request gets the same answer.
    cleared: tuple[int, int, int] = (0, 0, 0)
    died: int = 0  # jobs that ended as dead, ever
    # The minute of the newest change, and the totals (enqueued, completed, failed, died) when that minute began.
    began: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0)
    first_id: str = ""  # no job of the queue has a lesser id; empty: not known, in records of former versions
    payload_bytes: int = 0  # of its jobs; without those that a former version stored


class Minute(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Counts of a queue within one past minute. A minute without changes has no record."""

    queue: str
    minute: int  # since 1970
    enqueued: int
    completed: int
    failed: int  # attempts
    died: int


class Worker(msgspec.Struct, array_like=True):
    id: str
    hostname: str
    queues: list[str]
    started_at: int
    last_seen_at: int
    pool_size: int = 0
    version: str = ""


NO_JOB_YET = "~"  # greater than every id

encode = msgspec.msgpack.Encoder().encode
decode_job = msgspec.msgpack.Decoder(Job).decode
decode_job_error = msgspec.msgpack.Decoder(JobError).decode
decode_queue = msgspec.msgpack.Decoder(Queue).decode
decode_minute = msgspec.msgpack.Decoder(Minute).decode
decode_worker = msgspec.msgpack.Decoder(Worker).decode


def new_queue(name: str, created_at: int) -> Queue:
    return Queue(name, created_at, [0] * len(State), [0] * len(Priority), first_id=NO_JOB_YET)
