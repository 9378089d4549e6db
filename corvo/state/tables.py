"""Typed access to the state of one shard.

Reads go through a cache of decoded records, then the overlay, then the map. Writes change the decoded record and
mark it; `seal` encodes each marked record once at the end of an entry, whatever number of operations touched it.
The bytes of a sealed entry are what LevelDB stores, what the state hash covers and what the mirror is sent.
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
from corvo.model.limits import ERRORS_KEPT_PER_JOB, RETENTION_MS_DEFAULT, UPKEEP_JOBS_PER_ENTRY
from corvo.state import keys, minutes
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
    """The marker that is written with the state it describes, in one batch: a replayed entry is never applied twice."""

    index: int = 0
    term: int = 0
    now: int = 0  # machine time: the greatest stamp of any applied entry
    position: int = 0  # last place given out in the pending order
    hash: bytes = b"\0" * 16


class Changes(msgspec.Struct):
    """What one entry altered, by key. None means deleted."""

    writes: dict[bytes, bytes | None]
    records: dict[bytes, bytes | None]  # those of `writes` that the mirror shows
    woken: set[str]  # queues that gained a pending job


UNDERWAY_MS = 50  # about what a move between shards takes
PURGE_ALARM = "z"  # followed by the entry's index, or a job; the value names the jobs
_PENDING = State.PENDING  # to look up an enum's member is a call, and every job comes this way
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
        self.ended: deque[tuple[Job, Outcome]] = deque()  # with bonds, in the operation under way
        self.tellings = 0  # in the entry under way: jobs that were told of the end of one that they wait for
        self._jobs: dict[str, Job] = {}
        self._jobs_bytes = 0
        self._queues: dict[str, Queue] = {}
        self._workers: dict[str, Worker] = {}
        self._records: dict[bytes, bytes | None] = {}
        self._touched_jobs: dict[str, Job] = {}
        self._touched_queues: dict[str, Queue] = {}
        self._woken: set[str] = set()
        self.retired: list[str] = []  # jobs that ended in this entry and are kept as long as usual
        self._retired: dict[int, list[str]] = {}  # moment of forgetting → those that are kept longer or shorter
        self.nodes: dict[str, str] = {}  # address by name
        self.default_retention_ms = RETENTION_MS_DEFAULT  # of ended jobs whose queue says nothing; 0: for ever
        self.unwritten_bytes = 0  # of all that was sealed since writes were taken
        self.has_forwarded = False  # whether any job has ever moved away: spares every new job a look
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
        if (raw := kv.get(keys.DEFAULT_RETENTION)) is not None:
            self.default_retention_ms = int.from_bytes(raw)
        self.has_forwarded = any(kv.scan(keys.FORWARDED, keys.prefix_end(keys.FORWARDED)))
        self.errands.recall(kv)
        self.event_log.recall(kv)
        self.throttles.recall(kv)
        self.schedules.recall(kv)

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
        """What to say of a job that is not here: unknown, gone to another shard, or on its way there."""
        raw = self.overlay.get(keys.forwarded(job_id))
        if raw is None:
            return Refusal("JOB_NOT_FOUND", f"no job has the id {job_id!r}")
        shard, number = keys.unpack_forwarding(raw)
        if self.errands.is_underway(shard, number):
            return Refusal(
                "SHARD_UNAVAILABLE",
                "the job is on its way to another queue; send the request again",
                retry_after_ms=UNDERWAY_MS,
                moved=Moved(shard, is_under_way=True),
            )
        return Refusal("JOB_MOVED", f"the job has moved to shard {shard}", moved=Moved(shard))

    def forward(self, job_id: str, shard: int) -> None:
        """The job leaves with the newest errand for this shard: leave a note where it went."""
        self.has_forwarded = True
        self.put(keys.forwarded(job_id), keys.pack_forwarding(shard, self.errands.given[shard]))

    def forwarded_to(self, job_id: str) -> int | None:
        """The shard that a job which was here has moved to."""
        raw = self.overlay.get(keys.forwarded(job_id))
        return None if raw is None else raw[0]

    def touch(self, job: Job) -> None:
        """The job was changed: store it when the entry is sealed."""
        self._touched_jobs[job.id] = job

    def touched_jobs(self) -> list[Job]:
        """Those that the entry under way has changed or made: the map does not hold them yet."""
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
        """A scan looks at everything that is not on disk yet: too dear where jobs go by the thousand, and most of them
        have few claims whose numbers are known."""
        if job.lease_token > ERRORS_KEPT_PER_JOB:
            prefix = keys.job_errors(job.id)
            return [key for key, _ in self.overlay.scan(prefix, keys.prefix_end(prefix))]
        numbered = (keys.job_error(job.id, claim) for claim in range(job.lease_token + 1))
        return [key for key in numbered if self.overlay.get(key) is not None]

    def retire(self, job: Job) -> None:
        """The job has ended: it is kept for a while. One alarm serves all jobs of an entry that are kept as long."""
        kept_ms = self.retention_ms(job)
        if kept_ms:
            self._retired.setdefault(self.applied.now + kept_ms * 1_000_000, []).append(job.id)

    def retention_ms(self, job: Job) -> int:
        """How long a job that has ended is kept; 0: for ever."""
        controls = self._queues[job.queue].controls
        own = -1 if controls is None else controls.retention_ms[_FINAL.index(job.state)]
        return self.default_retention_ms if own < 0 else own

    def set_default_retention(self, retention_ms: int) -> None:
        self.default_retention_ms = retention_ms
        self.put(keys.DEFAULT_RETENTION, keys.pack_u64(retention_ms))

    def queue(self, name: str) -> Queue:
        """The queue, made on first use. It is about to change: stored when the entry is sealed."""
        queue = self._touched_queues.get(name)
        if queue is None:
            queue = self._queues.get(name)
            if queue is None:
                queue = self._queues[name] = new_queue(name, self.applied.now)
            if queue.began[0] != self.applied.now // MINUTE_NS:
                self._turn_minute(queue)
            self._touched_queues[name] = queue
        return queue

    def find_queue(self, name: str) -> Queue | None:
        return self._queues.get(name)

    def drop_queue(self, name: str) -> None:
        self._queues.pop(name, None)
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
        """Those before this key; a queue has no more than a day of them."""
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
        """An empty address forgets the node."""
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
        """Also asked at each claim of a job with many: not every claim ends with an error that pushes another out."""
        self.put_record(keys.job_error(job_id, claim), None)

    def add_note(self, job: Job, reason: str) -> None:
        """Why a job ended that no attempt has ended. It gets a number of its own: under that of the newest claim may
        stand a failure already."""
        job.lease_token += 1
        note = JobError(job.id, job.lease_token, job.attempt, reason, "", self.applied.now, queue=job.queue)
        self.add_error(note)

    def errors(self, job_id: str) -> list[JobError]:
        prefix = keys.job_errors(job_id)
        return [decode_job_error(value) for _, value in self.overlay.scan(prefix, keys.prefix_end(prefix))]

    def errors_of(self, job: Job) -> list[JobError]:
        """The same, for jobs that go by the hundred."""
        raws = (self.overlay.get(key) for key in self._error_keys(job))
        return [decode_job_error(raw) for raw in raws if raw is not None]

    def warm(self, name: str, limit: int, at_once: int) -> bool:
        """Bring the next jobs of a queue into the cache, before they are asked for, at most so many at once; whether
        all of them are there. Changes no answer."""
        queue = self._queues.get(name)
        if queue is None:
            return True
        cold = [job_id for job_id in self.pending.upcoming(queue, limit) if job_id not in self._jobs]
        wanted = {keys.job(job_id) for job_id in cold[:at_once]}
        if wanted:
            # Jobs that wait behind each other mostly lie beside each other: one walk costs a quarter of so many looks.
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
        """Of a family that the mirror shows."""
        self._records[key] = value
        self.put(key, value)

    def next_position(self) -> int:
        """Strictly increasing, and never behind the clock: the order of filing, readable as a moment."""
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
            for first in range(0, len(job_ids), UPKEEP_JOBS_PER_ENTRY):  # no alarm for more than one entry can settle
                part = f".{first}" if first else ""
                some = job_ids[first : first + UPKEEP_JOBS_PER_ENTRY]
                self.alarms.add(at, f"{PURGE_ALARM}{self.applied.index:016x}{part}", encode(some))
        self._retired = {}
        self.event_log.seal(self.applied.now)
        self.overlay.puts.update(records)
        writes = self.overlay.seal()
        if writes:
            # Encoded before it is hashed, because msgpack puts a length before each part: no two different sets of
            # writes are the same bytes. Their order is that of writing, which is the same on every replica.
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
        """Everything sealed since the last call, with the marker. The caller stores it before it reads again."""
        writes = self.overlay.take_changes()
        self.unwritten_bytes = 0
        writes[keys.APPLIED] = encode(self.applied)
        return writes

    # The cache of decoded jobs

    def _keep(self, job: Job) -> None:
        self._jobs[job.id] = job
        self._jobs_bytes += len(job.payload) if job.extras is None else _size(job)

    def _shrink(self) -> None:
        """Drop the older half: insertion order is age, and what is hot comes back at its next use."""
        kept = list(self._jobs.items())[len(self._jobs) // 2 :]
        self._jobs = dict(kept)
        self._jobs_bytes = sum(map(_size, self._jobs.values()))


def _size(job: Job) -> int:
    return len(job.payload) if job.extras is None else len(job.payload) + bytes_of(job.extras)
