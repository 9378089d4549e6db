"""Asks the server: one set of requests for each look, a few at once, in threads of their own."""

import functools
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any

import msgspec

from corvo.cli.screen.top.looks import Look
from corvo.cli.screen.top.session import Wants
from corvo.client.answers import ErrorGroupsAnswer, JobView, SearchAnswer, WhyView
from corvo.client.bodies import ErrorGroupsQuery
from corvo.client.calls import ServerRefused
from corvo.client.http import Client, Unreachable

REQUESTS_MAX = 5  # at once: those of one look
ERROR_GROUPS_MAX = 100
HEADER = ("status", "queues", "workers")
_DENIED = (401, 403)


class Away(Exception):
    """There is no answer at all, with a sentence; the look before stays."""


class Part(msgspec.Struct, frozen=True):
    """What a place shows beside the header."""

    jobs: SearchAnswer | None = None
    errors: ErrorGroupsAnswer | None = None
    job: JobView | None = None
    why: WhyView | None = None
    refusals: dict[str, str] = {}


def take_look(client: Client, wants: Wants, pool: ThreadPoolExecutor, show_part: Callable[[Part], None]) -> Look:
    """A part that the server refuses is a sentence in the look: the rest of it is still true. Without the status of the
    server, unless it may not be read, there is no look. The part of the place is shown as soon as it is there: while a
    node is away, the status takes a second or more."""
    taken_s = time.monotonic()
    header = _submit(pool, {"status": client.cluster_status, "queues": client.queues, "workers": client.workers})
    place = _submit(pool, _of_place(client, wants))
    answers: dict[str, Any] = {}
    refusals: dict[str, str] = {}
    _await(place, answers, refusals)
    if place:
        show_part(Part(**answers, refusals=dict(refusals)))
    _await(header, answers, refusals)
    found = {name: answers.get(name) for name in (*header, *place)}
    return Look(taken_s=taken_s, now_ns=time.time_ns(), refusals=refusals, **found)


def _of_place(client: Client, wants: Wants) -> dict[str, Callable[[], Any]]:
    asked: dict[str, Callable[[], Any]] = {}
    if (search := wants.search) is not None:
        asked["jobs"] = lambda: client.search(search)
    if wants.errors:
        asked["errors"] = lambda: client.error_groups(ErrorGroupsQuery(limit=ERROR_GROUPS_MAX))
    if wants.job:
        asked["job"] = lambda: client.get_job(wants.job)
        asked["why"] = lambda: client.why(wants.job)
    return asked


def _submit(pool: ThreadPoolExecutor, asked: dict[str, Callable[[], Any]]) -> "dict[str, Future[Any]]":
    return {name: pool.submit(ask) for name, ask in asked.items()}


def _await(asked: "dict[str, Future[Any]]", answers: dict[str, Any], refusals: dict[str, str]) -> None:
    """Every request has a deadline of its own: the client's."""
    for name, future in asked.items():
        try:
            answers[name] = future.result()
        except ServerRefused as refused:
            if name == "status" and refused.status not in _DENIED:
                raise Away(f"{refused.message} ({refused.code})") from None
            refusals[name] = f"{refused.message} ({refused.status})"
        except Unreachable as error:
            raise Away(str(error)) from None


class Poller:
    """A thread that takes one look after another. `want` may be called at any time: the newest wish counts, so nothing
    piles up behind a slow server."""

    def __init__(
        self,
        client: Client,
        show: Callable[[Wants, Look], None],
        show_part: Callable[[Wants, Part], None],
        fail: Callable[[str], None],
    ) -> None:
        self._client = client
        self._show = show
        self._show_part = show_part
        self._fail = fail
        self._pool = ThreadPoolExecutor(REQUESTS_MAX, thread_name_prefix="top")
        self._wanted: Wants | None = None
        self._is_over = False
        self._change = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="top-poller", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def want(self, wants: Wants) -> None:
        with self._change:
            self._wanted = wants
            self._change.notify()

    def stop(self) -> None:
        """Requests that are under way are not waited for: their deadlines end them."""
        with self._change:
            self._is_over = True
            self._change.notify()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _run(self) -> None:
        while (wants := self._next()) is not None:
            try:
                look = take_look(self._client, wants, self._pool, functools.partial(self._show_part, wants))
            except Away as error:
                self._fail(str(error))
            except (RuntimeError, CancelledError):  # the client and the pool were closed under it
                if not self._is_over:
                    raise
            else:
                self._show(wants, look)

    def _next(self) -> Wants | None:
        with self._change:
            while self._wanted is None and not self._is_over:
                self._change.wait()
            wants, self._wanted = self._wanted, None
            return None if self._is_over else wants
