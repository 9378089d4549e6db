"""A handler: what runs for the jobs of one queue, and the call of one attempt.

Middlewares are around the call: generator functions with one yield, which serve `def` and `async def` alike.
"""

import inspect
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import msgspec

from .app import Corvo
from .context import Context, RunningJob
from .tasks import Enqueues, RunsIn, Task


class NoHandler(LookupError):
    """The queue has no handler in this program."""


class Handler(msgspec.Struct, frozen=True, eq=False):
    queue: str
    runs_in: RunsIn
    arguments: Callable[[Context], tuple[tuple[Any, ...], dict[str, Any]]]
    function: Callable[..., Any]
    middlewares: Sequence[Callable[[Context], Any]] = ()
    concurrency: int | None = None
    time_limit: float | None = None
    hard_time_limit: float | None = None
    task: Any = None  # the `Task`, by which another process finds it

    def run(self, context: Context) -> Any:
        """A `def`, in this thread."""
        with context.entered():
            if not self.middlewares:
                args, kwargs = self.arguments(context)
                return self.function(*args, **kwargs)
            with ExitStack() as around:
                for middleware in self.middlewares:
                    around.enter_context(middleware(context))
                args, kwargs = self.arguments(context)
                return self.function(*args, **kwargs)

    async def arun(self, context: Context) -> Any:
        """An `async def`, in this loop."""
        with context.entered():
            if not self.middlewares:
                args, kwargs = self.arguments(context)
                return await self.function(*args, **kwargs)
            with ExitStack() as around:
                for middleware in self.middlewares:
                    around.enter_context(middleware(context))
                args, kwargs = self.arguments(context)
                return await self.function(*args, **kwargs)


def handlers_of(app: Corvo, queues: Iterable[str] | None = None) -> dict[str, Handler]:
    """By queue. With `queues`, those: a queue without a handler is a mistake that is found at the start."""
    around = middlewares_of(app)
    found = {queue: of_task(task, around) for queue, task in app.tasks.items()}
    found |= {queue: _plain(queue, handler, around) for queue, handler in app.handlers.items()}
    if queues is None:
        return found
    missing = [queue for queue in queues if queue not in found]
    if missing:
        known = ", ".join(sorted(found)) or "none"
        raise NoHandler(f"no task and no handler is registered for {', '.join(missing)}; there is: {known}")
    return {queue: found[queue] for queue in queues}


def of_task(task: Task[..., Any], around: Sequence[Callable[[Context], Any]] = ()) -> Handler:
    read, is_bound = task.arguments.read, task.is_bound

    def arguments(context: Context) -> tuple[tuple[Any, ...], dict[str, Any]]:
        args, kwargs = read(bytes(context.job.payload))
        return ((context, *args), kwargs) if is_bound else (args, kwargs)

    return Handler(
        task.queue,
        task.runs_in,
        arguments,
        task.function,
        around,
        task.concurrency,
        task.time_limit,
        task.hard_time_limit,
        task,
    )


def _plain(queue: str, function: Callable[..., Any], around: Sequence[Callable[[Context], Any]]) -> Handler:
    takes_context = len(inspect.signature(function).parameters) > 1

    def arguments(context: Context) -> tuple[tuple[Any, ...], dict[str, Any]]:
        job: RunningJob = context.job
        return ((job, context) if takes_context else (job,)), {}

    runs_in: RunsIn = "loop" if inspect.iscoroutinefunction(function) else "thread"
    return Handler(queue, runs_in, arguments, function, around)


def middlewares_of(app: Enqueues) -> Sequence[Callable[[Context], Any]]:
    return [contextmanager(one) for one in app.middlewares]
