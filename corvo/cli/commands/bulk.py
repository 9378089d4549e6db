"""`corvo bulk`: one action on many jobs: those that match, or those whose ids come on standard input.

Every action takes the same flags for which jobs are meant. On a terminal it counts first and asks. What the server
makes an operation of is watched until its end; whoever stops watching does not stop the operation.
"""

import inspect
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from corvo.cli.commands.requests import MISUSED, OK, REFUSED, Commands, OutputFormat, ServerUrl, StateName, asking, stop
from corvo.client import DEFAULT_SERVER

if TYPE_CHECKING:
    from corvo.client.http import Client
    from corvo.ops.bulk.begin_bulk import BulkBody, BulkDone, BulkStarted
    from corvo.queries.bulk_view import BulkView

LOOK_AGAIN_S = 0.3
AWAY_S = 60.0  # a server that is started again is back by then
OPERATION = "bulk_"  # how the ids of operations begin

app = Commands(
    help="One action on many jobs: all that match, or those whose ids come on standard input.",
    no_args_is_help=True,
    rich_markup_mode=None,  # as in main.py
)

BulkId = Annotated[str, typer.Argument(metavar="ID", help="id of the operation")]
Reason = Annotated[str, typer.Option(metavar="TEXT", help="for people; shown with each job")]
PriorityName = Literal["critical", "high", "normal"]

# Which jobs, and how: flags of every action, in this order.
_FLAGS: dict[str, tuple[Any, Any]] = {
    "filter_text": (
        Annotated[
            str | None, typer.Option("--filter", metavar="JSON", help="jobs that match, as in POST /api/v1/jobs/search")
        ],
        None,
    ),
    "queue": (Annotated[str | None, typer.Option(metavar="NAME", help="only jobs of this queue")], None),
    "state": (
        Annotated[list[StateName] | None, typer.Option(help="only this state; may be given several times")],
        None,
    ),
    "created_after": (Annotated[str | None, typer.Option(metavar="TIME", help="born after this moment")], None),
    "created_before": (Annotated[str | None, typer.Option(metavar="TIME", help="born before this moment")], None),
    "dry_run": (Annotated[bool, typer.Option("--dry-run", help="count, show a few, change nothing")], False),
    "yes": (Annotated[bool, typer.Option("--yes", help="do not ask")], False),
    "is_async": (
        Annotated[bool, typer.Option("--async", help="make it an operation, print its id and do not wait")],
        False,
    ),
    "server": (ServerUrl, DEFAULT_SERVER),
    "output": (OutputFormat, "table"),
}


def _on_many(command: Callable[..., dict[str, Any] | None]) -> Callable[..., None]:
    """A command that says what to do, as one that is told which jobs and does it. None: it has done something else."""
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
    """Run jobs again that have ended, or scheduled ones at once, with all their attempts before them.

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
    """Run dead jobs once more; the attempts they have had stay counted.

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
      corvo bulk delete --state completed --created-before 2026-01-01T00:00:00Z
      corvo bulk delete --queue mail --state dead --yes --output json
    """
    return {"action": "delete"}


@app.command()
@_on_many
def cancel(
    server: str,
    output: str,
    operation: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="a bulk operation to stop; without it, jobs are cancelled")
    ] = None,
    grace: Annotated[
        str | None, typer.Option(metavar="SPAN", help="time for the worker of an active job, such as 90s; 0s: none")
    ] = None,
) -> dict[str, Any] | None:
    """Cancel jobs that have not ended; or, with the id of a bulk operation, stop that.

    \b
    Examples:
      corvo bulk cancel --queue mail --state pending --state scheduled
      corvo bulk cancel bulk_18a1f0c2d3e4f5a60a1b2c3d4e
    """
    if operation is None:
        return {"action": "cancel", "grace": grace}
    if not operation.startswith(OPERATION):
        stop(MISUSED, f"{operation} is no bulk operation; corvo cancel {operation} cancels one job")
    from corvo.cli.screen import show_bulk  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich

    with asking(server) as client:
        view = client.cancel_bulk(operation)
    answer(view, output == "json", lambda: show_bulk.operation(view))
    return None


@app.command()
@_on_many
def move(to: Annotated[str, typer.Argument(metavar="QUEUE", help="queue that gets the jobs")]) -> dict[str, Any]:
    """Put jobs that are not active into another queue; they keep their ids.

    \b
    Example:
      corvo bulk move mail.slow --queue mail --state pending
    """
    return {"action": "move", "move_to_queue": to}


@app.command()
@_on_many
def priority(
    to: Annotated[PriorityName, typer.Argument(metavar="PRIORITY", help="critical, high or normal")],
) -> dict[str, Any]:
    """Give jobs that wait another priority.

    \b
    Example:
      corvo bulk priority high --queue mail --state pending
    """
    return {"action": "change_priority", "priority": to}


@app.command()
@_on_many
def hold(reason: Reason = "") -> dict[str, Any]:
    """Keep jobs from running until they are approved or rejected.

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
def status(bulk: BulkId, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """Show a bulk operation: how far it is, how fast, and which jobs were refused.

    \b
    Examples:
      corvo bulk status bulk_18a1f0c2d3e4f5a60a1b2c3d4e
      corvo bulk status bulk_18a1f0c2d3e4f5a60a1b2c3d4e --output json | jq .eta_s
    """
    from corvo.cli.screen import show_bulk  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich

    with asking(server) as client:
        view = client.get_bulk(bulk)
    answer(view, output == "json", lambda: show_bulk.operation(view))


@app.command("list")
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
    answer(found, output == "json", lambda: show_bulk.operations(found))


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
    from corvo.cli.commands import bodies  # lazy: the operations with msgspec

    states = [one.value for one in state or ()] or None
    flags = {
        "queue": queue,
        "state": states,
        "created_after": created_after,
        "created_before": created_before,
    }
    given = {name: value for name, value in flags.items() if value is not None}
    is_piped = not given and filter_text is None
    if is_piped and sys.stdin.isatty():
        stop(MISUSED, "which jobs? --filter, --queue, --state and the like say so, or ids on standard input")
    try:
        body = bodies.bulk_body(fields, filter_text, given, sys.stdin.read() if is_piped else None)
    except bodies.BadArgument as error:
        stop(MISUSED, str(error))
    if body is None:
        stop(OK, "no job came on standard input; nothing to do")
    body.is_async = is_async
    with asking(server) as client:
        if dry_run or (not yes and sys.stdin.isatty()):
            preview = _preview(client, body)
            if dry_run:
                _show_preview(preview, output)
                return
            _confirm(body, preview)
        _carry_out(client, body, output)


def _preview(client: "Client", body: "BulkBody") -> "BulkDone":
    from msgspec.structs import replace  # lazy: msgspec

    preview: Any = client.bulk(replace(body, dry_run=True))  # never an operation
    found: BulkDone = preview
    return found


def _show_preview(preview: "BulkDone", output: str) -> None:
    from corvo.cli.screen import show_bulk  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich

    answer(preview, output == "json", lambda: show_bulk.preview(preview))


def _confirm(body: "BulkBody", preview: "BulkDone") -> None:
    more = "" if preview.matched_is_exact else "at least "
    if not typer.confirm(f"{body.action.replace('_', ' ')} {more}{preview.matched} jobs?"):
        stop(REFUSED, "nothing was changed")


def _carry_out(client: "Client", body: "BulkBody", output: str) -> None:
    from corvo.cli.screen import show_bulk  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich
    from corvo.ops.bulk.begin_bulk import BulkStarted  # lazy: the operations with msgspec

    outcome = client.bulk(body)
    if not isinstance(outcome, BulkStarted):
        done: BulkDone = outcome
        answer(done, output == "json", lambda: show_bulk.done(done))
    elif body.is_async:
        started: BulkStarted = outcome
        answer(started, output == "json", lambda: show_bulk.started(started))
    else:
        view = _watch(client, outcome)
        answer(view, output == "json", lambda: show_bulk.operation(view))
        if view.status == "failed":
            raise typer.Exit(REFUSED)


def _watch(client: "Client", started: "BulkStarted") -> "BulkView":
    """The server may be away for a while: the operation is not in its memory, and neither is our place in it."""
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
