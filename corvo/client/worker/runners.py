"""Where handlers run: in the loop, in threads. (`processes.py` has processes.)

A runner begins jobs while it has slots, first in, first out. `finished` is called in the runner's own thread when a
handler has ended; `withdraw` gives back the jobs that have not begun.
"""

import asyncio
import ctypes
import threading
import time
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from .context import Context, StopReason
from .handlers import Handler
from .ledger import Held
from .reports import HandlerEnd

Finished = Callable[[Held, HandlerEnd], None]
Begin = Callable[[Held], Context]  # makes the context of an attempt
THREAD_NAME = "corvo-handler"


class HardTimeLimit(BaseException):
    """Raised inside of a thread whose handler is beyond its hard time limit. No handler catches it by `Exception`."""


class Runner(Protocol):
    def submit(self, helds: list[Held]) -> None: ...

    def withdraw(self) -> list[Held]: ...

    def tell_stop(self, held: Held, reason: StopReason) -> None:
        """The context was told; a process of its own has another one."""

    def interrupt(self, held: Held, is_hard: bool) -> None:
        """Makes the handler stop, as far as that can be done."""

    def stack_of(self, held: Held) -> int | None:
        """The thread in which it runs, for a report."""

    def close(self) -> None: ...


class LoopRunner:
    """`async def` handlers: a task for each, in the program's loop."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, slots: int, handler: dict[str, Handler], begin: Begin, finished: Finished
    ) -> None:
        self._loop = loop
        self._slots = slots
        self._handlers = handler
        self._begin = begin
        self._finished = finished
        self._waiting: deque[Held] = deque()
        self._running = 0
        self._is_called = False
        self._thread = threading.get_ident()

    def submit(self, helds: list[Held]) -> None:
        self._waiting.extend(helds)
        if not self._is_called:
            self._is_called = True
            self._loop.call_soon_threadsafe(self._pump)

    def _pump(self) -> None:
        self._is_called = False
        self._thread = threading.get_ident()
        while self._running < self._slots:
            try:
                held = self._waiting.popleft()
            except IndexError:
                return
            self._running += 1
            held.started_at = time.monotonic()
            held.runner = self._loop.create_task(self._run(held))

    async def _run(self, held: Held) -> None:
        try:
            context = self._begin(held)
            ended = HandlerEnd(await self._handlers[held.job.queue].arun(context))
        except asyncio.CancelledError as error:
            ended = HandlerEnd(error=error)
        except Exception as error:
            ended = HandlerEnd(error=error)
        self._running -= 1
        self._finished(held, ended)
        if self._waiting:
            self._pump()

    def withdraw(self) -> list[Held]:
        return _emptied(self._waiting.popleft)

    def tell_stop(self, held: Held, reason: StopReason) -> None:
        pass

    def interrupt(self, held: Held, is_hard: bool) -> None:
        task = held.runner
        if isinstance(task, asyncio.Task):
            self._loop.call_soon_threadsafe(task.cancel)

    def stack_of(self, held: Held) -> int | None:
        return self._thread

    def close(self) -> None:
        pass  # its tasks are the loop's


class ThreadRunner:
    """`def` handlers: as many threads as jobs at a time, at most one for each slot."""

    def __init__(self, slots: int, call: Callable[[Held], Any], finished: Finished) -> None:
        self._slots = slots
        self._call = call
        self._finished = finished
        self._waiting: SimpleQueue[Held | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    def submit(self, helds: list[Held]) -> None:
        for held in helds:
            self._waiting.put(held)
        for _ in range(min(len(helds), self._slots - len(self._threads))):
            thread = threading.Thread(target=self._work, name=THREAD_NAME, daemon=True)
            self._threads.append(thread)
            thread.start()

    def _work(self) -> None:
        me = threading.get_ident()
        running: Held | None = None
        while True:
            try:
                running = self._waiting.get()
                if running is None:
                    self._leave()
                    return
                running.runner = me
                running.started_at = time.monotonic()
                try:
                    ended = HandlerEnd(self._call(running))
                except Exception as error:
                    ended = HandlerEnd(error=error)
                running.runner = None
                self._finish(running, ended)
                running = None
            except HardTimeLimit:
                if running is not None:  # it may have ended just now: a second end of a job is ignored
                    running.runner = None
                    self._finished(running, HandlerEnd(error=TimeoutError("the hard time limit is over")))

    def _finish(self, held: Held, ended: HandlerEnd) -> None:
        self._finished(held, ended)

    def _leave(self) -> None:
        """The thread ends."""

    def withdraw(self) -> list[Held]:
        taken: list[Held] = []
        while True:
            try:
                held = self._waiting.get_nowait()
            except Empty:
                return taken
            if held is not None:
                taken.append(held)

    def tell_stop(self, held: Held, reason: StopReason) -> None:
        pass

    def interrupt(self, held: Held, is_hard: bool) -> None:
        """A thread is asked by its context. Beyond the hard limit an error is raised in it, at its next line of
        Python."""
        if is_hard and isinstance(held.runner, int):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(held.runner), ctypes.py_object(HardTimeLimit))

    def stack_of(self, held: Held) -> int | None:
        return held.runner if isinstance(held.runner, int) else None

    def close(self) -> None:
        for _ in self._threads:
            self._waiting.put(None)


def _emptied(pop: Callable[[], Held]) -> list[Held]:
    taken: list[Held] = []
    while True:
        try:
            taken.append(pop())
        except IndexError:
            return taken
