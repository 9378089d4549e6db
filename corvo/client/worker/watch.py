"""What goes wrong in a program around its jobs: a blocked loop, and handlers beyond their time limits.

Looked at from the worker's own thread, a few times a second.
"""

import logging
import sys
import time
import traceback
from asyncio import AbstractEventLoop
from typing import Protocol

from .context import Context, StopReason
from .handlers import Handler
from .ledger import Held, Ledger
from .reports import JobReport, failure
from .runners import Runner
from .tally import WorkerTally

BLOCKED_S = 5.0  # a loop that is silent for longer is told of, and makes the worker unhealthy
STUCK_S = 5.0  # a handler that goes on so long after it was asked to stop
FRAMES_TOLD = 12

log = logging.getLogger("corvo.worker")


class Watched(Protocol):
    """The worker, as far as it is looked at."""

    ledger: Ledger
    tally: WorkerTally
    handlers: dict[str, Handler]
    runners: dict[str, Runner]

    def stop_job(self, held: Held, reason: StopReason) -> None: ...

    def report(self, held: Held, report: JobReport | None) -> None: ...

    def begin(self, held: Held) -> Context: ...


class HandlerWatch:
    """`loop` is the program's, in the thread `thread`."""

    def __init__(self, loop: AbstractEventLoop, thread: int) -> None:
        self._loop = loop
        self._thread = thread
        self._asked_at = 0.0  # 0: no question is open
        self._is_told = False
        self._stuck: dict[Held, float] = {}  # told of, and when it was asked to stop
        self._late: dict[Held, float] = {}

    def look(self, worker: Watched) -> None:
        now = time.monotonic()
        self._look_at_loop(worker, now)
        for held in list(worker.ledger.held.values()):
            if held.started_at and not held.has_ended:
                self._look_at(worker, held, now)
        for held in [one for one in self._late if one.has_ended]:
            del self._late[held]
            self._stuck.pop(held, None)
        for held in self._late:
            self._tell_stuck(worker, held, now)
        worker.tally.stuck = len(self._stuck)

    def _look_at_loop(self, worker: Watched, now: float) -> None:
        asked_at = self._asked_at  # the other thread may clear it at any time
        if not asked_at:
            self._asked_at = now
            worker.tally.blocked_s = 0.0
            try:
                self._loop.call_soon_threadsafe(self._answered)
            except RuntimeError:
                self._asked_at = 0.0  # the program ends
            return
        blocked_s = worker.tally.blocked_s = now - asked_at
        if blocked_s >= BLOCKED_S and not self._is_told:
            self._is_told = True
            log.warning(
                "the event loop has not run for %.0f s: a handler blocks it. Heartbeats go on, but no other handler of"
                " the loop does. Use def instead of async def, or asyncio.to_thread. It is here:\n%s",
                blocked_s,
                _stack(self._thread),
            )

    def _answered(self) -> None:
        self._asked_at = 0.0
        self._is_told = False

    def _look_at(self, worker: Watched, held: Held, now: float) -> None:
        handler = worker.handlers[held.job.queue]
        ran_s = now - held.started_at
        if handler.time_limit is not None and ran_s >= handler.time_limit and held.asked_to_stop is None:
            worker.stop_job(held, "time_limit")
        if handler.hard_time_limit is not None and ran_s >= handler.hard_time_limit and not held.is_over:
            worker.stop_job(held, "time_limit")
            worker.runners[held.job.queue].interrupt(held, is_hard=True)
            error = TimeoutError(f"the hard time limit of {handler.hard_time_limit:g} s is over")
            worker.report(held, failure(held.context or worker.begin(held), error))
        if held.is_interrupted or held.is_over:
            self._late.setdefault(held, now)

    def _tell_stuck(self, worker: Watched, held: Held, now: float) -> None:
        since = self._late[held]
        if now - since < STUCK_S or held in self._stuck:
            return
        self._stuck[held] = since
        thread = worker.runners[held.job.queue].stack_of(held)
        log.error(
            "job %s of %s goes on %.0f s after it was asked to stop (%s): its slot stays taken%s",
            held.job.job_id,
            held.job.queue,
            now - since,
            held.asked_to_stop or "its time is over",
            f". It is here:\n{_stack(thread)}" if thread is not None else "",
        )


def _stack(thread: int) -> str:
    frame = sys._current_frames().get(thread)
    return "".join(traceback.format_stack(frame)[-FRAMES_TOLD:]) if frame is not None else "nowhere: it has ended"
