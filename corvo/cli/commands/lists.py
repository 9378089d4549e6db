"""`corvo workers`, `throughput`, `errors`, `dead`, `held`: lists over all shards, read from read.db."""

import time
from typing import Annotated, Literal

import typer

from corvo.cli.commands.requests import MISUSED, OutputFormat, ServerUrl, asking, stop
from corvo.client import DEFAULT_SERVER
from corvo.model.timestamps import parse_duration, to_rfc3339

OnlyQueue = Annotated[str | None, typer.Option(metavar="NAME", help="only this queue")]
Limit = Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="at most so many")]
OrderName = Literal["asc", "desc"]
Order = Annotated[OrderName, typer.Option(help="by birth: oldest first (asc) or newest first (desc)")]
Cursor = Annotated[str | None, typer.Option(metavar="CURSOR", help="go on behind the page that ended with this")]


def workers(
    worker: Annotated[str | None, typer.Argument(metavar="[ID]", help="only this one, with its jobs")] = None,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """List the workers that hold jobs or wait for one, or show one of them with the jobs that it has.

    \b
    Examples:
      corvo workers
      corvo workers worker-7 --output json
    """
    from corvo.cli.screen import show, show_lists  # lazy: rich

    with asking(server) as client:
        if worker is None:
            known = client.workers()
            show.answer(known, output == "json", lambda: show.workers(known))
        else:
            found = client.get_worker(worker)
            show.answer(found, output == "json", lambda: show_lists.worker(found))


def throughput(
    queue: Annotated[str | None, typer.Argument(metavar="[QUEUE]", help="only this one")] = None,
    minutes: Annotated[int, typer.Option(metavar="N", min=1, max=1440, help="so far back")] = 60,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Show what happened minute by minute, in all queues or in one. A day is kept.

    \b
    Examples:
      corvo throughput
      corvo throughput mail --minutes 1440
      corvo throughput mail --output json | jq '.[-2].completed'
    """
    from corvo.cli.screen import show, show_lists  # lazy: rich
    from corvo.queries.throughput import ThroughputQuery  # lazy: the queries with msgspec

    with asking(server) as client:
        query = ThroughputQuery(minutes=minutes)
        points = client.throughput(query) if queue is None else client.queue_throughput(queue, query)
    show.answer(points, output == "json", lambda: show_lists.throughput(points))


def errors(
    queue: OnlyQueue = None,
    since: Annotated[
        str | None, typer.Option(metavar="WHEN", help="a moment such as 2026-01-31T09:00:00Z, or a span such as 1h")
    ] = None,
    limit: Limit = 20,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Show what goes wrong most: failures that say the same, but for numbers and names, are counted together.

    \b
    Examples:
      corvo errors
      corvo errors --queue mail --since 1h
      corvo errors --output json | jq -r '.groups[] | "\\(.count) \\(.message)"'
    """
    from corvo.cli.screen import show, show_lists  # lazy: rich
    from corvo.queries.error_groups import ErrorGroupsQuery  # lazy: the queries with msgspec

    query = ErrorGroupsQuery(queue=queue, since=None if since is None else _moment(since), limit=limit)
    with asking(server) as client:
        answer = client.error_groups(query)
    show.answer(answer, output == "json", lambda: show_lists.error_groups(answer))


def dead(
    queue: OnlyQueue = None,
    limit: Limit = 50,
    order: Order = "desc",
    cursor: Cursor = None,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """List the jobs that have failed for good.

    \b
    Examples:
      corvo dead
      corvo dead --queue mail --limit 200
      corvo dead --output json | jq -r '.jobs[].id'
    """
    _list("dead", queue, limit, order, cursor, server, output)


def held(
    queue: OnlyQueue = None,
    limit: Limit = 50,
    order: Order = "desc",
    cursor: Cursor = None,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """List the jobs that wait for somebody to approve them.

    \b
    Examples:
      corvo held
      corvo held --queue payments --order asc
    """
    _list("held", queue, limit, order, cursor, server, output)


COMMANDS = (workers, throughput, errors, dead, held)


def _list(
    state: Literal["dead", "held"],
    queue: str | None,
    limit: int,
    order: OrderName,
    cursor: str | None,
    server: str,
    output: str,
) -> None:
    from corvo.cli.screen import show, show_lists  # lazy: rich
    from corvo.queries.state_lists import StateListQuery  # lazy: the queries with msgspec

    query = StateListQuery(queue=queue, order=order, limit=limit, cursor=cursor)
    with asking(server) as client:
        answer = client.dead(query) if state == "dead" else client.held(query)
    show.answer(answer, output == "json", lambda: show_lists.jobs(answer))


def _moment(text: str) -> str:
    """A span is counted back from now; everything else is the server's to judge."""
    try:
        return to_rfc3339(time.time_ns() - parse_duration(text) * 1_000_000)
    except ValueError:
        if text[:1].isdigit():
            return text
        stop(MISUSED, f"--since {text}: expected a moment such as 2026-01-31T09:00:00Z, or a span such as 1h")
