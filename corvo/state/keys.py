"""The bytes of every key; no other module builds or parses keys.

`|` ends a prefix, NUL ends a name, numbers are big-endian, so that keys sort by number. Names are checked before they
come here (`limits.py`): none can hold `|` or NUL.

    j|{job id}                                      the job
    je|{job id}\\0{claim:4}                          one failed attempt
    p|{queue}\\0{priority:1}{position:8}{job id}     pending, critical or high
    qa|{queue}\\0{position:8}{job id}                pending, normal: an append log
    a|{queue}\\0{job id}                             active; value {lease end:8}{claim id:8}
    s|{queue}\\0{due:8}{job id}                      scheduled
    r|{queue}\\0{due:8}{job id}                      retrying
    t|{due:8}{job id}                               when a scheduled or retrying job is due, over all queues
    qn|{queue}                                      the queue: counts, cursors
    qm|{queue}\\0{minute:4}                         counts of the queue in that minute since 1970
    w|{worker id}                                   a worker
    n|{node id}                                     address of a node of the cluster
    k|retention                                     how long ended jobs are kept, unless their queue says: {ms:8}
    k|worker_timeout                                after how long a silent worker is removed: {ms:8}
    u|{queue}\\0{unique key}                        the job that holds the key, and until when
    i|{queue}\\0{idempotency key}                   the job that was made for it
    d|{job id}\\0{job id}                           the second waits for the first
    f|{job id}                                      where a job has moved to: {shard:1}{errand:8}
    b|{batch id}                                    a batch: counts, callbacks
    ba|{batch id}\\0{ask id:8}                       a recent request that added jobs to the batch
    sc|{schedule id}                                a cron schedule
    bk|{bulk id}   bd|{bulk id}                     a bulk operation that is open, that has ended; on shard 0
    bi|{bulk id}                                    the job ids of an open bulk operation on a list of jobs
    bm|{bulk id}                                    what this shard did in the operation's newest slice
    l|{queue}\\0{moment:8}                          number of claims of a throttled queue at that time
    al|{due:8}{subject}                             an alarm: something other than a job falls due
    ak|{SHA-256 of the key}                         an API key; on shard 0, as all records of access
    ar|{role}   an|{namespace}   as|                a custom role, a namespace, the sign-on settings
    av|                                             version of the records of access: {number:8}
    au|{number:8}                                   a record of the audit log; on shard 0
    k|audit_ends                                    its newest record and the newest that was removed, with their hashes
    k|audit_kept                                    how long, and how many, records of it are kept: {ms:8}{count:8}
    ev|{number:8}                                   the events of one entry, under the number of the first
    x|{shard:1}{number:8}                           an errand for another shard
    xo|{shard:1}   xi|{shard:1}                     number of the last errand given to, done for, another shard

Kept by the replica itself, not part of the replicated state: `r|{index:8}` (Raft log; the first byte of an index is 0
and a queue begins with a letter or digit, so the two families share a prefix without collisions), `m|{index:8}`
(changes that the mirror has not confirmed) and `\\0…` (identity, hard state, applied marker).

To change a key: add the new family, write both, migrate at start, then drop the old one. Never reinterpret bytes.
"""

import struct
from functools import lru_cache

from corvo.model.job import Priority

_U64 = struct.Struct(">Q")
_U32 = struct.Struct(">I")
_LEASE = struct.Struct(">QQ")

pack_u64 = _U64.pack
pack_u32 = _U32.pack
pack_lease = _LEASE.pack
unpack_lease = _LEASE.unpack

JOBS = b"j|"
JOB_ERRORS = b"je|"
ACTIVE = b"a|"
DUE = b"t|"
QUEUES = b"qn|"
MINUTES = b"qm|"
WORKERS = b"w|"
NODES = b"n|"
DEFAULTS = b"k|"
DEFAULT_RETENTION = DEFAULTS + b"retention"
WORKER_TIMEOUT = DEFAULTS + b"worker_timeout"
AUDIT_ENDS = DEFAULTS + b"audit_ends"
AUDIT_KEPT = DEFAULTS + b"audit_kept"
FEED = b"m|"
UNIQUE = b"u|"
IDEMPOTENT = b"i|"
WATCHERS = b"d|"
FORWARDED = b"f|"
BATCHES = b"b|"
BATCH_ASKS = b"ba|"
SCHEDULES = b"sc|"
BULKS = b"bk|"
BULKS_ENDED = b"bd|"
BULK_IDS = b"bi|"
BULK_MEMOS = b"bm|"
CLAIMS = b"l|"
ALARMS = b"al|"
AUDIT = b"au|"
EVENTS = b"ev|"
API_KEYS = b"ak|"
ROLES = b"ar|"
NAMESPACES = b"an|"
SSO = b"as|"
REDACTION = b"ax|"
ACCESS_VERSION = b"av|"
OUTBOX = b"x|"
OUTBOX_LAST = b"xo|"
INBOX_LAST = b"xi|"
# Families of replicated state. Each ends with `|`, so prefixes never overlap. On disk `r|` also holds the Raft log,
# whose keys continue with a NUL: a scan for jobs starts after them.
STATE_PREFIXES = (
    *(ACTIVE, JOBS, JOB_ERRORS, b"p|", b"qa|", QUEUES, b"r|", b"s|", DUE, WORKERS, NODES, DEFAULTS),
    *(UNIQUE, IDEMPOTENT, WATCHERS, FORWARDED, BATCHES, BATCH_ASKS, SCHEDULES, CLAIMS, ALARMS, EVENTS),
    *(OUTBOX, OUTBOX_LAST, INBOX_LAST, BULKS, BULKS_ENDED, BULK_IDS, BULK_MEMOS, MINUTES),
    *(API_KEYS, ROLES, NAMESPACES, SSO, REDACTION, ACCESS_VERSION),
    AUDIT,
)
_LOG_END = b"r|\x01"

APPLIED = b"\0applied"  # index, term, time of the state, last position, state hash
LOG_META = b"\0log"
IDENTITY = b"\0identity"
HARD_STATE = b"\0hard"
MEMBERSHIP = b"\0members"
INCARNATION = b"\0incarnation"
FEED_FLOOR = b"\0feed"
FORGETFUL = b"\0forgetful"  # this replica lost its votes and log, and has not been added again
INCOMING = b"\0incoming"  # progress of a snapshot that is being received


def job(job_id: str) -> bytes:
    return b"j|" + job_id.encode()


def job_id(key: bytes) -> str:
    return key[2:].decode()


def job_error(job_id: str, claim: int) -> bytes:
    return b"je|%b\0%b" % (job_id.encode(), _U32.pack(claim))


def job_errors(job_id: str) -> bytes:
    return b"je|%b\0" % job_id.encode()


def pending(queue: str, priority: Priority, position: int, job_id: str) -> bytes:
    return pending_prefix(queue, priority) + _U64.pack(position) + job_id.encode()


@lru_cache(maxsize=16_384)  # few queues, and two calls for each job
def pending_prefix(queue: str, priority: Priority) -> bytes:
    if priority == Priority.NORMAL:
        return b"qa|%b\0" % queue.encode()
    return b"p|%b\0%c" % (queue.encode(), priority)


def pending_position(key: bytes, prefix_size: int) -> tuple[int, str]:
    """The position and the job id in a pending key, given the size of its prefix. In a scheduled or retrying key: the
    due time and the job id."""
    position: int = _U64.unpack_from(key, prefix_size)[0]
    return position, key[prefix_size + 8 :].decode()


@lru_cache(maxsize=16_384)
def _active_prefix(queue: str) -> bytes:
    return b"a|%b\0" % queue.encode()


def active(queue: str, job_id: str) -> bytes:
    return _active_prefix(queue) + job_id.encode()


def active_job_id(key: bytes) -> str:
    return key[key.index(0) + 1 :].decode()


def scheduled(queue: str, due_at: int, job_id: str) -> bytes:
    return b"s|%b\0%b%b" % (queue.encode(), _U64.pack(due_at), job_id.encode())


def retrying(queue: str, due_at: int, job_id: str) -> bytes:
    return b"r|%b\0%b%b" % (queue.encode(), _U64.pack(due_at), job_id.encode())


def scheduled_prefix(queue: str) -> bytes:
    return b"s|%b\0" % queue.encode()


def retrying_prefix(queue: str) -> bytes:
    return b"r|%b\0" % queue.encode()


def due(family: bytes, due_at: int, subject: str) -> bytes:
    """In `t|` the subject is a job id, in `al|` the subject of the alarm."""
    return b"%b%b%b" % (family, _U64.pack(due_at), subject.encode())


def due_floor(family: bytes, due_at: int) -> bytes:
    return family + _U64.pack(due_at)


def due_parts(family: bytes, key: bytes) -> tuple[int, str]:
    size = len(family)
    due_at: int = _U64.unpack_from(key, size)[0]
    return due_at, key[size + 8 :].decode()


def unique(queue: str, key: str) -> bytes:
    return b"u|%b\0%b" % (queue.encode(), key.encode())


def idempotent(queue: str, key: str) -> bytes:
    return b"i|%b\0%b" % (queue.encode(), key.encode())


def watcher(job_id: str, dependent: str) -> bytes:
    return b"d|%b\0%b" % (job_id.encode(), dependent.encode())


def watchers(job_id: str) -> bytes:
    return b"d|%b\0" % job_id.encode()


def second_name(key: bytes) -> str:
    """The second name of a key with two names."""
    return key[key.index(0) + 1 :].decode()


def forwarded(job_id: str) -> bytes:
    return b"f|" + job_id.encode()


def pack_forwarding(shard: int, number: int) -> bytes:
    """The shard that a job moved to, and the number of the errand that carried it."""
    return b"%c%b" % (shard, _U64.pack(number))


def unpack_forwarding(value: bytes) -> tuple[int, int]:
    number: int = _U64.unpack_from(value, 1)[0]
    return value[0], number


def batch(batch_id: str) -> bytes:
    return b"b|" + batch_id.encode()


def batch_ask(batch_id: str, ask_id: int) -> bytes:
    return b"ba|%b\0%b" % (batch_id.encode(), _U64.pack(ask_id))


def schedule(schedule_id: str) -> bytes:
    return b"sc|" + schedule_id.encode()


def bulk(bulk_id: str) -> bytes:
    return b"bk|" + bulk_id.encode()


def bulk_ended(bulk_id: str) -> bytes:
    return b"bd|" + bulk_id.encode()


def bulk_ids(bulk_id: str) -> bytes:
    return b"bi|" + bulk_id.encode()


def bulk_memo(bulk_id: str) -> bytes:
    return b"bm|" + bulk_id.encode()


def claims(queue: str) -> bytes:
    return b"l|%b\0" % queue.encode()


def claims_at(queue: str, moment: int) -> bytes:
    return claims(queue) + _U64.pack(moment)


def claims_parts(key: bytes) -> tuple[str, int]:
    name, _, _ = key[2:].partition(b"\0")
    moment: int = _U64.unpack_from(key, len(key) - 8)[0]
    return name.decode(), moment


def audit(seq: int) -> bytes:
    return b"au|" + _U64.pack(seq)


def pack_audit_kept(retention_ms: int, records_max: int) -> bytes:
    return _U64.pack(retention_ms) + _U64.pack(records_max)


def unpack_audit_kept(value: bytes) -> tuple[int, int]:
    retention_ms: int = _U64.unpack_from(value)[0]
    records_max: int = _U64.unpack_from(value, 8)[0]
    return retention_ms, records_max


def event(number: int) -> bytes:
    return b"ev|" + _U64.pack(number)


def event_number(key: bytes) -> int:
    number: int = _U64.unpack_from(key, 3)[0]
    return number


def outbox(target: int, number: int) -> bytes:
    return b"x|%c%b" % (target, _U64.pack(number))


def outbox_number(key: bytes) -> int:
    number: int = _U64.unpack_from(key, 3)[0]
    return number


def outbox_last(target: int) -> bytes:
    return b"xo|%c" % target


def inbox_last(source: int) -> bytes:
    return b"xi|%c" % source


def queue(name: str) -> bytes:
    return b"qn|" + name.encode()


def minute(queue: str, minute: int) -> bytes:
    return b"qm|%b\0%b" % (queue.encode(), _U32.pack(minute))


def minutes(queue: str) -> bytes:
    return b"qm|%b\0" % queue.encode()


def worker(worker_id: str) -> bytes:
    return b"w|" + worker_id.encode()


def node(node_id: str) -> bytes:
    return b"n|" + node_id.encode()


def node_name(key: bytes) -> str:
    return key[2:].decode()


def api_key(key_hash: str) -> bytes:
    return b"ak|" + key_hash.encode()


def role(name: str) -> bytes:
    return b"ar|" + name.encode()


def namespace(name: str) -> bytes:
    return b"an|" + name.encode()


def access_name(key: bytes) -> str:
    """The hash of an API key, the name of a role or of a namespace."""
    return key[3:].decode()


def log_entry(index: int) -> bytes:
    return b"r|" + _U64.pack(index)


def log_index(key: bytes) -> int:
    index: int = _U64.unpack_from(key, 2)[0]
    return index


def feed_record(index: int) -> bytes:
    return b"m|" + _U64.pack(index)


def state_ranges() -> list[tuple[bytes, bytes]]:
    """The ranges of replicated state as (start, stop), sorted. None of them contains the Raft log."""
    return sorted(
        (max(prefix, _LOG_END) if prefix == b"r|" else prefix, prefix_end(prefix)) for prefix in STATE_PREFIXES
    )


def after(key: bytes) -> bytes:
    """The smallest key greater than this one."""
    return key + b"\0"


def prefix_end(prefix: bytes) -> bytes:
    """The smallest key greater than every key with this prefix."""
    return prefix[:-1] + bytes([prefix[-1] + 1])
