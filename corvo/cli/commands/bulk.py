"""`corvo bulk`: one action on many jobs: those that match a filter, or those whose ids come on standard input.

Every action has the same flags to select jobs. With a filter, a terminal is shown the count and asked first; without a
terminal, the actions that end jobs need --yes. Ids on standard input name each job, so nothing is asked. A large action
becomes an operation of the server, which the command watches; Ctrl-C ends the watching, not the operation.
"""

import inspect
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corvo.cli.commands.requests import (
    MISUSED,
    REFUSED,
    Commands,
    OutputFormat,
    PriorityName,
    ServerUrl,
    StateName,
    Yes,
    asking,
    confirm,
    stop,
)
from corvo.cli.commands.times import HINT, moments
from corvo.cli.commands.watching import watchable
from corvo.client import DEFAULT_SERVER

if TYPE_CHECKING:
    from corvo.client.answers import BulkDone, BulkStarted, BulkView
    from corvo.client.bodies import BulkBody
    from corvo.client.http import Client

LOOK_AGAIN_S = 0.3
AWAY_S = 60.0  # a server that is restarted is back by then
IDS_MAX = 10_000  # in one request, as in corvo.model.limits, which is imported late; a test compares
OPERATION = "bulk_"  # prefix of the ids of operations
DESTRUCTIVE = ("delete", "cancel", "reject")

app = Commands(
    help="Act on many jobs: all that match a filter, or those whose ids come on standard input.",
    no_args_is_help=True,
)

BulkId = Annotated[str, typer.Argument(metavar="ID", help="id of the operation")]
Reason = Annotated[str, typer.Option(metavar="TEXT", help="a note, shown with each job")]

# Flags of every action, in this order.
_FLAGS: dict[str, tuple[Any, Any]] = {
    "filter_text": (
        Annotated[
            str | None,
            typer.Option("--filter", metavar="JSON", help="jobs that match, as for POST /api/v1/jobs/search"),
        ],
        None,
    ),
    "queue": (Annotated[str | None, typer.Option(metavar="NAME", help="only jobs of this queue")], None),
    "state": (
        Annotated[list[StateName] | None, typer.Option(help="only this state; repeatable")],
        None,
    ),
    "created_after": (Annotated[str | None, typer.Option(metavar="WHEN", help=f"created after{HINT}")], None),
    "created_before": (Annotated[str | None, typer.Option(metavar="WHEN", help="created before")], None),
    "dry_run": (Annotated[bool, typer.Option("--dry-run", help="count the jobs, show some, change nothing")], False),
    "yes": (Yes, False),
    "is_async": (
        Annotated[bool, typer.Option("--async", help="start an operation, print its id and do not wait")],
        False,
    ),
    "server": (ServerUrl, DEFAULT_SERVER),
    "output": (OutputFormat, "table"),
}


def _on_many(command: Callable[..., dict[str, Any] | None]) -> Callable[..., None]:
    """Adds the flags. The command returns the fields of the action, or None when there is nothing more to do."""
    own = list(inspect.signature(command).parameters.values())

    def run(**values: Any) -> None:
        flags = {name: values.pop(name) for name in _FLAGS}
        for parameter in own:
            if parameter.name in flags:
                values[parameter.name] = flags[parameter.name]
        fields = command(**values)
        if fields is not None:
            _act(fields, **flags)

    extra = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in _FLAGS.items()
    ]
    mine = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own if one.name not in _FLAGS]
    run.__name__ = command.__name__
    run.__doc__ = command.__doc__
    run.__signature__ = inspect.Signature([*mine, *extra])  # type: ignore[attr-defined]  # what typer reads
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in (*mine, *extra)}
    return run


@app.command()
@_on_many
def retry() -> dict[str, Any]:
    """Run ended jobs again, and scheduled jobs at once. All attempts are available again.

    \b
    Examples:
      corvo bulk retry --queue mail --state dead
      corvo bulk retry --filter '{"queue": "mail", "state": ["dead"], "priority": "high"}' --dry-run
      corvo search --queue mail --state dead --output json | corvo bulk retry
    """
    return {"action": "retry"}


@app.command()
@_on_many
def requeue() -> dict[str, Any]:
    """Run dead jobs once more. Earlier attempts stay counted.

    \b
    Example:
      corvo bulk requeue --queue mail --state dead
    """
    return {"action": "requeue"}


@app.command()
@_on_many
def delete() -> dict[str, Any]:
    """Delete jobs in any state, with their history.

    \b
    Examples:
      corvo bulk delete --state completed --created-before 7d
      corvo bulk delete --queue mail --state dead --yes --output json
    """
    return {"action": "delete"}


@app.command()
@_on_many
def cancel(
    server: str,
    output: str,
    operation: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="bulk operation to stop; without it, jobs are cancelled")
    ] = None,
    grace: Annotated[
        str | None,
        typer.Option(metavar="SPAN", help="time for the worker of an active job to stop, such as 90s; 0s: none"),
    ] = None,
) -> dict[str, Any] | None:
    """Cancel jobs that have not ended. With the id of a bulk operation, stop that operation.

    \b
    Examples:
      corvo bulk cancel --queue mail --state pending --state scheduled
      corvo bulk cancel bulk_18a1f0c2d3e4f5a60a1b2c3d4e
    """
    if operation is None:
        return {"action": "cancel", "grace": grace}
    if not operation.startswith(OPERATION):
        stop(MISUSED, f"{operation} is not a bulk operation; corvo cancel {operation} cancels one job")
    from corvo.cli.screen import show_bulk  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich

    with asking(server) as client:
        view = client.cancel_bulk(operation)
    answer(view, output, lambda: show_bulk.operation(view))
    return None


@app.command()
@_on_many
def move(
    to: Annotated[str, typer.Argument(metavar="QUEUE", help="target queue")],
    reset_attempts: Annotated[bool, typer.Option("--reset-attempts", help="count attempts from zero again")] = False,
    keep_priority: Annotated[
        bool, typer.Option("--keep-priority/--normal-priority", help="in the new queue; normal: all alike")
    ] = True,
) -> dict[str, Any]:
    """Move jobs that are not active to another queue. They keep their ids.

    \b
    Examples:
      corvo bulk move mail.slow --queue mail --state pending
      corvo bulk move mail.slow --queue mail --state dead --reset-attempts
    """
    return {
        "action": "move",
        "move_to_queue": to,
        "reset_attempts": True if reset_attempts else None,
        "keep_priority": None if keep_priority else False,
    }


@app.command()
@_on_many
def priority(
    to: Annotated[
        PriorityName, typer.Argument(metavar="PRIORITY", help="critical, high, normal or low (same as normal)")
    ],
) -> dict[str, Any]:
    """Change the priority of waiting jobs.

    \b
    Example:
      corvo bulk priority high --queue mail --state pending
    """
    return {"action": "change_priority", "priority": "normal" if to == "low" else to}


@app.command()
@_on_many
def hold(reason: Reason = "") -> dict[str, Any]:
    """Hold jobs: they do not run until they are approved.

    \b
    Example:
      corvo bulk hold --queue mail --state pending --reason 'ask Ada first'
    """
    return {"action": "hold", "reason": reason}


@app.command()
@_on_many
def approve() -> dict[str, Any]:
    """Let held jobs run.

    \b
    Example:
      corvo bulk approve --queue mail --state held
    """
    return {"action": "approve"}


@app.command()
@_on_many
def reject(reason: Reason = "") -> dict[str, Any]:
    """End held jobs without running them.

    \b
    Example:
      corvo bulk reject --queue mail --state held --reason 'no longer needed'
    """
    return {"action": "reject", "reason": reason}


@app.command()
@watchable
def status(bulk: BulkId, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """Show a bulk operation: progress, rate, and which jobs were refused.

    \b
    Examples:
      corvo bulk status bulk_18a1f0c2d3e4f5a60a1b2c3d4e
      corvo bulk status bulk_18a1f0c2d3e4f5a60a1b2c3d4e --output json | jq .eta_s
    """
    from corvo.cli.screen import show_bulk  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich

    with asking(server) as client:
        view = client.get_bulk(bulk)
    answer(view, output, lambda: show_bulk.operation(view))


@app.command("list")
@watchable
def list_all(server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """List bulk operations, newest first.

    \b
    Example:
      corvo bulk list
    """
    from corvo.cli.screen import show_bulk  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich

    with asking(server) as client:
        found = client.bulks()
    answer(found, output, lambda: show_bulk.operations(found))


def _act(
    fields: dict[str, Any],
    *,
    filter_text: str | None,
    queue: str | None,
    state: list[StateName] | None,
    created_after: str | None,
    created_before: str | None,
    dry_run: bool,
    yes: bool,
    is_async: bool,
    server: str,
    output: str,
) -> None:
    states = [one.value for one in state or ()] or None
    flags = {
        "queue": queue,
        "state": states,
        **moments(created_after=created_after, created_before=created_before),
    }
    given = {name: value for name, value in flags.items() if value is not None}
    is_named = not given and filter_text is None
    requests = _by_ids(fields) if is_named else _by_filter(fields, filter_text, given)
    for request in requests:
        request.is_async = is_async
    is_sure = yes or dry_run or is_named
    if not is_sure and not sys.stdin.isatty():
        if fields["action"] in DESTRUCTIVE:
            confirm(yes, f"{fields['action']} all jobs that match?")  # refuses
        is_sure = True
    with asking(server) as client:
        if dry_run:
            _show_preview(_preview(client, requests), output)
            return
        if not is_sure:
            preview = _preview(client, requests)
            more = "" if preview.matched_is_exact else "at least "
            confirm(yes, f"{fields['action'].replace('_', ' ')} {more}{preview.matched} jobs?")
        _carry_out(client, requests, output)


def _by_ids(fields: dict[str, Any]) -> "list[BulkBody]":
    """One request for every ten thousand ids."""
    from corvo.cli.commands import bodies  # lazy: msgspec
    from corvo.cli.commands.job_ids import ids_in  # lazy: msgspec

    if sys.stdin.isatty():
        stop(MISUSED, "no jobs selected: give --filter, --queue, --state or the like, or ids on standard input")
    try:
        ids = ids_in(sys.stdin.read())
        if not ids:
            stop(REFUSED, "no job id on standard input; nothing was changed")
        return [bodies.bulk_body(fields, job_ids=ids[start : start + IDS_MAX]) for start in range(0, len(ids), IDS_MAX)]
    except bodies.BadArgument as error:
        stop(MISUSED, str(error))


def _by_filter(fields: dict[str, Any], text: str | None, flags: dict[str, Any]) -> "list[BulkBody]":
    from corvo.cli.commands import bodies  # lazy: msgspec

    try:
        return [bodies.bulk_body(fields, filter=bodies.bulk_filter(text, flags))]
    except bodies.BadArgument as error:
        stop(MISUSED, str(error))


def _preview(client: "Client", requests: "list[BulkBody]") -> "BulkDone":
    from msgspec.structs import replace  # lazy: msgspec

    from corvo.cli.commands.bulk_sums import added_up  # lazy: msgspec

    outcomes: list[Any] = [client.bulk(replace(request, dry_run=True)) for request in requests]  # never an operation
    return added_up(outcomes)


def _show_preview(preview: "BulkDone", output: str) -> None:
    from corvo.cli.screen import show_bulk  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich

    answer(preview, output, lambda: show_bulk.preview(preview))


def _carry_out(client: "Client", requests: "list[BulkBody]", output: str) -> None:
    """Exit code 1 when nothing was changed because everything was refused."""
    from corvo.cli.commands.bulk_sums import added_up, as_done  # lazy: msgspec
    from corvo.cli.screen import show_bulk  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich
    from corvo.client.answers import BulkStarted  # lazy: msgspec

    def tell(value: Any, drawn: Callable[[Any], Any]) -> None:
        answer(value, output, lambda: drawn(value))

    outcomes: list[BulkDone] = []
    are_told = True
    for request in requests:
        outcome = client.bulk(request)
        if not isinstance(outcome, BulkStarted):
            outcomes.append(outcome)
            are_told = False
        elif request.is_async:
            tell(outcome, show_bulk.started)
        else:
            view = _watch(client, outcome)
            tell(view, show_bulk.operation)
            if view.status == "failed":
                raise typer.Exit(REFUSED)
            outcomes.append(as_done(view))
    done = added_up(outcomes)
    if not are_told:
        tell(done, show_bulk.done)
    if done.errors and not done.affected:
        raise typer.Exit(REFUSED)


def _watch(client: "Client", started: "BulkStarted") -> "BulkView":
    """Until the operation has ended. It survives a restart of the server, so the watching does, too."""
    from corvo.cli.screen import show_bulk  # lazy: rich
    from corvo.client.http import Unreachable  # lazy: httpx

    with show_bulk.bar(started) as tell:
        heard_at = time.monotonic()
        while True:
            try:
                view = client.get_bulk(started.bulk_operation_id)
            except Unreachable:
                if time.monotonic() - heard_at > AWAY_S:
                    raise
            else:
                heard_at = time.monotonic()
                tell(view)
                if view.finished_at is not None:
                    return view
            time.sleep(LOOK_AGAIN_S)
