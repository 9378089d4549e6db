"""The whole world of jobs written again in the plainest way: dictionaries, lists, and a loop for every question.

It knows several shards, and that what one asks of another is a letter which arrives later, in order, once. It shares no
rule with `corvo`: states are words, documents are Python objects, the next job is found by sorting, and whoever has a
lease, a lock or a place in a queue is found by looking at all. Where the two disagree, one of them is wrong, and it is
not always this one. Given from outside: where a queue lives, and the names of jobs that nobody asked for by name.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MS = 1_000_000
DAY_MS = 24 * 3_600_000
KEPT_MS = 7 * DAY_MS  # jobs and batches that have ended, unless the queue says otherwise
UNIQUE_MS = 3_600_000
PRIORITIES = ["critical", "high", "normal"]
ENDED = ("completed", "dead", "cancelled")


class No(Exception):
    """A refusal, by its code."""


@dataclass
class Step:
    queue: str
    payload: Any = field(default_factory=dict)


@dataclass
class Chain:
    id: str
    steps: list[Step]
    on_failure: Step | None = None
    on_exit: Step | None = None


@dataclass
class New:
    """A job as it is asked for."""

    id: str
    queue: str
    payload: Any = field(default_factory=dict)
    priority: str = "normal"
    max_retries: int = 3
    backoff: str = "exponential"
    base_ms: int = 5_000
    cap_ms: int = 600_000
    scheduled_at: int = 0
    parent: str = ""
    unique_key: str = ""
    unique_ms: int = 0
    unique_until: str = "done"
    idempotency_key: str = ""
    expire_ms: int = 0
    batch: str = ""
    chain: Chain | None = None
    step: int = 0
    waits_for: list[str] = field(default_factory=list)
    if_lost: str = "fail"


@dataclass
class Life:
    """A job and what has become of it."""

    new: New
    queue: str
    priority: str
    shard: int | None  # None: on its way to another one
    created: int
    state: str = ""
    due: int | None = 0  # None: when those that it waits for have ended
    filed: int = 0  # the how-manyth filing of all
    attempt: int = 0
    token: int = 0
    claim: int = 0
    lease_end: int = 0
    lease_ms: int = 0
    worker: str = ""
    ended_at: int = 0
    expire_at: int = 0
    cancel_at: int = 0
    begun: bool = False  # False: its worker has claimed it, and will say later that it has begun
    progress: Any = None
    result: Any = None  # None: none was given
    errors: list[tuple[str, int]] = field(default_factory=list)
    waits_for: list[str] = field(default_factory=list)
    exits: bool = False
    was_at: list[int] = field(default_factory=list)  # shards that know where it went
    told: bool = False  # its batch and its chain know of its end

    @property
    def id(self) -> str:
        return self.new.id

    @property
    def left(self) -> int:
        return max(max(self.new.max_retries, 1) - self.attempt, 0)

    def delay_ms(self) -> int:
        base, attempt = self.new.base_ms, self.attempt
        delay = {"none": 0, "fixed": base, "linear": base * attempt, "exponential": base * 2 ** (attempt - 1)}
        return min(delay[self.new.backoff], self.new.cap_ms)


@dataclass
class Line:
    """A queue."""

    paused: bool = False
    draining: bool = False
    concurrency: int = 0
    rate: int = 0
    window_ms: int = 0
    kept_ms: tuple[int, int, int] = (-1, -1, -1)  # completed, dead, cancelled
    claims: list[int] = field(default_factory=list)  # moments, while there is a rate
    enqueued: int = 0
    completed: int = 0
    failed: int = 0


@dataclass
class Bunch:
    """A batch."""

    shard: int
    steps: dict[str, Step]  # on_complete, on_success, on_failure
    total: int = 0
    sealed: bool = False
    ended: Counter[str] = field(default_factory=Counter)
    finished: int = 0


class World:
    def __init__(self, shard_count: int, shard_of: Callable[[str], int], name: Callable[..., str], now: int) -> None:
        self.shard_count = shard_count
        self.shard_of = shard_of
        self.name = name  # (shard, what the job follows from …)
        self.now = now
        self.jobs: dict[str, Life] = {}
        self.lines: dict[str, Line] = {}
        self.batches: dict[str, Bunch] = {}
        self.locks: dict[tuple[str, str], tuple[str, int]] = {}  # (queue, unique key) → job, until
        self.keys: dict[tuple[str, str], str] = {}  # (queue, idempotency key) → job
        self.watchers: dict[str, set[str]] = {}  # job → those that wait for it
        self.notes: dict[tuple[int, str], tuple[int, int]] = {}  # (shard, job) → where it went, with which letter
        self.letters: dict[tuple[int, int], list[tuple[Any, ...]]] = {}  # (from, to) → not yet done
        self.sent: Counter[tuple[int, int]] = Counter()
        self.confirmed: Counter[tuple[int, int]] = Counter()
        self.events: Counter[tuple[int, str, str, str]] = Counter()  # shard, what, job, queue
        self.purges: list[tuple[int, str, int, str]] = []  # moment, name of the alarm, shard, job
        self.filings = 0
        self._ends: list[tuple[Life, str, int]] = []

    # Looking

    def on(self, shard: int) -> list[Life]:
        return [job for job in self.jobs.values() if job.shard == shard]

    def pending(self, queue: str) -> list[Life]:
        inside = [
            job for job in self.jobs.values() if (job.queue, job.state) == (queue, "pending") and job.shard is not None
        ]
        return sorted(inside, key=lambda job: (PRIORITIES.index(job.priority), job.filed))

    def active(self, queue: str) -> int:
        return sum(job.queue == queue and job.state == "active" for job in self.jobs.values())

    def waiting_for_date(self, shard: int, *states: str) -> list[Life]:
        inside = [job for job in self.on(shard) if job.state in states]
        return sorted(inside, key=lambda job: (job.due if job.due is not None else 2**63, job.id))

    def _here(self, shard: int, job_id: str) -> Life:
        job = self.jobs.get(job_id)
        if job is not None and job.shard == shard:
            return job
        note = self.notes.get((shard, job_id))
        if note is None:
            raise No("JOB_NOT_FOUND")
        raise No("SHARD_UNAVAILABLE" if note[1] > self.confirmed[shard, note[0]] else "JOB_MOVED")

    def _line(self, queue: str) -> Line:
        return self.lines.setdefault(queue, Line())

    def _require(self, queue: str) -> Line:
        if queue not in self.lines:
            raise No("QUEUE_NOT_FOUND")
        return self.lines[queue]

    def _tell(self, shard: int, what: str, job: str = "", queue: str = "") -> None:
        self.events[shard, what, job, queue] += 1

    def _send(self, source: int, target: int, *letter: Any) -> None:
        if source != target:
            self.sent[source, target] += 1
        self.letters.setdefault((source, target), []).append(letter)

    # Asking: every answer is a plain value, every refusal its code

    def ask(self, shard: int, what: str, *details: Any, **more: Any) -> Any:
        try:
            answer = getattr(self, f"_{what}")(shard, *details, **more)
        except No as refusal:
            return str(refusal)
        self._settle(shard)
        return answer

    def _settle(self, shard: int) -> None:
        """All that follows on this shard: first what ends mean, then what it has asked of itself."""
        own = self.letters.setdefault((shard, shard), [])
        while self._ends or own:
            if self._ends:
                self._end(*self._ends.pop(0))
            else:
                self._do(shard, *own.pop(0))

    # Birth

    def _enqueue(self, shard: int, *jobs: New) -> list[Any]:
        return [self._make(shard, new) for new in jobs]

    def _make(self, shard: int, new: New) -> Any:
        known = self.jobs.get(new.id)
        if known is not None and known.shard == shard:
            return "scheduled" if new.waits_for or new.scheduled_at > known.created else "pending"
        if (shard, new.id) in self.notes:
            return "scheduled" if new.waits_for or new.scheduled_at > self.now else "pending"
        if new.idempotency_key and (new.queue, new.idempotency_key) in self.keys:
            return ("existing", self.keys[new.queue, new.idempotency_key])
        if new.unique_key and self._holder(new.queue, new.unique_key):
            return ("existing", self._holder(new.queue, new.unique_key))
        job = self.jobs[new.id] = Life(new, new.queue, new.priority, shard, self.now)
        job.waits_for = list(new.waits_for)
        job.expire_at = self.now + new.expire_ms * MS if new.expire_ms else 0
        self._line(new.queue).enqueued += 1
        if new.waits_for:
            job.state, job.due = "scheduled", None
        elif new.scheduled_at > self.now:
            job.state, job.due = "scheduled", new.scheduled_at
        else:
            self._file(job)
        self._tell(shard, "enqueued", job.id, job.queue)
        self._take_keys(job)
        for other in new.waits_for:
            self._send(shard, int(other[1:3]), "watch", other, job.id)
        return job.state

    def _file(self, job: Life) -> None:
        self.filings += 1
        job.state, job.filed = "pending", self.filings

    # Keys

    def _holder(self, queue: str, key: str) -> str:
        job, until = self.locks.get((queue, key), ("", 0))
        return job if until > self.now else ""

    def _lock(self, job: Life) -> None:
        self.locks[job.queue, job.new.unique_key] = (job.id, self.now + (job.new.unique_ms or UNIQUE_MS) * MS)

    def _take_keys(self, job: Life) -> None:
        new = job.new
        if new.idempotency_key and (job.queue, new.idempotency_key) not in self.keys:
            self.keys[job.queue, new.idempotency_key] = job.id
        is_over = job.state in ENDED or (new.unique_until == "start" and job.attempt > 0)
        if new.unique_key and not is_over and not self._holder(job.queue, new.unique_key):
            self._lock(job)

    def _free(self, job: Life) -> None:
        if job.new.unique_until != "period" and self._holder(job.queue, job.new.unique_key) == job.id:
            del self.locks[job.queue, job.new.unique_key]

    def _drop_keys(self, job: Life) -> None:
        if self.keys.get((job.queue, job.new.idempotency_key)) == job.id:
            del self.keys[job.queue, job.new.idempotency_key]
        self._free(job)

    # Work

    def _fetch(
        self,
        shard: int,
        queues: list[str],
        worker: str,
        claim: int,
        count: int,
        lease_ms: int,
        is_two_phase: bool = False,
    ) -> list[Any]:
        taken: list[Life] = []
        for queue in queues:
            taken += self._claim(queue, count - len(taken))
        for job in taken:
            job.state = "active"
            job.attempt += 1
            job.token += 1
            job.claim, job.worker, job.lease_ms = claim, worker, lease_ms
            job.lease_end = self.now + lease_ms * MS
            job.cancel_at = 0
            job.begun = not is_two_phase
            if job.new.unique_until == "start":
                self._free(job)
            self._tell(shard, "started", job.id, job.queue)
        return [(job.id, job.attempt, job.token) for job in taken]

    def _claim(self, queue: str, count: int) -> list[Life]:
        line = self.lines.get(queue)
        if line is None or line.paused or line.draining:
            return []
        if line.concurrency:
            count = min(count, line.concurrency - self.active(queue))
        if line.rate:
            fresh = [moment for moment in line.claims if moment > self.now - line.window_ms * MS]
            count = min(count, line.rate - len(fresh))
        taken = self.pending(queue)[: max(count, 0)]
        if line.rate and taken:
            line.claims = fresh + [self.now] * len(taken)
        return taken

    def _held(self, shard: int, job_id: str, token: int) -> Life:
        job = self._here(shard, job_id)
        if job.state == "active" and token in (0, job.token):
            return job
        raise No("LEASE_LOST" if token else "WRONG_STATE")

    def _ack(self, shard: int, *items: tuple[str, int, Any, bool]) -> list[Any]:
        return [self._each(self._ack_one, shard, *item) for item in items]

    def _each(self, act: Callable[..., Any], *details: Any) -> Any:
        try:
            return act(*details)
        except No as refusal:
            return str(refusal)

    def _ack_one(self, shard: int, job_id: str, token: int, result: Any, exits: bool) -> None:
        known = self.jobs.get(job_id)
        if known is not None and known.shard == shard and known.state == "completed" and known.token == token:
            return
        job = self._held(shard, job_id, token)
        job.result, job.exits = result, exits
        self._line(job.queue).completed += 1
        self._become(job, "completed", "completed")

    def _fail(self, shard: int, job_id: str, token: int, error: str, how: str, ms: int = 0) -> Any:
        """`how`: by its backoff, `after` so long, `final`ly, or `snooze`."""
        job = self._held(shard, job_id, token)
        if how == "snooze" and not job.cancel_at:
            job.attempt -= 1
            job.due = self.now + ms * MS
            self._become(job, "scheduled", "snoozed")
            return ("scheduled", job.left, job.due)
        self._record(job, error)
        if job.cancel_at:
            self._become(job, "cancelled", "cancelled")
        elif how == "final" or not job.left:
            self._become(job, "dead", "failed", "dead")
        else:
            job.due = self.now + (ms if how == "after" else job.delay_ms()) * MS
            self._become(job, "retrying", "failed")
            return ("retrying", job.left, job.due)
        return (job.state, 0, 0)

    def _record(self, job: Life, error: str) -> None:
        self._line(job.queue).failed += 1
        job.errors.append((error, self.now))

    def _beat(self, shard: int, job_id: str, token: int, progress: Any = None) -> str:
        try:
            job = self._here(shard, job_id)
        except No as refusal:
            return "cancel" if str(refusal) == "JOB_NOT_FOUND" else str(refusal)
        if job.state != "active" or token not in (0, job.token):
            is_newest = token in (0, job.token)
            return "cancel" if not token or (job.state in ("cancelled", "held") and is_newest) else "lease_lost"
        if 0 < job.expire_at <= self.now:
            self._expire(job)
            return "cancel"
        if progress is not None and progress != job.progress:  # said twice, it is told once
            job.progress = progress
            self._tell(shard, "progress", job.id, job.queue)
        if not job.begun:
            job.begun = True
            self._tell(shard, "running", job.id, job.queue)
        if job.cancel_at:
            return "cancel"
        job.lease_end = self.now + job.lease_ms * MS
        return "ok"

    # Orders

    def _cancel(self, shard: int, job_id: str, grace_ms: int) -> bool:
        job = self._here(shard, job_id)
        if job.state in ENDED:
            raise No("WRONG_STATE")
        if job.state == "active" and grace_ms:
            if not job.cancel_at:
                self._tell(shard, "cancelling", job.id, job.queue)
            ends = self.now + grace_ms * MS
            job.cancel_at = min(job.cancel_at or ends, ends)
            return True
        was_active = job.state == "active"
        self._become(job, "cancelled", "cancelled")
        return was_active

    def _from(self, shard: int, job_id: str, *states: str) -> Life:
        job = self._here(shard, job_id)
        if job.state not in states:
            raise No("WRONG_STATE")
        return job

    def _hold(self, shard: int, job_id: str) -> None:
        job = self._from(shard, job_id, "pending", "active", "scheduled", "retrying")
        job.cancel_at = 0
        if job.state == "active":
            job.errors.append(("held while it ran", self.now))
        self._become(job, "held", "held")

    def _approve(self, shard: int, job_id: str) -> None:
        job = self._from(shard, job_id, "held")
        job.waits_for = []
        self._become(job, "pending", "approved")

    def _reject(self, shard: int, job_id: str) -> None:
        job = self._from(shard, job_id, "held")
        self._note_error(job, "rejected")
        self._become(job, "dead", "rejected")

    def _note_error(self, job: Life, text: str) -> None:
        """Of no attempt: it has a number of its own."""
        job.token += 1
        job.errors.append((text, self.now))

    def _retry(self, shard: int, job_id: str) -> None:
        job = self._from(shard, job_id, "dead", "cancelled", "completed", "scheduled")
        self._run_again(job, "retried")
        job.attempt = 0

    def _requeue(self, shard: int, job_id: str) -> None:
        self._run_again(self._from(shard, job_id, "dead"), "requeued")

    def _run_again(self, job: Life, what: str) -> None:
        if job.new.unique_key:
            holder = self._holder(job.queue, job.new.unique_key)
            if holder and holder != job.id:
                raise No("UNIQUE_CONFLICT")
            if not holder:
                self._lock(job)
        job.waits_for = []
        job.cancel_at = 0
        job.expire_at = self.now + job.new.expire_ms * MS if job.new.expire_ms else 0
        self._become(job, "pending", what)

    def _priority(self, shard: int, job_id: str, priority: str) -> None:
        job = self._from(shard, job_id, "pending", "scheduled", "retrying", "held")
        if job.priority != priority:
            job.priority = priority
            if job.state == "pending":
                self._file(job)
            self._tell(shard, "priority_changed", job.id, job.queue)

    def _reschedule(self, shard: int, job_id: str, due: int) -> None:
        job = self._from(shard, job_id, "pending", "scheduled", "retrying")
        if job.state == "scheduled" and job.due is None:
            job.new.scheduled_at = due
            self._tell(shard, "rescheduled", job.id, job.queue)
        else:
            job.due = due
            self._become(job, "scheduled", "rescheduled")

    def _delete(self, shard: int, job_id: str) -> None:
        self._remove(self._here(shard, job_id))

    def _remove(self, job: Life) -> None:
        shard = job.shard
        assert shard is not None
        self._drop_keys(job)
        del self.jobs[job.id]
        self._tell(shard, "deleted", job.id, job.queue)
        for other in job.was_at:
            if other != shard:
                self._send(shard, other, "forget", job.id)
        if job.state not in ENDED:
            self._ends.append((job, "deleted", shard))

    def _move(self, shard: int, job_id: str, queue: str) -> None:
        job = self._here(shard, job_id)
        if job.queue == queue:
            return
        if job.state == "active":
            raise No("WRONG_STATE")
        self._drop_keys(job)
        job.queue = queue
        target = self.shard_of(queue)
        if target == shard:
            self._arrive(job, shard)
        else:
            job.shard = None
            if shard not in job.was_at:
                job.was_at.append(shard)
            self._send(shard, target, "arrive", job)
            self.notes[shard, job.id] = (target, self.sent[shard, target])

    def _arrive(self, job: Life, shard: int) -> None:
        job.shard = shard
        self._line(job.queue)
        if job.state == "pending":
            self._file(job)
        self._take_keys(job)
        if job.state in ENDED:
            self._retire(job)
        self._tell(shard, "moved", job.id, job.queue)

    # Queues

    def _control(self, shard: int, queue: str, what: str, **decided: Any) -> Line:
        line = self._line(queue)
        if any(getattr(line, name) != value for name, value in decided.items()):
            for name, value in decided.items():
                setattr(line, name, value)
            if not line.rate:
                line.claims = []
            self._tell(shard, what, "", queue)
        return line

    def _pause(self, shard: int, queue: str) -> None:
        self._control(shard, queue, "queue_paused", paused=True, draining=False)

    def _drain(self, shard: int, queue: str) -> int:
        self._control(shard, queue, "queue_draining", paused=False, draining=True)
        return self.active(queue)

    def _resume(self, shard: int, queue: str) -> None:
        self._require(queue)
        self._control(shard, queue, "queue_resumed", paused=False, draining=False)

    def _concurrency(self, shard: int, queue: str, limit: int) -> None:
        if not limit:
            self._require(queue)
        self._control(shard, queue, "queue_changed", concurrency=limit)

    def _throttle(self, shard: int, queue: str, rate: int, window_ms: int) -> None:
        if not rate:
            self._require(queue)
        self._control(shard, queue, "queue_changed", rate=rate, window_ms=window_ms)

    def _retention(self, shard: int, queue: str, kept_ms: tuple[int, int, int]) -> None:
        self._control(shard, queue, "queue_changed", kept_ms=kept_ms)

    def _clear(self, shard: int, queue: str) -> int:
        self._require(queue)
        self._tell(shard, "queue_cleared", "", queue)
        inside = [job for job in self.on(shard) if job.queue == queue]
        gone = [job for job in self.waiting_for_date(shard, "scheduled") if job in inside]
        gone += [job for job in self.waiting_for_date(shard, "retrying") if job in inside]
        gone += self.pending(queue)
        for job in gone:
            self._remove(job)
        return len(gone)

    def _delete_queue(self, shard: int, queue: str, is_forced: bool) -> None:
        if queue not in self.lines:
            return
        if self.active(queue) and not is_forced:
            raise No("WRONG_STATE")
        for job in sorted(self.on(shard), key=lambda job: job.id):
            if job.queue == queue:
                self._remove(job)
        del self.lines[queue]
        self._tell(shard, "queue_deleted", "", queue)

    # Batches

    def _open(self, shard: int, batch: str, steps: dict[str, Step], seal: bool, *jobs: New) -> None:
        if batch not in self.batches:
            self.batches[batch] = Bunch(shard, steps)
            self._fill(shard, batch, seal, *jobs)

    def _add(self, shard: int, batch: str, seal: bool, *jobs: New) -> None:
        if batch not in self.batches:
            raise No("BATCH_NOT_FOUND")
        if self.batches[batch].sealed:
            raise No("BATCH_SEALED")
        self._fill(shard, batch, seal, *jobs)

    def _fill(self, shard: int, batch: str, seal: bool, *jobs: New) -> None:
        bunch = self.batches[batch]
        bunch.total += len(jobs)
        bunch.sealed = bunch.sealed or seal
        self._finish(batch)
        for new in jobs:
            new.batch = batch
            self._send(shard, self.shard_of(new.queue), "make", new)

    def _seal(self, shard: int, batch: str) -> None:
        if batch not in self.batches:
            raise No("BATCH_NOT_FOUND")
        self.batches[batch].sealed = True
        self._finish(batch)

    def _finish(self, batch: str) -> None:
        bunch = self.batches[batch]
        if bunch.finished or not bunch.sealed or bunch.ended.total() < bunch.total:
            return
        bunch.finished = self.now
        names = ["on_complete", "on_success" if bunch.ended["completed"] == bunch.total else "on_failure"]
        for callback in [name for name in names if name in bunch.steps]:
            step = bunch.steps[callback]
            counts = {word: bunch.ended[word] for word in (*ENDED, "deleted")}
            totals = {"succeeded": bunch.ended["completed"], "failed": bunch.total - bunch.ended["completed"]}
            told = {"batch_id": batch, "total": bunch.total, **totals, **counts, "callback": callback}
            target = self.shard_of(step.queue)
            new = New(self.name(target, batch, callback), step.queue, {**_keys(step.payload), "batch": told})
            self._send(bunch.shard, target, "make", new)
        self._tell(bunch.shard, "batch_completed")

    # The only way from state to state, and what an end means for others

    def _become(self, job: Life, state: str, *events: str) -> None:
        assert job.shard is not None
        if state == "pending":
            self._file(job)
        job.state = state
        for what in events:
            self._tell(job.shard, what, job.id, job.queue)
        if state in ENDED:
            job.ended_at = self.now
            self._retire(job)
            self._ends.append((job, state, job.shard))

    def _kept_ms(self, job: Life) -> int:
        own = self._line(job.queue).kept_ms[ENDED.index(job.state)]
        return KEPT_MS if own < 0 else own

    def _retire(self, job: Life) -> None:
        kept_ms = self._kept_ms(job)
        if kept_ms:
            assert job.shard is not None
            self.purges.append((self.now + kept_ms * MS, "", job.shard, job.id))

    def _end(self, job: Life, outcome: str, shard: int) -> None:
        if outcome != "deleted":
            self._free(job)
        if not job.told:
            job.told = True
            if job.new.batch:
                self._send(shard, int(job.new.batch[1:3]), "member", job.new.batch, outcome)
            if job.new.chain is not None:
                self._go_on(job, job.new.chain, outcome, shard)
        for dependent in sorted(self.watchers.pop(job.id, ())):
            self._send(shard, int(dependent[1:3]), "ended", job.id, outcome, dependent)

    def _go_on(self, job: Life, chain: Chain, outcome: str, shard: int) -> None:
        number = job.new.step
        if number < 0:
            return
        if outcome == "completed":
            payload = {"previous_job_id": job.id}
            if job.result is not None:
                payload["previous_result"] = job.result
            is_last = job.exits or number + 1 == len(chain.steps)
            number, step = (-1, chain.on_exit) if is_last else (number + 1, chain.steps[number + 1])
        else:
            reason = job.errors[-1][0] if outcome == "dead" else f"the job is {outcome}"
            payload = {"failed_job_id": job.id, "failed_step": number, "error": reason}
            number, step = -2, chain.on_failure
        if step is not None:
            target = self.shard_of(step.queue)
            name = self.name(target, chain.id, number)
            new = New(name, step.queue, {**payload, **_keys(step.payload)}, parent=job.id, chain=chain, step=number)
            self._send(shard, target, "make", new)

    # Letters

    def deliver(self, source: int, target: int, count: int) -> None:
        """So many of those that wait arrive."""
        waiting = self.letters.get((source, target), [])
        for _ in range(min(count, len(waiting))):
            self._do(target, *waiting.pop(0))
            self._settle(target)

    def confirm(self, source: int, target: int) -> None:
        self.confirmed[source, target] = self.done(source, target)

    def done(self, source: int, target: int) -> int:
        return self.sent[source, target] - len(self.letters.get((source, target), ()))

    def _do(self, shard: int, what: str, *details: Any) -> None:
        getattr(self, f"_do_{what}")(shard, *details)

    def _do_watch(self, shard: int, job_id: str, dependent: str) -> None:
        job = self.jobs.get(job_id)
        if job is None or job.shard != shard:
            if (shard, job_id) in self.notes:
                self._send(shard, self.notes[shard, job_id][0], "watch", job_id, dependent)
            else:
                self._send(shard, int(dependent[1:3]), "ended", job_id, "deleted", dependent)
        elif job.state in ENDED:
            self._send(shard, int(dependent[1:3]), "ended", job_id, job.state, dependent)
        else:
            self.watchers.setdefault(job_id, set()).add(dependent)

    def _do_ended(self, shard: int, job_id: str, outcome: str, dependent: str) -> None:
        job = self.jobs.get(dependent)
        if job is None or job.shard != shard:
            if (shard, dependent) in self.notes:
                self._send(shard, self.notes[shard, dependent][0], "ended", job_id, outcome, dependent)
            return
        if job_id not in job.waits_for:
            return
        waits = job.state == "scheduled" and job.due is None
        if waits and outcome != "completed" and job.new.if_lost != "run":
            job.waits_for = []
            self._note_error(job, f"job {job_id}, which this one waited for, is {outcome}")
            if job.new.if_lost == "fail":
                self._become(job, "dead", "dead")
            else:
                self._become(job, "cancelled", "cancelled")
            return
        job.waits_for.remove(job_id)
        if waits and not job.waits_for:
            if job.new.scheduled_at > self.now:
                job.due = job.new.scheduled_at
            else:
                self._become(job, "pending", "promoted")

    def _do_make(self, shard: int, new: New) -> None:
        made = self._make(shard, new)
        if new.batch and isinstance(made, tuple):
            self._send(shard, int(new.batch[1:3]), "member", new.batch, "deleted")

    def _do_member(self, shard: int, batch: str, outcome: str) -> None:
        bunch = self.batches.get(batch)
        if bunch is not None and not bunch.finished:
            bunch.ended[outcome] += 1
            self._finish(batch)

    def _do_arrive(self, shard: int, job: Life) -> None:
        self.notes.pop((shard, job.id), None)
        self._arrive(job, shard)

    def _do_forget(self, shard: int, job_id: str) -> None:
        self.notes.pop((shard, job_id), None)

    # Time

    def pass_time(self, shard: int) -> None:
        """Everything that is due on this shard by now."""
        for job in self.waiting_for_date(shard, "scheduled", "retrying"):
            if job.due is not None and job.due <= self.now:
                self._become(job, "pending", "promoted")
        self._settle(shard)
        self._ring(shard)
        over = [job for job in self.on(shard) if job.state == "active" and job.lease_end <= self.now]
        for job in sorted(over, key=lambda job: (job.lease_end, job.id)):
            self._reclaim(job)
        self._settle(shard)

    def _ring(self, shard: int) -> None:
        """In the order of their moments, and of their names where those are equal."""
        due: list[tuple[int, str, str]] = []
        for job in self.on(shard):
            if job.state not in (*ENDED, "active") and 0 < job.expire_at <= self.now:
                due.append((job.expire_at, "e", job.id))
            if job.state == "active" and 0 < job.cancel_at <= self.now:
                due.append((job.cancel_at, "g", job.id))
        purges = [purge for purge in self.purges if purge[0] <= self.now and purge[2] == shard]
        self.purges = [purge for purge in self.purges if purge not in purges]
        due += [(when, "z" + name, job_id) for when, name, _, job_id in purges]
        for _, kind, job_id in sorted(due, key=lambda each: each[:2] + (each[2] if each[1] != "z" else "",)):
            found = self.jobs.get(job_id)
            if found is None or found.shard != shard:
                continue
            if kind == "e" and found.state not in (*ENDED, "active"):  # the end of another may have ended this one
                self._expire(found)
            elif kind == "g" and found.state == "active":
                self._become(found, "cancelled", "cancelled")
            elif kind[0] == "z" and found.state in ENDED:
                self._purge(found)
            self._settle(shard)
        for batch, bunch in list(self.batches.items()):
            if bunch.shard == shard and bunch.finished and bunch.finished + KEPT_MS * MS <= self.now:
                del self.batches[batch]

    def _expire(self, job: Life) -> None:
        if job.state == "active":
            job.errors.append(("expired before it was done", self.now))
        else:
            self._note_error(job, "expired before it was done")
        self._become(job, "dead", "expired")

    def _purge(self, job: Life) -> None:
        kept_ms = self._kept_ms(job)
        until = job.ended_at + kept_ms * MS
        if kept_ms and until <= self.now:
            self._remove(job)
        elif kept_ms:
            assert job.shard is not None
            self.purges.append((until, job.id, job.shard, job.id))

    def _reclaim(self, job: Life) -> None:
        self._record(job, f"lease of worker {job.worker} expired")
        if job.cancel_at:
            self._become(job, "cancelled", "cancelled")
        elif job.left:
            self._become(job, "pending", "reclaimed")
        else:
            self._become(job, "dead", "failed", "dead")


def _keys(payload: Any) -> dict[str, Any]:
    return payload if isinstance(payload, dict) else {"payload": payload}
