"""`corvo top`: `watch` owns the terminal and goes on without a server; `write` is for scripts and ends with it."""

import sys
import time

import msgspec

from corvo.cli.commands.requests import MISUSED, stop
from corvo.cli.screen.show import console
from corvo.cli.screen.top.filters import BadFilter
from corvo.cli.screen.top.header import Link
from corvo.cli.screen.top.looks import Look, Past, Rates
from corvo.cli.screen.top.panes import PANES
from corvo.cli.screen.top.picture import snapshot
from corvo.cli.screen.top.session import Place, Session
from corvo.client.answers import ClusterStatus, QueueView, WorkerView
from corvo.client.http import Client

PIPE_WIDTH = 120


class Report(msgspec.Struct):
    """One line of `corvo top --json`."""

    at_ns: int
    rates: Rates
    status: ClusterStatus
    queues: list[QueueView]
    workers: list[WorkerView]


def session_of(interval_s: float, is_read_only: bool, pane: str, filter: str, job: str | None) -> Session:
    """Where the view begins. A wrong pane or filter ends the command."""
    session = Session(interval_s, is_read_only)
    if pane not in PANES:
        stop(MISUSED, f"there is no pane {pane!r}; panes are {', '.join(PANES)}")
    session.go(pane)
    try:
        session.set_filter(filter)
    except BadFilter as error:
        stop(MISUSED, str(error))
    if job:
        session.enter(Place("job", subject=job))
    return session


def watch(client: Client, session: Session) -> int:
    """Until q, Ctrl-C or a signal. The exit code."""
    from corvo.cli.screen.top.app import Top  # lazy: textual

    app = Top(client, session)
    app.run()
    return app.return_code or 0


def write(client: Client, interval_s: float, count: int, is_json: bool) -> None:
    """Snapshots without keys. Rates need two looks, so the first snapshot is printed after one interval."""
    screen = console()
    past = Past(None, _whole_look(client))
    for number in range(count):
        time.sleep(interval_s)
        past = past.then(_whole_look(client))
        look = past.look
        if is_json:
            assert look.status is not None and look.queues is not None and look.workers is not None
            report = Report(look.now_ns, past.rates, look.status, look.queues, look.workers)
            print(msgspec.json.encode(report).decode(), flush=True)
            continue
        for line in snapshot(past, Link(0.0), screen.width if sys.stdout.isatty() else PIPE_WIDTH):
            screen.print(line, soft_wrap=True)
        if number + 1 < count:
            screen.print()


def _whole_look(client: Client) -> Look:
    """Of which nothing is missing: what the server refuses ends the command."""
    return Look(
        taken_s=time.monotonic(),
        now_ns=time.time_ns(),
        status=client.cluster_status(),
        queues=client.queues(),
        workers=client.workers(),
    )
