"""`Corvo`: the tasks of a program, and a connection to enqueue their jobs. It runs nothing.

Making one opens no connection, so a module with tasks can be imported anywhere.
"""

import asyncio
import inspect
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar, Unpack, overload

from .. import DEFAULT_SERVER
from ..bodies import BatchBody, ChainBody, EnqueueBatchBody, StepBody
from ..http import Client
from .context import Context
from .handles import BatchHandle, JobHandle
from .tasks import Middleware, RunsIn, Task
from .terms import TaskCall, Terms

P = ParamSpec("P")
R = TypeVar("R")
Lifespan = Callable[[], AbstractAsyncContextManager[Any]]
PlainHandler = Callable[..., Any]  # (job) or (job, context)


class Decorator(Protocol):
    """Makes a task of a function. It keeps the function's parameters."""

    def __call__(self, function: Callable[P, R], /) -> Task[P, R]: ...


class BoundDecorator(Protocol):
    """The same for a function whose first parameter is the context."""

    def __call__(self, function: Callable[Concatenate[Context, P], R], /) -> Task[P, R]: ...


class Corvo:
    """`Corvo("http://localhost:8080")`, several addresses of one cluster with commas, or none: `CORVO_SERVER`
    or `CORVO_URL`.

    `lifespan` is an async context manager around each worker process; `ctx.resources` is what it yields.
    """

    def __init__(
        self,
        server: str | None = None,
        *,
        api_key: str | None = None,
        ca_cert: str | None = None,
        lifespan: Lifespan | None = None,
    ) -> None:
        named = server or os.environ.get("CORVO_SERVER") or os.environ.get("CORVO_URL") or DEFAULT_SERVER
        self.servers = [each.strip() for each in named.split(",") if each.strip()]
        self.api_key = api_key or os.environ.get("CORVO_API_KEY") or None
        self.ca_cert = ca_cert or os.environ.get("CORVO_CA_CERT") or None
        self.lifespan = lifespan
        self.tasks: dict[str, Task[..., Any]] = {}  # by queue
        self.handlers: dict[str, PlainHandler] = {}  # by queue
        self.middlewares: list[Middleware] = []
        self._client: Client | None = None
        self._opening = threading.Lock()

    # Tasks

    @overload
    def task(
        self,
        queue: str,
        *,
        bind: Literal[True],
        runs_in: RunsIn | None = None,
        concurrency: int | None = None,
        time_limit: float | None = None,
        hard_time_limit: float | None = None,
        **terms: Unpack[Terms],
    ) -> BoundDecorator: ...
    @overload
    def task(
        self,
        queue: str,
        *,
        bind: Literal[False] = False,
        runs_in: RunsIn | None = None,
        concurrency: int | None = None,
        time_limit: float | None = None,
        hard_time_limit: float | None = None,
        **terms: Unpack[Terms],
    ) -> Decorator: ...
    def task(
        self,
        queue: str,
        *,
        bind: bool = False,
        runs_in: RunsIn | None = None,
        concurrency: int | None = None,
        time_limit: float | None = None,
        hard_time_limit: float | None = None,
        **terms: Unpack[Terms],
    ) -> Any:
        """Makes the function the handler of a queue.

        `bind`: its first parameter is the `Context`. `runs_in`: `async def` runs in the loop, `def` in a thread, or in
        a process if you say so. `concurrency`: slots of its own. `time_limit`: seconds after which it is asked to stop;
        `hard_time_limit`: after which the attempt has failed. The other terms are those of its jobs."""

        def decorate(function: Callable[..., Any]) -> Task[..., Any]:
            made: Task[..., Any] = Task(
                self,
                queue,
                function,
                terms,
                is_bound=bind,
                runs_in=_place(function, runs_in),
                concurrency=_positive(concurrency, "concurrency"),
                time_limit=_positive(time_limit, "time_limit"),
                hard_time_limit=_positive(hard_time_limit, "hard_time_limit"),
            )
            self._check_free(queue)
            self.tasks[queue] = made
            return made

        return decorate

    def register(self, queue: str, handler: PlainHandler) -> None:
        """A handler without a task: called with the `RunningJob`, and the context if it takes a second argument."""
        self._check_free(queue)
        self.handlers[queue] = handler

    def middleware(self, function: Middleware) -> Middleware:
        """Runs around every handler, in the order of registration: a generator function of the context with one
        `yield`. An error of the handler is raised there."""
        if not inspect.isgeneratorfunction(function):
            raise TypeError(f"{function!r} is no generator function: a middleware yields once, where the handler runs")
        self.middlewares.append(function)
        return function

    # Jobs

    @property
    def client(self) -> Client:
        """Opened when it is first needed; safe in threads."""
        with self._opening:
            if self._client is None:
                self._client = Client(self.servers[0], api_key=self.api_key, ca_cert=self.ca_cert)
            return self._client

    def enqueue(self, call: TaskCall) -> JobHandle:
        made = self.client.enqueue(call.body())
        return JobHandle(lambda: self.client, made.job_id, made.status, made.unique_existing)

    async def aenqueue(self, call: TaskCall) -> JobHandle:
        return await asyncio.to_thread(self.enqueue, call)

    def chain(self, *calls: TaskCall, on_failure: TaskCall | None = None, on_exit: TaskCall | None = None) -> JobHandle:
        """One job after another: each gets the result of the one before. Terms count for the first: the others are
        created by the server, with its defaults."""
        if not calls:
            raise TypeError("a chain has at least one call")
        body = calls[0].body()
        body.chain = ChainBody([call.step() for call in calls], _step(on_failure), _step(on_exit))
        made = self.client.enqueue(body)
        return JobHandle(lambda: self.client, made.job_id, made.status, made.unique_existing)

    def batch(
        self,
        *calls: TaskCall | Sequence[TaskCall],
        on_complete: TaskCall | None = None,
        on_success: TaskCall | None = None,
        on_failure: TaskCall | None = None,
        description: str = "",
    ) -> BatchHandle:
        """Many jobs, all or none, and a job when all have ended: it gets the counts as its parameter `batch`."""
        flat = [one for each in calls for one in ([each] if isinstance(each, TaskCall) else each)]
        batch = BatchBody(
            on_complete=_step(on_complete),
            on_success=_step(on_success),
            on_failure=_step(on_failure),
            description=description,
        )
        made = self.client.enqueue_batch(EnqueueBatchBody([call.body() for call in flat], batch))
        return BatchHandle(lambda: self.client, made.batch_id or "", made.job_ids)

    async def achain(
        self, *calls: TaskCall, on_failure: TaskCall | None = None, on_exit: TaskCall | None = None
    ) -> JobHandle:
        return await asyncio.to_thread(lambda: self.chain(*calls, on_failure=on_failure, on_exit=on_exit))

    async def abatch(self, *calls: TaskCall | Sequence[TaskCall], on_complete: TaskCall | None = None) -> BatchHandle:
        return await asyncio.to_thread(lambda: self.batch(*calls, on_complete=on_complete))

    def close(self) -> None:
        with self._opening:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _check_free(self, queue: str) -> None:
        if queue in self.tasks or queue in self.handlers:
            raise ValueError(f"the queue {queue!r} has a handler already: a queue has one")


def _place(function: Callable[..., Any], runs_in: RunsIn | None) -> RunsIn:
    is_async = inspect.iscoroutinefunction(function)
    if runs_in is None:
        return "loop" if is_async else "thread"
    if is_async != (runs_in == "loop"):
        kind = "async def" if is_async else "def"
        raise TypeError(f"a {kind} cannot run in a {runs_in}: async def runs in the loop, def in a thread or process")
    return runs_in


N = TypeVar("N", int, float)


def _positive(number: N | None, name: str) -> N | None:
    if number is not None and number <= 0:
        raise ValueError(f"{name} is {number}: it must be more than 0")
    return number


def _step(call: TaskCall | None) -> StepBody | None:
    return None if call is None else call.step()
