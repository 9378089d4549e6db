"""Runs tasks in this process, at the moment that they are enqueued: for tests of the code around them.

Payloads go through JSON and back, and handlers run as in a worker, with middlewares, context and outcomes. No time
passes: a retry, a snooze or a delay is over at once. What needs a server (unique jobs, leases, limits) needs
`corvo_server`.
"""

import asyncio
import inspect
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import msgspec
from msgspec import Raw

from corvo.client.answers import JobErrorView, JobView
from corvo.client.worker.app import Corvo
from corvo.client.worker.context import Context, Note, RunningJob
from corvo.client.worker.frames import AckOut, FailOut
from corvo.client.worker.handlers import NoHandler, handlers_of
from corvo.client.worker.handles import BatchHandle, JobHandle
from corvo.client.worker.reports import HandlerEnd, JobReport, report_of
from corvo.client.worker.terms import TaskCall

RUNS_MAX = 100  # of one job: a handler that snoozes for ever must not hang its test
ATTEMPTS = 3  # the server's default


class Endless(RuntimeError):
    """A job that goes on for ever, or jobs that enqueue each other."""


class InlineJob:
    """A job that was enqueued, and how it ended."""

    def __init__(self, number: int, call: TaskCall) -> None:
        self.id = f"inline_job_{number}"
        self.queue = call.queue
        self.payload: Any = msgspec.json.decode(msgspec.json.encode(call.body().payload))
        self.terms = call.terms
        self.state = "pending"
        self.result: Any = None
        self.checkpoint: Any = None
        self.progress: Any = None
        self.errors: list[str] = []
        self.attempt = 0
        self.runs = 0

    def become(self, state: str) -> None:
        self.state = state

    def view(self) -> JobView:
        """As a handle shows it."""
        return JobView(
            id=self.id,
            queue=self.queue,
            state=self.state,
            payload=self.payload,
            priority=2,
            attempt=self.attempt,
            max_retries=self.terms.get("max_retries", ATTEMPTS),
            retry_backoff="none",
            retry_base_delay_ms=0,
            retry_max_delay_ms=0,
            created_at="",
            result=self.result,
            checkpoint=self.checkpoint,
            progress=self.progress,
            errors=[JobErrorView(n, self.id, n, error, "") for n, error in enumerate(self.errors, 1)],
        )


class InlineJobs:
    """What the fixture `corvo_inline` gives: call it with the apps whose tasks run here."""

    def __init__(self, patch: Callable[[object, str, Any], None]) -> None:
        """`patch` replaces an attribute until the test ends."""
        self._patch = patch
        self._apps: list[Corvo] = []
        self._depth = 0
        self.jobs: list[InlineJob] = []  # in the order of their enqueues

    def __call__(self, *apps: Corvo) -> "InlineJobs":
        for app in apps:
            self._apps.append(app)
            self._patch(app, "enqueue", self._enqueue)
            self._patch(app, "aenqueue", self._aenqueue)
            self._patch(app, "chain", self._chain)
            self._patch(app, "batch", self._batch)
        return self

    def of(self, queue: str) -> list[InlineJob]:
        return [job for job in self.jobs if job.queue == queue]

    def results(self, queue: str) -> list[Any]:
        return [job.result for job in self.of(queue) if job.state == "completed"]

    # In place of the app's

    def _enqueue(self, call: TaskCall) -> JobHandle:
        job = self._run(call)
        return _Handle(job)

    async def _aenqueue(self, call: TaskCall) -> JobHandle:
        return await asyncio.to_thread(self._enqueue, call)

    def _chain(
        self, *calls: TaskCall, on_failure: TaskCall | None = None, on_exit: TaskCall | None = None
    ) -> JobHandle:
        first = job = self._run(calls[0])
        for call in calls[1:]:
            if job.state != "completed":
                break
            job = self._run(_with(call, {"previous_job_id": job.id, "previous_result": job.result}))
        if job.state == "dead" and on_failure is not None:
            self._run(_with(on_failure, {"failed_job_id": job.id, "error": job.errors[-1]}))
        if on_exit is not None:
            self._run(on_exit)
        return _Handle(first)

    def _batch(
        self,
        *calls: TaskCall | Sequence[TaskCall],
        on_complete: TaskCall | None = None,
        on_success: TaskCall | None = None,
        on_failure: TaskCall | None = None,
        description: str = "",
    ) -> BatchHandle:
        flat = [one for each in calls for one in ([each] if isinstance(each, TaskCall) else each)]
        jobs = [self._run(call) for call in flat]
        states = [job.state for job in jobs]
        batch = {"total": len(jobs), "completed": states.count("completed"), "dead": states.count("dead")}
        is_good = batch["completed"] == len(jobs)
        for call in (on_complete, on_success if is_good else on_failure):
            if call is not None:
                self._run(_with(call, {"batch": batch}))
        handle = BatchHandle(_no_client, f"inline_batch_{len(self.jobs)}", [])
        handle.jobs = [_Handle(job) for job in jobs]
        return handle

    # Running

    def _run(self, call: TaskCall) -> InlineJob:
        job = InlineJob(len(self.jobs) + 1, call)
        self.jobs.append(job)
        self._depth += 1
        try:
            if self._depth > RUNS_MAX:
                raise Endless(f"{RUNS_MAX} jobs have enqueued each other, the last one on {job.queue}")
            while job.state in ("pending", "retrying"):
                job.runs += 1
                if job.runs > RUNS_MAX:
                    raise Endless(f"a job on {job.queue} has run {RUNS_MAX} times and still goes on")
                self._attempt(job)
        finally:
            self._depth -= 1
        return job

    def _attempt(self, job: InlineJob) -> None:
        handler = next((found[job.queue] for app in self._apps if job.queue in (found := handlers_of(app))), None)
        if handler is None:
            raise NoHandler(f"no task of these apps has the queue {job.queue}")
        job.attempt += 1
        context = Context(self._running(job), lambda note: _told(job, note))
        try:
            if inspect.iscoroutinefunction(handler.function):
                value = _in_a_loop(handler.arun(context))
            else:
                value = handler.run(context)
            ended = HandlerEnd(value)
        except Exception as error:  # as in a worker: whatever a handler raises is how its attempt ended
            ended = HandlerEnd(error=error)
        report = report_of(context, ended, False, None)
        assert report is not None
        _settle(job, report)

    def _running(self, job: InlineJob) -> RunningJob:
        most = job.terms.get("max_retries", ATTEMPTS)
        checkpoint, tags = _raw(job.checkpoint), _raw(job.terms.get("tags"))
        return RunningJob(job.id, job.queue, job.attempt, most, Raw(msgspec.json.encode(job.payload)), checkpoint, tags)


class _Handle(JobHandle):
    def __init__(self, job: InlineJob) -> None:
        super().__init__(_no_client, job.id, "pending")
        self._job = job

    def get(self) -> JobView:
        return self._job.view()


def _no_client() -> Any:
    raise NoHandler("jobs of corvo_inline are on no server; look at corvo_inline.jobs")


def _settle(job: InlineJob, report: JobReport) -> None:
    """What the server does with a report."""
    if report.checkpoint:
        job.checkpoint = msgspec.json.decode(report.checkpoint)
    if report.action == "hold":
        job.become("held")
        return
    item = report.item
    if isinstance(item, AckOut):
        job.become("completed")
        job.result = msgspec.json.decode(item.result) if isinstance(item.result, Raw) else None
        return
    assert isinstance(item, FailOut)
    if report.action == "cancel":
        job.become("cancelled")
        return
    if item.snooze_ms is not None:
        job.attempt -= 1
        return
    job.errors.append(item.error)
    is_over = item.retry is False or job.attempt >= job.terms.get("max_retries", ATTEMPTS)
    job.become("dead" if is_over else "retrying")


def _told(job: InlineJob, note: Note) -> "Future[None]":
    if note.checkpoint:
        job.checkpoint = msgspec.json.decode(note.checkpoint)
    if note.progress:
        job.progress = msgspec.json.decode(note.progress)
    done: Future[None] = Future()
    done.set_result(None)
    return done


def _raw(value: Any) -> Raw:
    """Empty: there is none."""
    return Raw(b"" if value is None else msgspec.json.encode(value))


def _with(call: TaskCall, added: dict[str, Any]) -> TaskCall:
    return TaskCall(call.queue, {**call.payload, **added}, call.terms)


def _in_a_loop(coroutine: Any) -> Any:
    """Also where a loop runs already: then in a thread with one of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    found: Future[Any] = Future()

    def run() -> None:
        try:
            found.set_result(asyncio.run(coroutine))
        except Exception as error:
            found.set_exception(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found.result()
