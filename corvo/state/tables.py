"""Typed access to the state of one shard.

Reads go through a cache of decoded records, then the overlay, then the map. Writes change the decoded record and mark
it; `seal` encodes each marked record once at the end of an entry, no matter how many operations touched it. LevelDB
stores the bytes of a sealed entry, the state hash covers them, and the mirror receives them.
"""

from collections import deque
from hashlib import blake2b
from itertools import islice

import msgspec

from corvo.model.errors import Corrupt, Moved, Refusal
from corvo.model.job import (
    Job,
    JobError,
    Queue,
    Worker,
    decode_job,
    decode_job_error,
    decode_queue,
    decode_worker,
    encode,
    new_queue,
)
from corvo.model.job_extras import Outcome, bytes_of
from corvo.model.lifecycle import State
from corvo.model.limits import (
    ERRORS_KEPT_PER_JOB,
    RETENTION_MS_DEFAULT,
    UPKEEP_JOBS_PER_ENTRY,
    WORKER_TIMEOUT_MS_DEFAULT,
)
from corvo.model.namespaces import namespace_of
from corvo.state import keys, minutes
from corvo.state.access import AccessTable
from corvo.state.audit_log import AuditLog
from corvo.state.claim_limits import Throttles, room
from corvo.state.due import DueOrder
from corvo.state.event_log import EventLog
from corvo.state.kv import KV, Overlay
from corvo.state.leases import Leases
from corvo.state.minutes import MINUTE_NS, MINUTES_ALARM
from corvo.state.outbox import Outbox
from corvo.state.pending import PendingOrder
from corvo.state.schedules import Schedules

JOBS_CACHED = 20_000  # about 20 MB with small payloads
JOBS_CACHED_BYTES = 64 * 1024 * 1024  # and never more payload than this
WORKERS_CACHED = 10_000


class Applied(msgspec.Struct, array_like=True):
    """Marker of the last applied entry, written in one batch with the state: no entry is applied twice after a
    crash."""

    index: int = 0
    term: int = 0
    now: int = 0  # time of the state: the greatest timestamp of any applied entry
    position: int = 0  # last position given in the pending order
    hash: bytes = b"\0" * 16


class Changes(msgspec.Struct):
    """The changes of one entry, by key. None means deleted."""

    writes: dict[bytes, bytes | None]
    records: dict[bytes, bytes | None]  # those of `writes` that the mirror shows
    woken: set[str]  # queues that gained a pending job


UNDERWAY_MS = 50  # about how long a move between shards takes
PURGE_ALARM = "z"  # followed by the entry's index, or a job id; the value lists the jobs
_PENDING = State.PENDING  # a member lookup on an enum is a call, and this is a hot path
_FINAL = (State.COMPLETED, State.DEAD, State.CANCELLED)  # in the order of `Controls.retention_ms`
decode_applied = msgspec.msgpack.Decoder(Applied).decode


class Tables:
    def __init__(self, kv: KV, shard: int = 0, shard_count: int = 1) -> None:
        self.overlay = Overlay(kv)
        raw = kv.get(keys.APPLIED)
        self.applied = decode_applied(raw) if raw is not None else Applied()
        self.pending = PendingOrder(self.overlay)
        self.leases = Leases()
        self.due = DueOrder(self.overlay, keys.DUE)
        self.alarms = DueOrder(self.overlay, keys.ALARMS)
        self.errands = Outbox(self.overlay, shard, shard_count)
        self.event_log = EventLog(self.overlay)
        self.throttles = Throttles(self.put_record)
        self.schedules = Schedules()
        self.access = AccessTable(self.put_record, self.put)
        self.audit_log = AuditLog(self.overlay, self.put_record, self.alarms)
        self.ended: deque[tuple[Job, Outcome]] = deque()  # jobs with extras whose cascades have not run yet
        self.tellings = 0  # dependents that were told of an end in the current entry
        self._jobs: dict[str, Job] = {}
        self._jobs_bytes = 0
        self._queues: dict[str, Queue] = {}
        self._queues_of: dict[str, dict[str, Queue]] = {}  # by namespace
        self._workers: dict[str, Worker] = {}
        self._records: dict[bytes, bytes | None] = {}
        self._touched_jobs: dict[str, Job] = {}
        self._touched_queues: dict[str, Queue] = {}
        self._woken: set[str] = set()
        self.retired: list[str] = []  # jobs that ended in this entry and have the default retention
        self._retired: dict[int, list[str]] = {}  # time of removal → jobs that ended with another retention
        self.nodes: dict[str, str] = {}  # address by name
        self.default_retention_ms = RETENTION_MS_DEFAULT  # of ended jobs whose queue says nothing; 0: for ever
        self.worker_timeout_ms = WORKER_TIMEOUT_MS_DEFAULT
        self.unwritten_bytes = 0  # sealed since the last `take_writes`
        self.has_forwarded = False  # whether any job ever moved away: saves a read for every new job
        self._recall(kv)

    def _recall(self, kv: KV) -> None:
        """Read what is kept in memory: queues, leases, nodes. Their number does not grow with the backlog."""
        for _, value in kv.scan(keys.QUEUES, keys.prefix_end(keys.QUEUES)):
            queue = decode_queue(value)
            self._keep_queue(queue)
        for key, value in kv.scan(keys.ACTIVE, keys.prefix_end(keys.ACTIVE)):
            ends_at, claim_id = keys.unpack_lease(value)
            self.leases.add(keys.active_job_id(key), ends_at, claim_id)
        for key, value in kv.scan(keys.NODES, keys.prefix_end(keys.NODES)):
            self.nodes[keys.node_name(key)] = value.decode()
        if (raw := kv.get(keys.DEFAULT_RETENTION)) is not None:
            self.default_retention_ms = int.from_bytes(raw)
        if (raw := kv.get(keys.WORKER_TIMEOUT)) is not None:
            self.worker_timeout_ms = int.from_bytes(raw)
        self.has_forwarded = any(kv.scan(keys.FORWARDED, keys.prefix_end(keys.FORWARDED)))
        self.errands.recall(kv)
        self.event_log.recall(kv)
        self.throttles.recall(kv)
        self.schedules.recall(kv)
        self.access.recall(kv)
        self.audit_log.recall(kv)

    @property
    def now(self) -> int:
        return self.applied.now

    # Records

    def find_job(self, job_id: str) -> Job | None:
        job = self._jobs.get(job_id)
        if job is None:
            raw = self.overlay.get(keys.job(job_id))
            if raw is None:
                return None
            job = decode_job(raw)
            self._keep(job)
        return job

    def require_job(self, job_id: str) -> Job:
        job = self.find_job(job_id)
        if job is None:
            raise self.missing(job_id)
        return job

    def missing(self, job_id: str) -> Refusal:
        """The refusal for a job that is not here: unknown, on another shard, or under way to it."""
        raw = self.overlay.get(keys.forwarded(job_id))
        if raw is None:
            return Refusal("JOB_NOT_FOUND", f"no job has the id {job_id!r}")
        shard, number = keys.unpack_forwarding(raw)
        if self.errands.is_underway(shard, number):
            return Refusal(
                "SHARD_UNAVAILABLE",
                "the job is being moved to another queue; send the request again",
                retry_after_ms=UNDERWAY_MS,
                moved=Moved(shard, is_under_way=True),
            )
        return Refusal("JOB_MOVED", f"the job has moved to shard {shard}", moved=Moved(shard))

    def forward(self, job_id: str, shard: int) -> None:
        """Record that the job moved to this shard with the newest errand for it."""
        self.has_forwarded = True
        self.put(keys.forwarded(job_id), keys.pack_forwarding(shard, self.errands.given[shard]))

    def forwarded_to(self, job_id: str) -> int | None:
        """The shard that the job has moved to; None when it did not move."""
        raw = self.overlay.get(keys.forwarded(job_id))
        return None if raw is None else raw[0]

    def touch(self, job: Job) -> None:
        """The job was changed: store it when the entry is sealed."""
        self._touched_jobs[job.id] = job

    def touched_jobs(self) -> list[Job]:
        """Jobs that the current entry has changed or created: the map does not hold them yet."""
        return list(self._touched_jobs.values())

    def add_job(self, job: Job) -> None:
        self._keep(job)
        self._touched_jobs[job.id] = job

    def drop_job(self, job: Job) -> None:
        self._jobs.pop(job.id, None)
        self._touched_jobs.pop(job.id, None)
        self.put_record(keys.job(job.id), None)
        for key in self._error_keys(job):
            self.put_record(key, None)

    def _error_keys(self, job: Job) -> list[bytes]:
        """A scan sorts everything that is not on disk yet, too slow for thousands of jobs. Most jobs have few claims,
        so their keys are looked up one by one."""
        if job.lease_token > ERRORS_KEPT_PER_JOB:
            prefix = keys.job_errors(job.id)
            return [key for key, _ in self.overlay.scan(prefix, keys.prefix_end(prefix))]
        numbered = (keys.job_error(job.id, claim) for claim in range(job.lease_token + 1))
        return [key for key in numbered if self.overlay.get(key) is not None]

    def retire(self, job: Job) -> None:
        """Plan the removal of a job that has ended. One alarm serves all jobs of an entry with the same retention."""
        kept_ms = self.retention_ms(job)
        if kept_ms:
            self._retired.setdefault(self.applied.now + kept_ms * 1_000_000, []).append(job.id)

    def retention_ms(self, job: Job) -> int:
        """How long a job that has ended is kept; 0 means for ever."""
        controls = self._queues[job.queue].controls
        own = -1 if controls is None else controls.retention_ms[_FINAL.index(job.state)]
        return self.default_retention_ms if own < 0 else own

    def set_default_retention(self, retention_ms: int) -> None:
        self.default_retention_ms = retention_ms
        self.put(keys.DEFAULT_RETENTION, keys.pack_u64(retention_ms))

    def set_worker_timeout(self, timeout_ms: int) -> None:
        self.worker_timeout_ms = timeout_ms
        self.put(keys.WORKER_TIMEOUT, keys.pack_u64(timeout_ms))

    def queue(self, name: str) -> Queue:
        """The queue, created on first use, for a change: it is stored when the entry is sealed."""
        queue = self._touched_queues.get(name)
        if queue is None:
            queue = self._queues.get(name)
            if queue is None:
                queue = new_queue(name, self.applied.now)
                self._keep_queue(queue)
            if queue.began[0] != self.applied.now // MINUTE_NS:
                self._turn_minute(queue)
            self._touched_queues[name] = queue
        return queue

    def _keep_queue(self, queue: Queue) -> None:
        self._queues[queue.name] = queue
        self._queues_of.setdefault(namespace_of(queue.name), {})[queue.name] = queue

    def queues_of(self, namespace: str) -> list[Queue]:
        return list(self._queues_of.get(namespace, {}).values())

    def find_queue(self, name: str) -> Queue | None:
        return self._queues.get(name)

    def drop_queue(self, name: str) -> None:
        self._queues.pop(name, None)
        self._queues_of.get(namespace_of(name), {}).pop(name, None)
        self._touched_queues.pop(name, None)
        self.pending.forget()
        self.throttles.drop(name)
        self.forget_minutes(name, keys.prefix_end(keys.minutes(name)))
        self.put_record(keys.queue(name), None)

    def _turn_minute(self, queue: Queue) -> None:
        over = minutes.turn(queue, self.applied.now // MINUTE_NS)
        if over is not None:
            self.put_record(keys.minute(queue.name, over.minute), encode(over))
            self.alarms.add(minutes.forget_at(over.minute), MINUTES_ALARM + queue.name)

    def forget_minutes(self, queue: str, stop: bytes) -> int:
        """Remove the minutes before this key. A queue has at most a day of them."""
        old = [key for key, _ in self.overlay.scan(keys.minutes(queue), stop)]
        for key in old:
            self.put_record(key, None)
        return len(old)

    def queues(self) -> list[Queue]:
        return list(self._queues.values())

    def find_worker(self, worker_id: str) -> Worker | None:
        worker = self._workers.get(worker_id)
        if worker is None:
            raw = self.overlay.get(keys.worker(worker_id))
            if raw is None:
                return None
            if len(self._workers) >= WORKERS_CACHED:
                self._workers.clear()
            worker = self._workers[worker_id] = decode_worker(raw)
        return worker

    def put_worker(self, worker: Worker) -> None:
        if len(self._workers) >= WORKERS_CACHED:
            self._workers.clear()
        self._workers[worker.id] = worker
        self.put_record(keys.worker(worker.id), encode(worker))

    def drop_worker(self, worker_id: str) -> None:
        self._workers.pop(worker_id, None)
        self.put_record(keys.worker(worker_id), None)

    def name_node(self, node_id: str, address: str) -> None:
        """Store a node's address. An empty address removes the node."""
        if address:
            self.nodes[node_id] = address
        else:
            self.nodes.pop(node_id, None)
        self.put(keys.node(node_id), address.encode() or None)

    def add_error(self, error: JobError) -> None:
        self.put_record(keys.job_error(error.job_id, error.claim), encode(error))
        if error.claim > ERRORS_KEPT_PER_JOB:
            self.forget_error(error.job_id, error.claim - ERRORS_KEPT_PER_JOB)

    def forget_error(self, job_id: str, claim: int) -> None:
        """Also called at each claim of a job with many claims: not every claim adds an error that replaces an old
        one."""
        self.put_record(keys.job_error(job_id, claim), None)

    def add_note(self, job: Job, reason: str) -> None:
        """Record why a job ended without an attempt. It gets a number of its own, because the newest claim may already
        have an error."""
        job.lease_token += 1
        note = JobError(job.id, job.lease_token, job.attempt, reason, "", self.applied.now, queue=job.queue)
        self.add_error(note)

    def errors(self, job_id: str) -> list[JobError]:
        prefix = keys.job_errors(job_id)
        return [decode_job_error(value) for _, value in self.overlay.scan(prefix, keys.prefix_end(prefix))]

    def errors_of(self, job: Job) -> list[JobError]:
        """The same without a scan, for hundreds of jobs at a time."""
        raws = (self.overlay.get(key) for key in self._error_keys(job))
        return [decode_job_error(raw) for raw in raws if raw is not None]

    def warm(self, name: str, limit: int, at_once: int) -> bool:
        """Read the next jobs of a queue into the cache, at most `at_once`. Returns whether all of them are cached.
        Changes no answer."""
        queue = self._queues.get(name)
        if queue is None:
            return True
        cold = [job_id for job_id in self.pending.upcoming(queue, limit) if job_id not in self._jobs]
        wanted = {keys.job(job_id) for job_id in cold[:at_once]}
        if wanted:
            # Jobs that follow each other in the queue mostly have neighbouring keys: one scan costs a quarter of the
            # single reads.
            between = self.overlay.scan(min(wanted), max(wanted) + b"\0")
            for key, raw in islice(between, 2 * at_once):
                if key in wanted:
                    self._keep(decode_job(raw))
            for job_id in cold[:at_once]:
                self.find_job(job_id)
        return len(cold) <= at_once

    # Index keys

    def put(self, key: bytes, value: bytes | None) -> None:
        self.overlay.puts[key] = value

    def put_record(self, key: bytes, value: bytes | None) -> None:
        """Put a key of a family that the mirror needs."""
        self._records[key] = value
        self.put(key, value)

    def next_position(self) -> int:
        """The next position in the pending order: strictly increasing, and never behind the clock."""
        applied = self.applied
        applied.position = position = max(applied.now, applied.position + 1)
        return position

    def wake(self, queue: str) -> None:
        self._woken.add(queue)

    def claimable(self, queue: str) -> int:
        """How many jobs of the queue may be claimed now."""
        known = self._queues.get(queue)
        if known is None or not known.counts[_PENDING]:
            return 0
        if known.controls is None:
            return known.counts[_PENDING]
        return min(known.counts[_PENDING], room(known, self.throttles, self.applied.now))

    def has_pending(self, queue: str) -> bool:
        return self.claimable(queue) > 0

    # The entry

    def begin(self, index: int, term: int, now: int) -> None:
        applied = self.applied
        if index <= applied.index:
            raise Corrupt(f"entry {index} was applied already: the state is at {applied.index}")
        applied.index, applied.term, applied.now = index, term, max(now, applied.now)
        self.tellings = 0

    def seal(self) -> Changes:
        """Encode what the entry changed, extend the state hash, and hand it out."""
        if self.ended or self.errands.here:
            raise Corrupt(f"entry {self.applied.index} is sealed before its cascades have run (corvo/engine.py)")
        records = self._records
        for job_id, job in self._touched_jobs.items():
            records[keys.job(job_id)] = encode(job)
        for name, queue in self._touched_queues.items():
            records[keys.queue(name)] = encode(queue)
        if self.retired:
            if self.default_retention_ms:
                forget_at = self.applied.now + self.default_retention_ms * 1_000_000
                self._retired.setdefault(forget_at, []).extend(self.retired)
            self.retired = []
        for at, job_ids in self._retired.items():
            for first in range(0, len(job_ids), UPKEEP_JOBS_PER_ENTRY):  # an entry handles no more than this
                part = f".{first}" if first else ""
                some = job_ids[first : first + UPKEEP_JOBS_PER_ENTRY]
                self.alarms.add(at, f"{PURGE_ALARM}{self.applied.index:016x}{part}", encode(some))
        self._retired = {}
        self.event_log.seal(self.applied.now)
        self.overlay.puts.update(records)
        writes = self.overlay.seal()
        if writes:
            # Encoded before it is hashed: msgpack puts a length before each part, so different writes never give the
            # same bytes. The order of writes is the same on every replica.
            encoded = encode(writes)
            self.applied.hash = blake2b(encoded, key=self.applied.hash, digest_size=16).digest()
            self.unwritten_bytes += len(encoded)
        changes = Changes(writes, records, self._woken)
        self._records = {}
        self._touched_jobs = {}
        self._touched_queues = {}
        self._woken = set()
        if len(self._jobs) > JOBS_CACHED or self._jobs_bytes > JOBS_CACHED_BYTES:
            self._shrink()
        return changes

    def take_writes(self) -> dict[bytes, bytes | None]:
        """Everything sealed since the last call, with the marker. The caller stores it before the next read."""
        writes = self.overlay.take_changes()
        self.unwritten_bytes = 0
        writes[keys.APPLIED] = encode(self.applied)
        return writes

    # The cache of decoded jobs

    def _keep(self, job: Job) -> None:
        self._jobs[job.id] = job
        self._jobs_bytes += len(job.payload) if job.extras is None else _size(job)

    def _shrink(self) -> None:
        """Drop the older half, by insertion. A job that is still in use is cached again at its next use."""
        kept = list(self._jobs.items())[len(self._jobs) // 2 :]
        self._jobs = dict(kept)
        self._jobs_bytes = sum(map(_size, self._jobs.values()))


def _size(job: Job) -> int:
    return len(job.payload) if job.extras is None else len(job.payload) + bytes_of(job.extras)
