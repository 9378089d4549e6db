"""Handlers in processes of their own: for work that keeps a core busy, or that must be killed at its time limit.

Each slot has a child, which imports the task's module and runs one job at a time. It tells its notes through a pipe and
ends with it: a worker that is killed leaves no child behind. A child that dies fails its job, and the next job gets a
new one.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future
from datetime import datetime
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from .context import Context, Note, NoteRefused, RunningJob, StopReason
from .handlers import Handler, middlewares_of, of_task
from .ledger import Held
from .reports import HandlerEnd, JobReport, report_of
from .runners import Begin, Finished, ThreadRunner
from .tasks import Task

_SPAWN = multiprocessing.get_context("spawn")  # a fork would copy the threads' locks as they happen to be
END_S = 5.0


class ProcessDied(RuntimeError):
    """The process of a handler ended before its job."""


class ProcessRunner(ThreadRunner):
    """A thread for each slot waits for its child."""

    def __init__(self, slots: int, handlers: dict[str, Handler], begin: Begin, finished: Finished) -> None:
        super().__init__(slots, self._in_child, finished)
        self._handlers = handlers
        self._begin = begin
        self._mine = threading.local()
        self._children: dict[Held, _Child] = {}

    def _in_child(self, held: Held) -> Any:
        child: _Child | None = getattr(self._mine, "child", None)
        if child is None or not child.process.is_alive():
            child = self._mine.child = _Child()
        self._children[held] = child
        try:
            return child.run(self._handlers[held.job.queue].task, self._begin(held))
        finally:
            del self._children[held]

    def _finish(self, held: Held, ended: HandlerEnd) -> None:
        report = ended.value if isinstance(ended.value, _Told) else None
        super()._finish(held, ended if report is None else HandlerEnd(report=report.report))

    def tell_stop(self, held: Held, reason: StopReason) -> None:
        child = self._children.get(held)
        if child is not None:
            child.send(("stop", reason))

    def interrupt(self, held: Held, is_hard: bool) -> None:
        child = self._children.get(held)
        if is_hard and child is not None:
            child.process.kill()

    def _leave(self) -> None:
        child: _Child | None = getattr(self._mine, "child", None)
        if child is not None:
            child.close()


class _Told:
    """A report that a child made. None: no report."""

    def __init__(self, report: JobReport | None) -> None:
        self.report = report


class _Child:
    def __init__(self) -> None:
        self._pipe, theirs = _SPAWN.Pipe()
        self._sending = threading.Lock()
        self.process: BaseProcess = _SPAWN.Process(target=_serve, args=(theirs,), name="corvo-handler", daemon=True)
        self.process.start()
        theirs.close()

    def send(self, message: tuple[Any, ...]) -> None:
        try:
            with self._sending:
                self._pipe.send(message)
        except OSError:
            pass  # it died: whoever reads from it will notice

    def run(self, task: Task[..., Any], context: Context) -> "_Told":
        self.send(("run", task, context.job, context.deadline, context.stop_reason))
        while True:
            try:
                message = self._pipe.recv()
            except (EOFError, OSError):
                self.process.join(END_S)
                raise ProcessDied(f"the process of the handler died ({_ending(self.process.exitcode)})") from None
            if message[0] == "ended":
                return _Told(message[1])
            _, number, note = message
            context.tell(note).add_done_callback(self._noted(number))

    def _noted(self, number: int) -> "Callable[[Future[None]], None]":
        def done(future: "Future[None]") -> None:
            error = future.exception()
            self.send(("noted", number, None if error is None else str(error)))

        return done

    def close(self) -> None:
        self._pipe.close()
        self.process.join(END_S)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        return f"signal {signal.Signals(-code).name}"
    return f"exit code {code}"


# In the child


def _serve(pipe: Connection) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # the worker decides when it ends
        signal.signal(number, signal.SIG_IGN)
    _ChildMain(pipe).run()


class _ChildMain:
    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._sending = threading.Lock()
        self._notes: dict[int, Future[None]] = {}
        self._last = 0
        self._context: Context | None = None
        self._jobs: list[tuple[Any, ...]] = []
        self._has_job = threading.Semaphore(0)

    def run(self) -> None:
        threading.Thread(target=self._listen, daemon=True).start()
        while True:
            self._has_job.acquire()
            _, task, job, deadline, stop = self._jobs.pop()
            report = self._attempt(task, job, deadline, stop)
            self._send(("ended", report))

    def _attempt(
        self, task: Task[..., Any], job: RunningJob, deadline: datetime | None, stop: StopReason | None
    ) -> JobReport | None:
        handler = of_task(task, middlewares_of(task.app))
        context = self._context = Context(job, self._tell, deadline)
        if stop is not None:
            context.stop(stop)
        try:
            ended = HandlerEnd(handler.run(context))
        except Exception as error:
            ended = HandlerEnd(error=error)
        return report_of(context, ended, False, task.time_limit)

    def _listen(self) -> None:
        while True:
            try:
                message = self._pipe.recv()
            except (EOFError, OSError):
                os._exit(0)  # the worker is gone, and with it the lease
            if message[0] == "run":
                self._jobs.append(message)
                self._has_job.release()
            elif message[0] == "stop" and self._context is not None:
                self._context.stop(message[1])
            elif message[0] == "noted" and (future := self._notes.pop(message[1], None)) is not None:
                if message[2] is None:
                    future.set_result(None)
                else:
                    future.set_exception(NoteRefused(message[2]))

    def _tell(self, note: Note) -> "Future[None]":
        self._last += 1
        future = self._notes[self._last] = Future()
        self._send(("note", self._last, note))
        return future

    def _send(self, message: tuple[Any, ...]) -> None:
        with self._sending:
            self._pipe.send(message)
