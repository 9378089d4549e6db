"""Typed access to the state of one shard.

Reads go through a cache of decoded records, then the overlay, then the map. Writes change the decoded record and
mark it; `seal` encodes each marked record once at the end of an entry, whatever number of operations touched it.
The bytes of a sealed entry are what LevelDB stores, what the state hash covers and what the mirror is sent.
"""

from hashlib import blake2b

import msgspec

from corvo.errors import Corrupt, Refusal
from corvo.job import (
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
from corvo.limits import ERRORS_KEPT_PER_JOB
from corvo.state import keys
from corvo.state.due import DueOrder
from corvo.state.kv import KV, Overlay
from corvo.state.leases import Leases
from corvo.state.pending import PendingOrder

JOBS_CACHED = 20_000  # about 20 MB with small payloads
JOBS_CACHED_BYTES = 64 * 1024 * 1024  # and never more payload than this
WORKERS_CACHED = 10_000


class Applied(msgspec.Struct, array_like=True):
    """The marker that is written with the state it describes, in one batch: a replayed entry is never applied twice."""

    index: int = 0
    term: int = 0
    now: int = 0  # machine time: the greatest stamp of any applied entry
    position: int = 0  # last place given out in the pending order
    hash: bytes = b"\0" * 16


class Changes(msgspec.Struct):
    """What one entry altered, by key. None means deleted."""

    writes: dict[bytes, bytes | None]
    records: dict[bytes, bytes | None]  # those of `writes` that the mirror shows: jobs, errors, queues, workers
    woken: set[str]  # queues that gained a pending job


decode_applied = msgspec.msgpack.Decoder(Applied).decode


class Tables:
    def __init__(self, kv: KV) -> None:
        self.overlay = Overlay(kv)
        raw = kv.get(keys.APPLIED)
        self.applied = decode_applied(raw) if raw is not None else Applied()
        self.pending = PendingOrder(self.overlay)
        self.leases = Leases()
        self.due = DueOrder(self.overlay)
        self._jobs: dict[str, Job] = {}
        self._jobs_bytes = 0
        self._queues: dict[str, Queue] = {}
        self._workers: dict[str, Worker] = {}
        self._records: dict[bytes, bytes | None] = {}
        self._touched_jobs: dict[str, Job] = {}
        self._touched_queues: dict[str, Queue] = {}
        self._woken: set[str] = set()
        self.nodes: dict[str, str] = {}  # address by name
        self._recall(kv)

    def _recall(self, kv: KV) -> None:
        """What is kept whole in memory is read back: queues and live leases. Both grow with use, not with backlog."""
        for _, value in kv.scan(keys.QUEUES, keys.prefix_end(keys.QUEUES)):
            queue = decode_queue(value)
            self._queues[queue.name] = queue
        for key, value in kv.scan(keys.ACTIVE, keys.prefix_end(keys.ACTIVE)):
            ends_at, claim_id = keys.unpack_lease(value)
            self.leases.add(keys.active_job_id(key), ends_at, claim_id)
        for key, value in kv.scan(keys.NODES, keys.prefix_end(keys.NODES)):
            self.nodes[keys.node_name(key)] = value.decode()

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
            raise Refusal("JOB_NOT_FOUND", f"no job has the id {job_id!r}")
        return job

    def touch(self, job: Job) -> None:
        """The job was changed: store it when the entry is sealed."""
        self._touched_jobs[job.id] = job

    def add_job(self, job: Job) -> None:
        self._keep(job)
        self._touched_jobs[job.id] = job

    def queue(self, name: str) -> Queue:
        """The queue, made on first use."""
        queue = self._queues.get(name)
        if queue is None:
            queue = self._queues[name] = new_queue(name, self.applied.now)
        self._touched_queues[name] = queue
        return queue

    def find_queue(self, name: str) -> Queue | None:
        return self._queues.get(name)

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
        self._put_record(keys.worker(worker.id), encode(worker))

    def name_node(self, node_id: str, address: str) -> None:
        """An empty address forgets the node."""
        if address:
            self.nodes[node_id] = address
        else:
            self.nodes.pop(node_id, None)
        self.put(keys.node(node_id), address.encode() or None)

    def add_error(self, error: JobError) -> None:
        self._put_record(keys.job_error(error.job_id, error.claim), encode(error))
        if error.claim > ERRORS_KEPT_PER_JOB:
            self._put_record(keys.job_error(error.job_id, error.claim - ERRORS_KEPT_PER_JOB), None)

    def errors(self, job_id: str) -> list[JobError]:
        prefix = keys.job_errors(job_id)
        return [decode_job_error(value) for _, value in self.overlay.scan(prefix, keys.prefix_end(prefix))]

    def warm(self, queue: str, limit: int) -> None:
        """Bring the next jobs of a queue into the cache, before they are asked for. Changes no answer."""
        for job_id in self.pending.upcoming(queue, limit):
            self.find_job(job_id)

    # Index keys

    def put(self, key: bytes, value: bytes | None) -> None:
        self.overlay.puts[key] = value

    def _put_record(self, key: bytes, value: bytes | None) -> None:
        self._records[key] = value
        self.put(key, value)

    def next_position(self) -> int:
        """Strictly increasing, and never behind the clock: the order of filing, readable as a moment."""
        applied = self.applied
        applied.position = position = max(applied.now, applied.position + 1)
        return position

    def wake(self, queue: str) -> None:
        self._woken.add(queue)

    def has_pending(self, queue: str) -> bool:
        known = self._queues.get(queue)
        return known is not None and known.counts[0] > 0

    # The entry

    def begin(self, index: int, term: int, now: int) -> None:
        applied = self.applied
        if index <= applied.index:
            raise Corrupt(f"entry {index} was applied already: the state is at {applied.index}")
        applied.index, applied.term, applied.now = index, term, max(now, applied.now)

    def seal(self) -> Changes:
        """Encode what the entry changed, extend the state hash, and hand it out."""
        records = self._records
        for job_id, job in self._touched_jobs.items():
            records[keys.job(job_id)] = encode(job)
        for name, queue in self._touched_queues.items():
            records[keys.queue(name)] = encode(queue)
        self.overlay.puts.update(records)
        writes = self.overlay.seal()
        if writes:
            self.applied.hash = _chain(self.applied.hash, writes)
        changes = Changes(writes, records, self._woken)
        self._records = {}
        self._touched_jobs = {}
        self._touched_queues = {}
        self._woken = set()
        if len(self._jobs) > JOBS_CACHED or self._jobs_bytes > JOBS_CACHED_BYTES:
            self._shrink()
        return changes

    def take_writes(self) -> dict[bytes, bytes | None]:
        """Everything sealed since the last call, with the marker. The caller stores it before it reads again."""
        writes = self.overlay.changes
        self.overlay.changes = {}
        writes[keys.APPLIED] = encode(self.applied)
        return writes

    # The cache of decoded jobs

    def _keep(self, job: Job) -> None:
        self._jobs[job.id] = job
        self._jobs_bytes += len(job.payload)

    def _shrink(self) -> None:
        """Drop the older half: insertion order is age, and what is hot comes back at its next use."""
        kept = list(self._jobs.items())[len(self._jobs) // 2 :]
        self._jobs = dict(kept)
        self._jobs_bytes = sum(len(job.payload) for job in self._jobs.values())


def _chain(previous: bytes, writes: dict[bytes, bytes | None]) -> bytes:
    """Covers keys and values in the order of writing, which is the same on every replica. Encoded first, because
    msgpack puts a length before each part: no two different sets of writes are the same bytes."""
    return blake2b(encode(writes), key=previous, digest_size=16).digest()
