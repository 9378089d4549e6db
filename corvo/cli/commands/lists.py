"""`corvo workers`, `throughput`, `errors`, `dead`, `held`: lists over all shards, read from read.db."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from corvo.cli.commands.job_pages import Amount, Cursor, Every, Limit, OnePage, amount, print_jobs
from corvo.cli.commands.requests import OutputFormat, ServerUrl, asking
from corvo.cli.commands.times import HINT, moments
from corvo.cli.commands.watching import watchable
from corvo.client import DEFAULT_SERVER

if TYPE_CHECKING:
    from corvo.client.answers import SearchAnswer

OnlyQueue = Annotated[str | None, typer.Option(metavar="NAME", help="only this queue")]
OrderName = Literal["asc", "desc"]
Order = Annotated[OrderName, typer.Option(help="oldest first (asc) or newest first (desc)")]


@watchable
def workers(
    worker: Annotated[str | None, typer.Argument(metavar="[ID]", help="only this worker, with its jobs")] = None,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """List the workers that hold jobs or wait for one, or show one worker with its jobs.

    \b
    Examples:
      corvo workers
      corvo workers worker-7 --output json
    """
    from corvo.cli.screen import show, show_lists  # lazy: rich

    with asking(server) as client:
        if worker is None:
            known = client.workers()
            show.answer(known, output, lambda: show.workers(known))
        else:
            found = client.get_worker(worker)
            show.answer(found, output, lambda: show_lists.worker(found))


@watchable
def throughput(
    queue: Annotated[str | None, typer.Argument(metavar="[QUEUE]", help="only this queue")] = None,
    minutes: Annotated[int, typer.Option(metavar="N", min=1, max=1440, help="how far back")] = 60,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Show jobs per minute, of all queues or of one, for up to a day.

    \b
    Examples:
      corvo throughput
      corvo throughput mail --minutes 1440
      corvo throughput mail --output json | jq '.[-2].completed'
    """
    from corvo.cli.screen import show, show_lists  # lazy: rich
    from corvo.client.bodies import ThroughputQuery  # lazy: msgspec

    with asking(server) as client:
        query = ThroughputQuery(minutes=minutes)
        points = client.throughput(query) if queue is None else client.queue_throughput(queue, query)
    show.answer(points, output, lambda: show_lists.throughput(points))


@watchable
def errors(
    queue: OnlyQueue = None,
    since: Annotated[str | None, typer.Option(metavar="WHEN", help=f"only failures after this{HINT}")] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="at most N groups")] = 20,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Show the most frequent errors. Messages that differ only in numbers and names count as one.

    \b
    Examples:
      corvo errors
      corvo errors --queue mail --since 1h
      corvo errors --output json | jq -r '.groups[] | "\\(.count) \\(.message)"'
    """
    from corvo.cli.screen import show, show_lists  # lazy: rich
    from corvo.client.bodies import ErrorGroupsQuery  # lazy: msgspec

    query = ErrorGroupsQuery(queue=queue, limit=limit, **moments(since=since))
    with asking(server) as client:
        answer = client.error_groups(query)
    show.answer(answer, output, lambda: show_lists.error_groups(answer))


@watchable
def dead(
    queue: OnlyQueue = None,
    limit: Limit = None,
    order: Order = "desc",
    cursor: Cursor = None,
    every: Every = False,
    page: OnePage = False,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """List dead jobs: those whose last attempt has failed.

    \b
    Examples:
      corvo dead
      corvo dead --queue mail --limit 200
      corvo dead --queue mail | corvo bulk retry
    """
    _list("dead", queue, order, amount(limit, every, page, cursor), cursor, server, output)


@watchable
def held(
    queue: OnlyQueue = None,
    limit: Limit = None,
    order: Order = "desc",
    cursor: Cursor = None,
    every: Every = False,
    page: OnePage = False,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """List held jobs: those that wait for an approval.

    \b
    Examples:
      corvo held
      corvo held --queue payments --order asc
    """
    _list("held", queue, order, amount(limit, every, page, cursor), cursor, server, output)


COMMANDS = (workers, throughput, errors, dead, held)


def _list(
    state: Literal["dead", "held"],
    queue: str | None,
    order: OrderName,
    wanted: Amount,
    cursor: str | None,
    server: str,
    output: str,
) -> None:
    from corvo.client.bodies import StateListQuery  # lazy: msgspec

    with asking(server) as client:
        list_page = client.dead if state == "dead" else client.held

        def ask(cursor: str | None, limit: int) -> "SearchAnswer":
            waits = wanted.jobs_max is None and cursor is None  # for read.db, where nothing may be missed
            return list_page(StateListQuery(queue=queue, order=order, limit=limit, cursor=cursor, consistent=waits))

        print_jobs(ask, wanted, cursor, output)
