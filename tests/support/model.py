"""The same machine, written again in the plainest way: a list of jobs and a loop for every question.

It shares no rule with `corvo`: states are words, the next job is found by sorting, a lease by looking at all jobs.
Where the two disagree, one of them is wrong, and it is not always this one.
"""

from dataclasses import dataclass, field
from typing import Any

from corvo.endpoint import Operation
from corvo.ops.jobs.ack import Ack
from corvo.ops.jobs.cancel import Cancel
from corvo.ops.jobs.enqueue import Enqueue
from corvo.ops.jobs.fail import Fail
from corvo.ops.jobs.fetch import Fetch
from corvo.ops.jobs.heartbeat import Heartbeat
from corvo.ops.upkeep.promote import Promote
from corvo.ops.upkeep.reclaim import Reclaim
from corvo.rules.job_creation import NewJob

PRIORITIES = ["critical", "high", "normal"]
MS = 1_000_000


@dataclass
class ModelJob:
    id: str
    queue: str
    priority: str
    state: str
    created: int
    max_retries: int
    backoff: str
    base_ms: int
    cap_ms: int
    due: int = 0
    filed: int = 0  # the how-manyth filing of the whole machine
    attempt: int = 0
    token: int = 0
    claim: int = 0
    ended_by: int = 0  # the request that ended the newest claim, or cancelled the job
    lease_end: int = 0
    lease_ms: int = 0
    worker: str = ""
    result: bytes = b""
    progress: bytes = b""
    checkpoint: bytes = b""
    errors: list[tuple[int, str]] = field(default_factory=list)  # (claim, sentence)
    was_active_when_cancelled: bool = False

    @property
    def remaining(self) -> int:
        return self.remaining_after(self.attempt)

    def remaining_after(self, attempt: int) -> int:
        allowed = 1 if self.max_retries < 1 else self.max_retries
        return 0 if attempt >= allowed else allowed - attempt

    def delay_ms(self) -> int:
        delay = {
            "none": 0,
            "fixed": self.base_ms,
            "linear": self.base_ms * self.attempt,
            "exponential": self.base_ms * 2 ** (self.attempt - 1),
        }[self.backoff]
        return delay if delay < self.cap_ms else self.cap_ms


class Model:
    def __init__(self, upkeep_jobs: int = 500, errors_kept: int = 25) -> None:
        self.now = 0
        self.jobs: dict[str, ModelJob] = {}
        self.filings = 0
        self.completed: dict[str, int] = {}  # queue → jobs ever completed
        self.failed: dict[str, int] = {}  # queue → attempts ever failed
        self.upkeep_jobs = upkeep_jobs
        self.errors_kept = errors_kept

    def entry(self, now: int, operations: list[Operation]) -> list[Any]:
        self.now = max(self.now, now)
        return [self._apply(operation) for operation in operations]

    def _apply(self, operation: Operation) -> Any:
        match operation:
            case Enqueue():
                return [self._enqueue(new) for new in operation.jobs]
            case Fetch():
                return self._fetch(operation)
            case Ack():
                return [
                    self._ack(operation.ask_id, item.job_id, item.lease_token, item.result, item.checkpoint)
                    for item in operation.items
                ]
            case Fail():
                return [
                    self._fail(operation.ask_id, item.job_id, item.lease_token, item.error) for item in operation.items
                ]
            case Heartbeat():
                return [
                    self._beat(beat.job_id, beat.lease_token, beat.progress, beat.checkpoint)
                    for beat in operation.beats
                ]
            case Cancel():
                return self._cancel(operation.ask_id, operation.job_id)
            case Promote():
                return self._promote()
            case Reclaim():
                return self._reclaim()
        raise AssertionError(operation)

    def _file(self, job: ModelJob) -> None:
        self.filings += 1
        job.state, job.filed = "pending", self.filings

    def _enqueue(self, new: NewJob) -> str:
        known = self.jobs.get(new.id)
        if known is not None:
            return "scheduled" if new.scheduled_at > known.created else "pending"
        job = self.jobs[new.id] = ModelJob(
            id=new.id,
            queue=new.queue,
            priority=PRIORITIES[new.priority],
            state="scheduled",
            created=self.now,
            max_retries=new.max_retries,
            backoff=["none", "fixed", "linear", "exponential"][new.backoff],
            base_ms=new.base_delay_ms,
            cap_ms=new.max_delay_ms,
            checkpoint=new.checkpoint,
        )
        if new.scheduled_at > self.now:
            job.due = new.scheduled_at
        else:
            self._file(job)
        return job.state

    def waiting(self, queue: str) -> list[ModelJob]:
        inside = [job for job in self.jobs.values() if job.queue == queue and job.state == "pending"]
        return sorted(inside, key=lambda job: (PRIORITIES.index(job.priority), job.filed))

    def _fetch(self, fetch: Fetch) -> list[tuple[str, int, int]]:
        if fetch.is_repeated:
            held = [job for job in self.jobs.values() if job.state == "active" and job.claim == fetch.claim_id]
            if held:
                return sorted((job.id, job.attempt, job.token) for job in held)
        chosen = [job for queue in fetch.queues for job in self.waiting(queue)][: fetch.count]
        for job in chosen:
            job.state = "active"
            job.attempt += 1
            job.token += 1
            job.claim = fetch.claim_id
            job.worker = fetch.worker_id
            job.lease_ms = fetch.lease_ms
            job.lease_end = self.now + fetch.lease_ms * MS
        return [(job.id, job.attempt, job.token) for job in chosen]

    def _held(self, job_id: str, token: int) -> ModelJob | None:
        job = self.jobs.get(job_id)
        return job if job is not None and job.state == "active" and token in (0, job.token) else None

    def _refusal(self, job_id: str, token: int) -> str:
        if job_id not in self.jobs:
            return "JOB_NOT_FOUND"
        return "LEASE_LOST" if token else "WRONG_STATE"

    def _ack(self, ask: int, job_id: str, token: int, result: bytes, checkpoint: bytes) -> str | None:
        job = self._held(job_id, token)
        if job is not None:
            job.state, job.ended_by, job.result = "completed", ask, result
            job.checkpoint = checkpoint or job.checkpoint
            self.completed[job.queue] = self.completed.get(job.queue, 0) + 1
            return None
        job = self.jobs.get(job_id)
        if job is not None and job.state == "completed" and (job.ended_by == ask or job.token == token):
            return None
        return self._refusal(job_id, token)

    def _end_attempt(self, job: ModelJob, error: str) -> None:
        self.failed[job.queue] = self.failed.get(job.queue, 0) + 1
        job.errors = [*job.errors, (job.token, error)][-self.errors_kept :]

    def _fail(self, ask: int, job_id: str, token: int, error: str) -> tuple[str, int, int] | str:
        job = self.jobs.get(job_id)
        if job is not None and job.ended_by == ask:  # the same request once more, whoever holds the job by now
            remaining = job.remaining_after(job.attempt - 1 if job.state == "active" else job.attempt)
            return ("retrying", remaining, job.due) if remaining else ("dead", 0, 0)
        job = self._held(job_id, token)
        if job is None:
            return self._refusal(job_id, token)
        self._end_attempt(job, error)
        job.ended_by = ask
        if not job.remaining:
            job.state = "dead"
            return ("dead", 0, 0)
        job.state, job.due = "retrying", self.now + job.delay_ms() * MS
        return ("retrying", job.remaining, job.due)

    def _beat(self, job_id: str, token: int, progress: bytes, checkpoint: bytes) -> str:
        job = self._held(job_id, token)
        if job is not None:
            job.lease_end = self.now + job.lease_ms * MS
            job.progress = progress or job.progress
            job.checkpoint = checkpoint or job.checkpoint
            return "ok"
        job = self.jobs.get(job_id)
        if token == 0 or job is None or (job.state == "cancelled" and job.token == token):
            return "cancel"
        return "lease_lost"

    def _cancel(self, ask: int, job_id: str) -> bool | str:
        job = self.jobs.get(job_id)
        if job is None:
            return "JOB_NOT_FOUND"
        if job.state == "cancelled" and job.ended_by == ask:
            return job.was_active_when_cancelled
        if job.state in ("completed", "dead", "cancelled"):
            return "WRONG_STATE"
        job.was_active_when_cancelled = job.state == "active"
        job.state, job.ended_by = "cancelled", ask
        return job.was_active_when_cancelled

    def _promote(self) -> int:
        due = [job for job in self.jobs.values() if job.state in ("scheduled", "retrying") and job.due <= self.now]
        due = sorted(due, key=lambda job: (job.due, job.id))[: self.upkeep_jobs]
        for job in due:
            self._file(job)
        return len(due)

    def _reclaim(self) -> int:
        over = [job for job in self.jobs.values() if job.state == "active" and job.lease_end <= self.now]
        over = sorted(over, key=lambda job: (job.lease_end, job.id))[: self.upkeep_jobs]
        for job in over:
            self._end_attempt(job, f"lease of worker {job.worker} expired")
            job.ended_by = 0
            if job.remaining:
                self._file(job)
            else:
                job.state = "dead"
        return len(over)
