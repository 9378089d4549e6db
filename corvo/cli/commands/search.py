"""`corvo search`: jobs of all shards by any filter."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from corvo.cli.commands.job_pages import Cursor, Every, Limit, OnePage, amount, print_jobs
from corvo.cli.commands.requests import MISUSED, OutputFormat, PriorityName, ServerUrl, StateName, asking, stop
from corvo.cli.commands.times import HINT, moments
from corvo.cli.commands.watching import watchable
from corvo.client import DEFAULT_SERVER

if TYPE_CHECKING:
    from corvo.client.answers import SearchAnswer

# Copies of the core's choices, as in requests.py; a test compares them.
OrderName = Literal["asc", "desc"]
SortName = Literal["created_at", "priority", "started_at", "completed_at", "attempt", "scheduled_at", "failed_at"]


def _moment(help: str) -> Any:
    return typer.Option(metavar="WHEN", help=help)


@watchable
def search(
    queue: Annotated[str | None, typer.Option(metavar="NAME", help="only this queue")] = None,
    state: Annotated[list[StateName] | None, typer.Option(help="only this state; repeatable")] = None,
    priority: Annotated[PriorityName | None, typer.Option(help="only this priority")] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="has this tag; KEY:=1 or KEY:=true for a number or a boolean; repeatable"
        ),
    ] = None,
    payload_contains: Annotated[
        str | None, typer.Option(metavar="TEXT", help="the JSON of the payload contains this text")
    ] = None,
    payload_jq: Annotated[
        str | None, typer.Option(metavar="EXPRESSION", help="the payload matches, such as '.amount > 100'")
    ] = None,
    error_contains: Annotated[
        str | None, typer.Option(metavar="TEXT", help="the message of an error contains this text")
    ] = None,
    has_errors: Annotated[
        bool | None, typer.Option("--has-errors/--no-errors", help="has failed attempts, or has none")
    ] = None,
    attempt_min: Annotated[int | None, typer.Option(metavar="N", min=0, help="at least N attempts")] = None,
    attempt_max: Annotated[int | None, typer.Option(metavar="N", min=0, help="at most N attempts")] = None,
    worker: Annotated[str | None, typer.Option(metavar="ID", help="last claimed by this worker")] = None,
    batch: Annotated[str | None, typer.Option(metavar="ID", help="in this batch")] = None,
    chain: Annotated[str | None, typer.Option(metavar="ID", help="in this chain")] = None,
    parent: Annotated[str | None, typer.Option(metavar="ID", help="child of this job")] = None,
    unique_key: Annotated[str | None, typer.Option(metavar="KEY", help="has this unique key")] = None,
    id_prefix: Annotated[str | None, typer.Option(metavar="TEXT", help="the id starts with this")] = None,
    created_after: Annotated[str | None, _moment(f"created after{HINT}")] = None,
    created_before: Annotated[str | None, _moment("created before")] = None,
    scheduled_after: Annotated[str | None, _moment("due after")] = None,
    scheduled_before: Annotated[str | None, _moment("due before")] = None,
    started_after: Annotated[str | None, _moment("last claimed after")] = None,
    started_before: Annotated[str | None, _moment("last claimed before")] = None,
    completed_after: Annotated[str | None, _moment("completed after")] = None,
    completed_before: Annotated[str | None, _moment("completed before")] = None,
    expire_after: Annotated[str | None, _moment("expires after")] = None,
    expire_before: Annotated[str | None, _moment("expires before")] = None,
    sort: Annotated[SortName, typer.Option(help="sort by; jobs without a value come last")] = "created_at",
    order: Annotated[OrderName, typer.Option(help="ascending or descending")] = "desc",
    limit: Limit = None,
    cursor: Cursor = None,
    every: Every = False,
    page: OnePage = False,
    consistent: Annotated[
        bool, typer.Option("--consistent", help="see all changes made before; the default for --all")
    ] = False,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Search the jobs of all shards. A job must match all filters that are given.

    On a terminal it prints the first 50 jobs. Into a pipe or a file it prints all of them: as a table, or with --output
    json as an array, which `corvo bulk` reads.

    \b
    Examples:
      corvo search --queue mail --state dead --state retrying
      corvo search --payload-contains ada@example.org --sort started_at
      corvo search --payload-jq '.amount > 100 and .currency == "EUR"' --tag tenant=acme
      corvo search --error-contains timeout --created-after 1h --order asc --limit 200
      corvo search --state dead --output json | jq -r '.[].id'
      corvo search --queue mail --state dead | corvo bulk retry
    """
    from msgspec.structs import replace  # lazy: msgspec

    from corvo.cli.commands import bodies  # lazy: msgspec

    wanted = amount(limit, every, page, cursor)
    limits = moments(
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
    )
    try:
        body = bodies.search_body(
            state or [],
            tag or [],
            queue=queue,
            priority=bodies.tier(priority),
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
            **limits,
            sort=sort,
            order=order,
            consistent=consistent or wanted.jobs_max is None,
        )
    except bodies.BadArgument as error:
        stop(MISUSED, str(error))
    with asking(server) as client:

        def ask(at: str | None, limit: int) -> "SearchAnswer":
            # One wait for read.db is enough: the pages after the first show the same moment or a later one.
            return client.search(replace(body, cursor=at, limit=limit, consistent=body.consistent and at == cursor))

        print_jobs(ask, wanted, cursor, output)
