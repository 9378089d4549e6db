"""The Python library as the conformance suite drives it: one JSON object a line in, one out (README.md)."""

import asyncio
import inspect
import sys
import threading
import typing
from collections.abc import Coroutine
from itertools import islice
from typing import Any

import msgspec

from corvo.client import Client, bodies, errors, refusals
from corvo.client.errors import CorvoError, ServerRefused
from corvo.client.worker import Context, Discard, RunningJob, Snooze
from corvo.client.worker.worker import Worker

STOP_S = 45.0

# The words of the suite. The library has a class for each code, below these.
_CLASSES = (
    *(refusals.LeaseLost, refusals.WrongState, refusals.Overloaded, errors.NotFound, errors.InvalidRequest),
    *(errors.Unauthorized, errors.Forbidden, errors.Unavailable, errors.Unreachable),
)
_TYPES = {name: getattr(bodies, name) for name in dir(bodies) if not name.startswith("_")}


async def handle(job: RunningJob, context: Context) -> Any:
    """Does what the payload says (README.md)."""
    steps = msgspec.json.decode(job.payload)["steps"]
    for number in range(_snoozed.get(job.job_id, 0), len(steps)):
        ((step, value),) = steps[number].items()
        if step == "sleep_ms":
            await asyncio.sleep(value / 1000)
        elif step == "progress":
            await context.progress(**value)
        elif step == "checkpoint":
            await context.checkpoint(value)
        elif step == "return":
            return value
        elif step == "return_checkpoint":
            return context.saved
        elif step == "fail":
            raise RuntimeError(value)
        elif step == "discard":
            raise Discard(value)
        elif step == "snooze_ms":
            _snoozed[job.job_id] = number + 1
            raise Snooze(value / 1000)
        else:
            assert step == "until_cancelled", step
            while not context.cancelled:
                await asyncio.sleep(0.02)
            return None
    return None


_snoozed: dict[str, int] = {}  # job → the step behind the one that snoozed it


class LibraryHarness:
    def __init__(self) -> None:
        self._worker: Worker | None = None
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._client: Client | None = None
        self._url = ""

    def open(self, asked: dict[str, Any]) -> None:
        self._url = asked["url"]
        self._client = Client(self._url, deadline_s=asked["deadline_ms"] / 1000)

    def call(self, asked: dict[str, Any]) -> Any:
        client = self._client
        assert client is not None
        if deadline_ms := asked.get("deadline_ms"):
            client = Client(self._url, deadline_s=deadline_ms / 1000)
        method = getattr(client, asked["name"])
        sent = asked["body"] if asked["body"] is not None else asked["query"] or None
        arguments = [] if sent is None else [msgspec.convert(sent, _struct_of(method))]
        return method(*asked["path"], *arguments)

    def events(self, asked: dict[str, Any]) -> Any:
        assert self._client is not None
        query = msgspec.convert(asked["query"], bodies.EventsQuery)
        return list(islice(self._client.events(query), asked["count"]))

    def work(self, asked: dict[str, Any]) -> None:
        self._worker = Worker(
            self._url, concurrency=asked["concurrency"], worker_id=asked["worker_id"], lease=asked["lease_s"]
        )
        for queue in asked["queues"]:
            self._worker.register(queue, handle)
        self._wait(self._worker.start())

    def drain(self, asked: dict[str, Any]) -> None:
        if self._worker is not None:
            self._wait(self._worker.stop())
            self._worker = None

    def _wait(self, work: Coroutine[Any, Any, Any]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(STOP_S)

    def close(self, asked: dict[str, Any]) -> None:
        self.drain(asked)
        assert self._client is not None
        self._client.close()


def _struct_of(method: Any) -> Any:
    """Of the parameter that is a body or a query."""
    hints = typing.get_type_hints(inspect.unwrap(method), _TYPES)
    return next(kind for name, kind in hints.items() if name != "return" and kind is not str)


def _class_of(error: CorvoError) -> str:
    return next((kind for kind in _CLASSES if isinstance(error, kind)), type(error)).__name__


def main() -> None:
    harness = LibraryHarness()
    for line in sys.stdin.buffer:
        asked = msgspec.json.decode(line)
        try:
            answer: dict[str, Any] = {"answer": getattr(harness, asked["do"])(asked)}
        except CorvoError as error:
            code, status = (error.code, error.status) if isinstance(error, ServerRefused) else ("", 0)
            answer = {"error": {"class": _class_of(error), "code": code, "status": status, "message": str(error)}}
        sys.stdout.buffer.write(msgspec.json.encode({"id": asked["id"], **answer}) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
