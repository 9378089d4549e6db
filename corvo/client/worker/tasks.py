"""Tasks: functions that run as jobs.

A call of a task is a plain call. `enqueue`, `delay` and `s` take the same arguments as the function, and type checkers
check them.
"""

import importlib
from collections.abc import Callable, Generator
from datetime import datetime
from typing import Any, Generic, Literal, ParamSpec, Protocol, TypeVar, Unpack, overload

from .arguments import Arguments
from .context import Context, detached
from .handles import JobHandle
from .outcomes import Duration
from .terms import TaskCall, Terms

P = ParamSpec("P")
R = TypeVar("R")
Middleware = Callable[[Context], Generator[None, Any, None]]
RunsIn = Literal["loop", "thread", "process"]


class Enqueues(Protocol):
    """What a task needs of its app."""

    middlewares: list[Middleware]

    def enqueue(self, call: TaskCall) -> JobHandle: ...

    async def aenqueue(self, call: TaskCall) -> JobHandle: ...


class Task(Generic[P, R]):
    """A function, its queue, and the terms of its jobs. Made by `app.task`."""

    __name__: str
    __qualname__: str

    def __init__(
        self,
        app: Enqueues,
        queue: str,
        function: Callable[..., R],
        terms: Terms,
        *,
        is_bound: bool = False,
        runs_in: RunsIn = "thread",
        concurrency: int | None = None,
        time_limit: float | None = None,
        hard_time_limit: float | None = None,
    ) -> None:
        self.app = app
        self.queue = queue
        self.function = function
        self.terms = terms
        self.is_bound = is_bound
        self.runs_in = runs_in
        self.concurrency = concurrency
        self.time_limit = time_limit
        self.hard_time_limit = hard_time_limit
        self.arguments = Arguments(function, is_bound)
        for name in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(self, name, getattr(function, name, None))

    def __reduce__(self) -> Any:
        """By its name, as a function: a process of its own imports the module."""
        return _task_at, (self.__module__, self.__qualname__)

    def __repr__(self) -> str:
        return f"<task {self.queue} {getattr(self.function, '__qualname__', '')}>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls the function, here and now. A bound one gets the context of the attempt that runs here, if any."""
        if not self.is_bound:
            return self.function(*args, **kwargs)
        context = detached(self.queue)
        with context.entered():
            return self.function(context, *args, **kwargs)

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle:
        """Creates a job of this call. Blocks for one request; in a loop, `await task.aenqueue(…)`."""
        return self.app.enqueue(self._call(args, kwargs))

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle:
        return await self.app.aenqueue(self._call(args, kwargs))

    def delay(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle:
        """The same as `enqueue`, under Celery's name."""
        return self.app.enqueue(self._call(args, kwargs))

    async def adelay(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle:
        return await self.app.aenqueue(self._call(args, kwargs))

    def schedule(self, *, at: datetime | None = None, after: Duration | None = None) -> "Task[P, R]":
        """This task at a time, or after one: `send.schedule(at=tomorrow).enqueue("a@b.c")`."""
        if (at is None) == (after is None):
            raise TypeError("give either at= (a time) or after= (a duration)")
        return self.configure(at=at) if at is not None else self.configure(delay=after or 0.0)

    def configure(self, **terms: Unpack[Terms]) -> "Task[P, R]":
        """This task with other terms: `send.configure(priority="high", tags={"team": "a"}).enqueue("a@b.c")`."""
        other = object.__new__(type(self))
        other.__dict__ = {**self.__dict__, "terms": {**self.terms, **terms}}
        return other

    @overload
    def s(self) -> TaskCall: ...
    @overload
    def s(self, *args: P.args, **kwargs: P.kwargs) -> TaskCall: ...
    def s(self, *args: Any, **kwargs: Any) -> TaskCall:
        """A call to be enqueued later, in a chain or a batch. In a chain, the first parameter that is left open gets
        the result of the step before."""
        return TaskCall(self.queue, self.arguments.payload(args, kwargs, is_partial=True), self.terms)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TaskCall:
        return TaskCall(self.queue, self.arguments.payload(args, kwargs), self.terms)


def _task_at(module: str, name: str) -> Any:
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found
