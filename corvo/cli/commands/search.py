"""`corvo search`: jobs of all shards by any filter; with --all every page of them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from corvo.cli.commands.requests import MISUSED, OutputFormat, ServerUrl, StateName, asking, stop
from corvo.client import DEFAULT_SERVER

if TYPE_CHECKING:
    from corvo.client.http import Client
    from corvo.queries.search import SearchAnswer, SearchBody

# The choices of the core, written again because importing it slows `corvo --help` by a quarter; a test compares.
PriorityName = Literal["critical", "high", "normal"]
OrderName = Literal["asc", "desc"]
SortName = Literal["created_at", "priority", "started_at", "completed_at", "attempt", "scheduled_at", "failed_at"]
PAGE = 1_000  # jobs that --all asks for at a time


def _moment(help: str) -> Any:
    return typer.Option(metavar="TIME", help=help)


def search(
    queue: Annotated[str | None, typer.Option(metavar="NAME", help="only this queue")] = None,
    state: Annotated[list[StateName] | None, typer.Option(help="only this state; may be given several times")] = None,
    priority: Annotated[PriorityName | None, typer.Option(help="only this priority")] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="has this tag; KEY:=1 and KEY:=true for no text; several times: all"),
    ] = None,
    payload_contains: Annotated[
        str | None, typer.Option(metavar="TEXT", help="the payload's JSON holds this, as it stands")
    ] = None,
    payload_jq: Annotated[
        str | None, typer.Option(metavar="EXPRESSION", help="the payload fits, such as '.amount > 100'")
    ] = None,
    error_contains: Annotated[
        str | None, typer.Option(metavar="TEXT", help="the message of an error holds this, as it stands")
    ] = None,
    has_errors: Annotated[bool | None, typer.Option("--has-errors/--no-errors", help="has failed, or never")] = None,
    attempt_min: Annotated[int | None, typer.Option(metavar="N", min=0, help="at least so many attempts")] = None,
    attempt_max: Annotated[int | None, typer.Option(metavar="N", min=0, help="at most so many attempts")] = None,
    worker: Annotated[str | None, typer.Option(metavar="ID", help="last claimed by this worker")] = None,
    batch: Annotated[str | None, typer.Option(metavar="ID", help="of this batch")] = None,
    chain: Annotated[str | None, typer.Option(metavar="ID", help="of this chain")] = None,
    parent: Annotated[str | None, typer.Option(metavar="ID", help="child of this job")] = None,
    unique_key: Annotated[str | None, typer.Option(metavar="KEY", help="made with this unique key")] = None,
    id_prefix: Annotated[str | None, typer.Option(metavar="TEXT", help="the id begins with this")] = None,
    created_after: Annotated[str | None, _moment("born after this moment")] = None,
    created_before: Annotated[str | None, _moment("born before this moment")] = None,
    scheduled_after: Annotated[str | None, _moment("due after this moment")] = None,
    scheduled_before: Annotated[str | None, _moment("due before this moment")] = None,
    started_after: Annotated[str | None, _moment("last claimed after this moment")] = None,
    started_before: Annotated[str | None, _moment("last claimed before this moment")] = None,
    completed_after: Annotated[str | None, _moment("done after this moment")] = None,
    completed_before: Annotated[str | None, _moment("done before this moment")] = None,
    expire_after: Annotated[str | None, _moment("expires after this moment")] = None,
    expire_before: Annotated[str | None, _moment("expires before this moment")] = None,
    sort: Annotated[SortName, typer.Option(help="in the order of; jobs without it come last")] = "created_at",
    order: Annotated[OrderName, typer.Option(help="least first (asc) or greatest first (desc)")] = "desc",
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="at most so many jobs")] = 50,
    cursor: Annotated[str | None, typer.Option(metavar="CURSOR", help="go on behind the page that gave this")] = None,
    every: Annotated[bool, typer.Option("--all", help="every job that fits, page by page")] = False,
    consistent: Annotated[bool, typer.Option("--consistent", help="wait for all that was answered before")] = False,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Search the jobs of all shards. What is given must all fit.

    With --all and --output json each job is a line of JSON.

    \b
    Examples:
      corvo search --queue mail --state dead --state retrying
      corvo search --payload-contains ada@example.org --sort started_at
      corvo search --payload-jq '.amount > 100 and .currency == "EUR"' --tag tenant=acme
      corvo search --error-contains timeout --created-after 2026-01-31T00:00:00Z --order asc --limit 200
      corvo search --state dead --all --output json | jq -r .id
    """
    from corvo.cli.commands import bodies  # lazy: rich, and the operations with msgspec
    from corvo.cli.screen import show  # lazy: rich, and the operations with msgspec

    try:
        body = bodies.search_body(
            state or [],
            tag or [],
            queue=queue,
            priority=priority,
            payload_contains=payload_contains,
            payload_jq=payload_jq,
            error_contains=error_contains,
            has_errors=has_errors,
            attempt_min=attempt_min,
            attempt_max=attempt_max,
            worker_id=worker,
            batch_id=batch,
            chain_id=chain,
            parent_id=parent,
            unique_key=unique_key,
            job_id_prefix=id_prefix,
            created_after=created_after,
            created_before=created_before,
            scheduled_after=scheduled_after,
            scheduled_before=scheduled_before,
            started_after=started_after,
            started_before=started_before,
            completed_after=completed_after,
            completed_before=completed_before,
            expire_after=expire_after,
            expire_before=expire_before,
            sort=sort,
            order=order,
            limit=PAGE if every else limit,
            cursor=cursor,
            consistent=consistent,
        )
    except bodies.BadArgument as error:
        stop(MISUSED, str(error))
    with asking(server) as client:
        if not every:
            answer = client.search(body)
            show.answer(answer, output == "json", lambda: show.found(answer))
            return
        for page in _pages(client, body):
            if output == "json":
                show.lines(page.jobs)
            elif page.jobs or page.cursor is None:
                show.table(show.found(page))


def _pages(client: "Client", body: "SearchBody") -> "Iterator[SearchAnswer]":
    """Also over pages that are empty because the server's time was up."""
    page = client.search(body)
    yield page
    while page.cursor is not None:
        body.cursor, body.consistent = page.cursor, False
        page = client.search(body)
        yield page
