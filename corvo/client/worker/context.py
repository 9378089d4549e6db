"""What a handler can ask and tell while it runs.

A context is made for one attempt. The worker's link sets why it should stop; everything that the handler tells goes
through `tell`, so the same class serves in the loop, in a thread and in a process of its own.
"""

import asyncio
import logging
from collections.abc import Callable, Generator, Iterator, MutableMapping
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from .arguments import to_json

StopReason = Literal["cancel", "lease_lost", "time_limit", "shutdown"]

_current: ContextVar["Context"] = ContextVar("corvo_context")
_log = logging.getLogger("corvo.worker.job")


class RunningJob(msgspec.Struct, frozen=True):
    """The job of an attempt, as it was claimed. `payload`, `checkpoint` and `tags` are JSON; empty: there is none."""

    job_id: str
    queue: str
    attempt: int
    max_retries: int
    payload: msgspec.Raw = msgspec.Raw(b"{}")
    checkpoint: msgspec.Raw = msgspec.Raw(b"")
    tags: msgspec.Raw = msgspec.Raw(b"")
    lease_token: int = 0


class Note(msgspec.Struct, frozen=True):
    """Something to be sent about a running job, each part as JSON."""

    progress: bytes = b""
    checkpoint: bytes = b""
    usage: bytes = b""


class Delivery:
    """A note on its way: `wait` in a thread, `await` in the loop, or leave it alone. A refusal is logged by then."""

    def __init__(self, future: "Future[None]") -> None:
        self._future = future

    def wait(self, timeout: float = 30.0) -> None:
        """Until the server has it. Raises `NoteRefused`, or TimeoutError."""
        self._future.result(timeout)

    def __await__(self) -> Generator[Any, None, None]:
        return asyncio.wrap_future(self._future).__await__()


class NoteRefused(ValueError):
    """The server does not take this progress, checkpoint or usage; its sentence says why."""


Tell = Callable[[Note], "Future[None]"]


class Context:
    """Of one attempt of one job."""

    def __init__(self, job: RunningJob, tell: Tell, deadline: datetime | None = None, resources: Any = None) -> None:
        self.job = job
        self.deadline = deadline  # when the time limit asks it to stop; None: no limit
        self.resources = resources  # of the worker's lifespan
        self.log = _JobLog(_log, {"job_id": job.job_id, "queue": job.queue, "attempt": job.attempt})
        self.stop_reason: StopReason | None = None
        self.saw_stop = False  # a handler that returns nothing after this has not finished
        self.tell = tell

    @property
    def job_id(self) -> str:
        return self.job.job_id

    @property
    def queue(self) -> str:
        return self.job.queue

    @property
    def attempt(self) -> int:
        """1 for the first."""
        return self.job.attempt

    @property
    def is_last_attempt(self) -> bool:
        return self.job.attempt >= self.job.max_retries

    @property
    def cancelled(self) -> bool:
        """Whether to stop: the job was cancelled, its lease is lost, its time is over, or the worker shuts down. Save a
        checkpoint and return nothing: a job of a worker that shuts down is then continued elsewhere."""
        if self.stop_reason is None:
            return False
        self.saw_stop = True
        return True

    @property
    def saved(self) -> Any:
        """The checkpoint that an earlier attempt left; None if there is none."""
        return _decoded(self.job.checkpoint)

    @property
    def tags(self) -> Any:
        return _decoded(self.job.tags)

    def checkpoint(self, value: Any) -> Delivery:
        """Saves where the next attempt begins. An object; replaces the one before."""
        return self._send(Note(checkpoint=_object(value, "a checkpoint")))

    def progress(
        self, current: float | None = None, total: float | None = None, message: str = "", **more: Any
    ) -> Delivery:
        """For people who watch the job. Reports that follow each other quickly become one."""
        told: dict[str, Any] = {"current": current, "total": total, "message": message or None, **more}
        return self._send(Note(progress=to_json({name: value for name, value in told.items() if value is not None})))

    def usage(self, **used: Any) -> Delivery:
        """What the attempt has used, such as `model`, `input_tokens`, `output_tokens`. A server that does not keep
        usage refuses it: the refusal is logged, and raised to those who wait."""
        return self._send(Note(usage=to_json(used)))

    def _send(self, note: Note) -> Delivery:
        return Delivery(self.tell(note))

    def stop(self, reason: StopReason) -> None:
        """Called by the worker. The first reason stays, but for a lost lease: nobody waits for that report."""
        if self.stop_reason is None or reason == "lease_lost":
            self.stop_reason = reason

    @contextmanager
    def entered(self) -> Iterator[None]:
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)


def current() -> Context:
    """The context of the attempt that runs here. Raises LookupError outside of one."""
    found = _current.get(None)
    if found is None:
        raise LookupError("no job runs here")
    return found


def detached(queue: str) -> Context:
    """For a handler that is called as a plain function: it can tell, and nobody listens."""

    def tell(_: Note) -> "Future[None]":
        done: Future[None] = Future()
        done.set_result(None)
        return done

    found = _current.get(None)
    return found or Context(RunningJob("", queue, 1, 1), tell)


def deadline_after(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(datetime.now(UTC).timestamp() + seconds, UTC)


def _decoded(raw: msgspec.Raw) -> Any:
    return msgspec.json.decode(raw) if bytes(raw) else None


def _object(value: Any, what: str) -> bytes:
    raw = to_json(value)
    if not raw.startswith(b"{"):
        raise TypeError(f"{what} is an object with names, such as a dict; this is {raw[:40].decode(errors='replace')}")
    return raw


class _JobLog(logging.LoggerAdapter[logging.Logger]):
    """Adds the job to each record, as attributes and in front of the message."""

    def process(self, message: Any, options: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        extra = self.extra or {}
        options["extra"] = {**extra, **(options.get("extra") or {})}
        return f"[{extra.get('queue')} {extra.get('job_id')} attempt {extra.get('attempt')}] {message}", options
