"""`Worker`: runs the jobs of an app's tasks, until a signal ends it or `stop` is called."""

import asyncio
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any
from uuid import uuid4

from .app import Corvo, PlainHandler
from .connection import StreamSource
from .handlers import Handler, handlers_of
from .health import HealthServer
from .lanes import Lane
from .ledger import Ledger
from .processes import ProcessRunner
from .runners import LoopRunner, Runner, ThreadRunner
from .tasks import RunsIn
from .watch import HandlerWatch
from .worker_loop import WorkerLoop

CONCURRENCY_DEFAULT = 10
SHUTDOWN_S_DEFAULT = 25.0  # below the 30 s that Kubernetes gives a pod
LEASE_S_DEFAULT = 30.0
EXIT_S = 3.0  # for the program's own loop to end after the drain
LANES_MAX = 40  # each may have a fetch open, and a stream has 64 frames

log = logging.getLogger("corvo.worker")


class Worker:
    """`concurrency`: jobs at a time in the loop, and as many in threads; processes, one for each core at most.

    `queues`: those of the app's tasks, unless named. `prefetch`: jobs claimed beyond the free slots; by default as many
    as end within 50 ms. `health`: `host:port` of `/healthz` and `/metrics`; none by default.
    """

    def __init__(
        self,
        app: Corvo | str,
        *,
        queues: Iterable[str] | None = None,
        concurrency: int = CONCURRENCY_DEFAULT,
        shutdown_timeout: float = SHUTDOWN_S_DEFAULT,
        lease: float = LEASE_S_DEFAULT,
        prefetch: int | None = None,
        worker_id: str | None = None,
        version: str = "",
        health: str | None = None,
    ) -> None:
        if concurrency < 1:
            raise ValueError(f"concurrency is {concurrency}: it must be 1 or more")
        self.app = app if isinstance(app, Corvo) else Corvo(app)
        self.worker_id = worker_id or f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:6]}"
        self._queues = None if queues is None else list(queues)
        self._concurrency = concurrency
        self._shutdown_s = shutdown_timeout
        self._lease_s = lease
        self._prefetch = prefetch
        self._version = version
        self._health = health
        self._worker: WorkerLoop | None = None
        self._serving: asyncio.Task[int] | None = None
        self._exit: Callable[[int], None] = lambda _: None  # of a program that does not end by itself

    @property
    def health_port(self) -> int | None:
        """Of `/healthz` and `/metrics`, once it listens."""
        return None if self._worker is None else self._worker.health_port

    def register(self, queue: str, handler: PlainHandler) -> None:
        """A handler that is called with the `RunningJob`, and with the context if it takes a second argument."""
        self.app.register(queue, handler)

    def run(self) -> int:
        """Until SIGTERM or Ctrl-C; a second one hands running jobs back at once. The exit code: 0 if every job was
        reported, 1 if it was forced or the server could not be told. Call it in the main thread."""
        wake, woken = socket.socketpair()
        wake.setblocking(False)
        woken.setblocking(False)
        # The number of a signal is written there at once, even while a handler keeps Python busy elsewhere.
        before = signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        handled = (signal.SIGTERM, signal.SIGINT)
        old = [signal.signal(number, lambda *_: None) for number in handled]
        self._exit = os._exit
        try:
            with asyncio.Runner() as runner:
                return runner.run(self._serve(signals=woken))
        finally:
            for number, handler in zip(handled, old, strict=True):
                signal.signal(number, handler)
            signal.set_wakeup_fd(before)
            wake.close()
            woken.close()

    async def start(self) -> None:
        """Runs it inside of a program with a loop of its own, such as a web server; `stop` ends it."""
        if self._serving is not None:
            raise RuntimeError("the worker runs already")
        begun = asyncio.Event()
        self._serving = asyncio.ensure_future(self._serve(begun=begun))
        waiting = asyncio.ensure_future(begun.wait())
        await asyncio.wait([self._serving, waiting], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._serving.done():
            self._serving.result()

    async def stop(self) -> int:
        """Drains it. Returns what would be the exit code."""
        if self._serving is None:
            return 0
        if self._worker is not None:
            self._worker.stop()
        serving, self._serving = self._serving, None
        return await serving

    async def _serve(self, signals: socket.socket | None = None, begun: asyncio.Event | None = None) -> int:
        handlers = handlers_of(self.app, self._queues)
        if not handlers:
            raise LookupError("there is nothing to run: no task and no handler is registered")
        loop = asyncio.get_running_loop()
        async with self.app.lifespan() if self.app.lifespan is not None else nullcontext() as resources:
            worker = self._worker = self._make(loop, handlers, resources)
            over: asyncio.Future[int] = loop.create_future()
            services: list[Callable[[], Any]] = []
            if self._health is not None:
                host, _, port = self._health.rpartition(":")
                services.append(HealthServer(worker, host or "0.0.0.0", int(port)).serve)
            if signals is not None:
                services.append(lambda: _watch_signals(worker, signals))
            worker.start(HandlerWatch(loop, threading.get_ident()), services, lambda code: self._end(loop, over, code))
            if begun is not None:
                begun.set()
            try:
                code = await over
            except asyncio.CancelledError:
                worker.stop()
                worker.stop()
                raise
            worker.join(EXIT_S)
        self.app.close()
        return code

    def _end(self, loop: asyncio.AbstractEventLoop, over: "asyncio.Future[int]", code: int) -> None:
        """In the worker's thread, when all is reported. A program that is stuck in a handler is not waited for."""
        ended = threading.Event()

        def tell() -> None:
            ended.set()
            if not over.done():
                over.set_result(code)

        try:
            loop.call_soon_threadsafe(tell)
        except RuntimeError:
            return
        if not ended.wait(EXIT_S):
            log.warning("the event loop is blocked and does not end: exiting")
            self._exit(code)

    def _make(self, loop: asyncio.AbstractEventLoop, handlers: dict[str, Handler], resources: Any) -> WorkerLoop:
        groups = _groups(handlers.values())
        lanes = [Lane([each.queue for each in group], self._slots(group[0]), self._prefetch) for group in groups]
        if len(lanes) > LANES_MAX:
            raise ValueError(f"{len(lanes)} tasks have a concurrency of their own: a worker has room for {LANES_MAX}")
        ledger = Ledger(lanes, self.worker_id, socket.gethostname()[:256], self._lease_s, self._version)
        source = StreamSource(self.app.servers, self.app.api_key, self.app.ca_cert)
        worker = WorkerLoop(source, ledger, handlers, lambda: self.app.client, self._shutdown_s, resources)
        for lane, group in zip(lanes, groups, strict=True):
            runner = _runner(group[0].runs_in, loop, lane.slots, {each.queue: each for each in group}, worker)
            worker.runners.update({each.queue: runner for each in group})
        return worker

    def _slots(self, handler: Handler) -> int:
        if handler.concurrency is not None:
            return handler.concurrency
        return min(self._concurrency, os.cpu_count() or 1) if handler.runs_in == "process" else self._concurrency


def _groups(handlers: Iterable[Handler]) -> list[list[Handler]]:
    """A lane for each task with a concurrency of its own, and one for all others of a kind."""
    groups: dict[tuple[RunsIn, str], list[Handler]] = {}
    for handler in handlers:
        own = handler.queue if handler.concurrency is not None else ""
        groups.setdefault((handler.runs_in, own), []).append(handler)
    return list(groups.values())


def _runner(
    runs_in: RunsIn, loop: asyncio.AbstractEventLoop, slots: int, handlers: dict[str, Handler], worker: WorkerLoop
) -> Runner:
    if runs_in == "loop":
        return LoopRunner(loop, slots, handlers, worker.begin, worker.finished)
    if runs_in == "process":
        return ProcessRunner(slots, handlers, worker.begin, worker.finished)
    return ThreadRunner(slots, lambda held: handlers[held.job.queue].run(worker.begin(held)), worker.finished)


async def _watch_signals(worker: WorkerLoop, signals: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    while True:
        for _ in await loop.sock_recv(signals, 64):
            worker.signalled()
