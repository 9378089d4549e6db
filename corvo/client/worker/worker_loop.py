"""The worker's own thread: the stream, credits, heartbeats, reports and the drain.

It runs a loop of its own, so a handler that blocks the program's loop delays no heartbeat. Runners call `finished` and
contexts call `tell` from any thread; both only leave a word and wake this loop.
"""

import asyncio
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import msgspec
import websockets
from websockets.asyncio.client import ClientConnection

from ..bodies import CancelBody, HoldBody
from ..calls import ServerRefused
from ..http import Client, Unreachable
from .connection import StreamLost, StreamSource
from .context import Context, Note, StopReason, deadline_after
from .frames import decode_reply, encode_frame
from .handlers import Handler, NoHandler
from .ledger import Held, Ledger
from .reports import HandlerEnd, JobReport, failure, handed_back, report_of
from .runners import Runner
from .tally import WorkerTally
from .watch import HandlerWatch

TICK_S = 0.25
FETCH_WAIT_MS = 1_000  # short: a worker that stops waits for the answer, so that no job is claimed for nobody
INTERRUPTED_S = 1.0  # for handlers that were interrupted to clean up
REPORT_S_MAX = 5.0  # for the last reports, when the server is slow or away
GRACE_OF_CANCEL = "30s"

log = logging.getLogger("corvo.worker")


class WorkerLoop:
    def __init__(
        self,
        source: StreamSource,
        ledger: Ledger,
        handlers: dict[str, Handler],
        open_client: Callable[[], Client],
        shutdown_s: float,
        resources: Any,
    ) -> None:
        self.ledger = ledger
        self.handlers = handlers
        self.runners: dict[str, Runner] = {}  # by queue
        self.tally = WorkerTally()
        self.connected_to: str | None = None
        self.heard_at = time.monotonic()  # when the server last answered
        self.exit_code: int | None = None
        self.health_port: int | None = None  # where `/healthz` is, once it listens
        self.is_draining = False
        self._source = source
        self._open_client = open_client
        self._shutdown_s = shutdown_s
        self._resources = resources
        self._ends: deque[tuple[Held, HandlerEnd, float]] = deque()
        self._notes: deque[tuple[Held, Note, Future[None]]] = deque()
        self._is_called = False
        self._signals = 0
        self._loop = asyncio.new_event_loop()
        self._wake = asyncio.Event()
        self._changed = asyncio.Event()  # something ended or was settled
        self._drain = asyncio.Event()
        self._force = asyncio.Event()
        self._actions: set[asyncio.Task[None]] = set()
        self._watch: HandlerWatch | None = None
        self._services: list[Callable[[], Any]] = []
        self._thread = threading.Thread(target=self._main, name="corvo-worker", daemon=True)
        self._over: Callable[[int], None] = lambda _: None

    # From other threads

    def start(self, watch: HandlerWatch, services: list[Callable[[], Any]], over: Callable[[int], None]) -> None:
        """`services` are coroutine functions that run beside it; `over` is called, in this thread, with the exit
        code."""
        self._watch, self._services, self._over = watch, services, over
        self._thread.start()

    def stop(self) -> None:
        """Once: drain. Twice: now."""
        self._loop.call_soon_threadsafe(self.signalled)

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    def begin(self, held: Held) -> Context:
        """The context of an attempt that begins; called by its runner."""
        handler = self.handlers[held.job.queue]
        context = Context(
            held.job, lambda note: self._tell(held, note), deadline_after(handler.time_limit), self._resources
        )
        held.context = context
        if held.asked_to_stop is not None:
            context.stop(held.asked_to_stop)
        return context

    def finished(self, held: Held, ended: HandlerEnd) -> None:
        self._ends.append((held, ended, time.monotonic()))
        self._call()

    def _tell(self, held: Held, note: Note) -> "Future[None]":
        future: Future[None] = Future()
        self._notes.append((held, note, future))
        self._call()
        return future

    def _call(self) -> None:
        if not self._is_called:
            self._is_called = True
            try:
                self._loop.call_soon_threadsafe(self._take_words)
            except RuntimeError:
                pass  # it has ended: the lease decides

    # In this thread

    def _main(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self.exit_code = self._loop.run_until_complete(self._run())
        finally:
            self._loop.close()
            self._over(70 if self.exit_code is None else self.exit_code)

    async def _run(self) -> int:
        work: list[Callable[[], Any]] = [self._stay_connected, self._tick, *self._services]
        tasks = [asyncio.ensure_future(each()) for each in work]
        draining = asyncio.ensure_future(self._await_drain())
        try:
            done, _ = await asyncio.wait([draining, *tasks], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()  # a service never ends: if one did, this says why
            return draining.result()
        finally:
            for task in [draining, *tasks]:
                task.cancel()
            await asyncio.gather(draining, *tasks, return_exceptions=True)
            for runner in set(self.runners.values()):
                runner.close()

    def signalled(self) -> None:
        self._signals += 1
        if self._signals == 1:
            log.info(
                "stopping: no more jobs; %d are running", sum(not one.is_over for one in self.ledger.held.values())
            )
            self._drain.set()
        elif self._signals == 2:
            log.warning("stopping now: running jobs are handed back")
            self._force.set()
        else:
            os._exit(130)

    def _take_words(self) -> None:
        self._is_called = False
        while self._notes:
            held, note, future = self._notes.popleft()
            future.add_done_callback(_log_refusal)
            self.ledger.note(held, note, future)
        while self._ends:
            self._take_end(*self._ends.popleft())
        self._wake.set()
        self._changed.set()

    def _take_end(self, held: Held, ended: HandlerEnd, now: float) -> None:
        if held.has_ended:
            return
        held.has_ended = True
        seconds = now - held.started_at
        held.lane.ended(seconds)
        self.tally.ran(held.job.queue, seconds)
        if held.is_over:
            return  # reported already: handed back, or beyond its hard time limit
        context: Context = held.context or self.begin(held)
        if ended.error is not None and not isinstance(ended.error, asyncio.CancelledError):
            log.debug("job %s of %s failed", held.job.job_id, held.job.queue, exc_info=ended.error)
        handler = self.handlers[held.job.queue]
        report = report_of(context, ended, held.is_interrupted, handler.time_limit or handler.hard_time_limit)
        self.report(held, report)

    def report(self, held: Held, report: JobReport | None) -> None:
        if report is None or not report.action:
            self.ledger.report(held, report)
            return
        held.is_over = True
        action = asyncio.ensure_future(self._act(held, report))
        self._actions.add(action)
        action.add_done_callback(self._actions.discard)

    async def _act(self, held: Held, report: JobReport) -> None:
        """Hold and cancel are requests of their own: the stream has none."""
        job_id = held.job.job_id
        try:
            if report.action == "hold":
                await asyncio.to_thread(self._open_client().hold, job_id, HoldBody(report.reason))
            else:
                await asyncio.to_thread(self._open_client().cancel, job_id, CancelBody(GRACE_OF_CANCEL))
        except (ServerRefused, Unreachable) as error:
            if not (isinstance(error, ServerRefused) and error.code == "WRONG_STATE"):  # done by an earlier attempt
                log.error("job %s: cannot %s it: %s", job_id, report.action, error)
                report = failure(held.context, RuntimeError(f"cannot {report.action} the job: {error}"))
        self.ledger.report(held, None if report.item is None else JobReport(report.item))
        self._wake.set()
        self._changed.set()

    # The stream

    async def _stay_connected(self) -> None:
        was_lost = ""
        while True:
            server = self._source.server
            try:
                stream = await self._source.open()
            except StreamLost as lost:
                if str(lost) != was_lost:
                    log.warning("%s; trying again", lost)
                was_lost = str(lost)
                await self._source.pause()
                continue
            log.info("connected to %s", server)
            was_lost = ""
            self.connected_to = server
            self.tally.connections += 1
            self.heard_at = time.monotonic()
            sending = asyncio.ensure_future(self._send(stream))
            try:
                await self._receive(stream)
            except (websockets.ConnectionClosed, StreamLost) as lost:
                log.warning("the stream to %s was lost: %s; connecting again", server, lost)
            finally:
                self.connected_to = None
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
                self.ledger.lost_connection()
                stream.transport.abort()
            self._source.lost()
            await self._source.pause()

    async def _send(self, stream: ClientConnection) -> None:
        try:
            while True:
                now = time.monotonic()
                self._wake.clear()
                for frame in self.ledger.frames(now, FETCH_WAIT_MS):
                    await stream.send(encode_frame(frame), text=True)
                pause = self.ledger.resume_at - now
                if pause > 0:
                    self._loop.call_later(pause, self._wake.set)
                await self._wake.wait()
        except websockets.ConnectionClosed:
            pass  # the receiver says so

    async def _receive(self, stream: ClientConnection) -> None:
        while True:
            raw = await stream.recv(decode=False)
            now = self.heard_at = time.monotonic()
            try:
                reply = decode_reply(raw)
            except msgspec.MsgspecError as error:
                raise StreamLost(f"an answer cannot be read ({error}): is the server of another version?") from None
            settled = self.ledger.answered(reply, now)
            for what, count in settled.counts.items():
                self.tally.outcomes[what] += count
            for complaint in settled.complaints:
                log.error(complaint)
            for held, reason in settled.stopped:
                self.stop_job(held, reason)
            if settled.claimed:
                self._begin_jobs(settled.claimed)
            self._wake.set()
            self._changed.set()

    def _begin_jobs(self, claimed: list[Held]) -> None:
        if self.is_draining:
            for held in claimed:
                self._hand_back(held)
            return
        by_runner: dict[Runner, list[Held]] = {}
        for held in claimed:
            runner = self.runners.get(held.job.queue)
            if runner is None:
                held.has_ended = True
                held.lane.returned()
                context = Context(held.job, lambda note: Future())
                self.ledger.report(
                    held, failure(context, NoHandler(f"this worker has no handler for {held.job.queue}"))
                )
            else:
                by_runner.setdefault(runner, []).append(held)
        for runner, helds in by_runner.items():
            runner.submit(helds)

    def stop_job(self, held: Held, reason: StopReason) -> None:
        """Asks a handler to stop, and interrupts it where that can be done; a shutdown lets it end first."""
        held.asked_to_stop = reason
        if held.context is not None:
            held.context.stop(reason)
        runner = self.runners[held.job.queue]
        runner.tell_stop(held, reason)
        if reason != "shutdown":
            held.is_interrupted = True
            runner.interrupt(held, is_hard=False)

    async def _tick(self) -> None:
        assert self._watch is not None
        while True:
            self.ledger.renew(time.monotonic())
            self._watch.look(self)
            self._wake.set()
            await asyncio.sleep(TICK_S)

    # The end

    async def _await_drain(self) -> int:
        await self._drain.wait()
        deadline = time.monotonic() + self._shutdown_s
        self.is_draining = True
        self.ledger.is_fetching = False
        for runner in set(self.runners.values()):
            for held in runner.withdraw():
                self._hand_back(held)
        for held in self._unfinished():
            self.stop_job(held, "shutdown")
        self._wake.set()
        reserve_s = min(INTERRUPTED_S, self._shutdown_s / 4)
        await self._until(lambda: not self._unfinished(), deadline - reserve_s)
        for held in self._unfinished():  # out of time: those of the loop may clean up
            held.is_interrupted = True
            self.runners[held.job.queue].interrupt(held, is_hard=False)
        if not self._force.is_set():
            await self._until(lambda: not self._unfinished(), deadline)
        for held in self._unfinished():
            log.warning("job %s of %s did not end in time and is handed back", held.job.job_id, held.job.queue)
            self._hand_back(held)
        self._wake.set()
        last = time.monotonic() + REPORT_S_MAX
        await self._until(lambda: not self._pending(), last, is_forced=False)
        left = self.ledger.unsettled + len(self._actions)
        log.info(
            "stopped: %d completed, %d handed back%s",
            self.tally.outcomes["completed"],
            self.tally.handed_back,
            f", {left} not told to the server" if left else "",
        )
        return 1 if left or self._force.is_set() else 0

    def _unfinished(self) -> list[Held]:
        return [held for held in self.ledger.held.values() if not held.is_over]

    def _pending(self) -> int:
        return self.ledger.unsettled + len(self._actions) + self.ledger.open_fetches

    def _hand_back(self, held: Held) -> None:
        """Jobs that never began, and those that do not end."""
        if held.context is None and not held.has_ended:
            held.lane.returned()
            held.has_ended = True
        context = held.context or Context(held.job, lambda note: Future())
        self.tally.handed_back += 1
        self.ledger.report(held, handed_back(context))

    async def _until(self, is_true: Callable[[], bool], deadline: float, is_forced: bool = True) -> None:
        """Until then, or the deadline, or a second signal."""
        while not is_true() and not (is_forced and self._force.is_set()):
            left = deadline - time.monotonic()
            if left <= 0:
                return
            self._changed.clear()
            waits = [asyncio.ensure_future(self._changed.wait())]
            if is_forced:
                waits.append(asyncio.ensure_future(self._force.wait()))
            await asyncio.wait(waits, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()


def _log_refusal(future: "Future[None]") -> None:
    if not future.cancelled() and (error := future.exception()) is not None:
        log.warning("a note of a handler was not stored: %s", error)
