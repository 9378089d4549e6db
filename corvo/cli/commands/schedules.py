"""`corvo schedules`: list, create, change and pause cron schedules."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from corvo.cli.commands.requests import (
    MISUSED,
    Commands,
    OutputFormat,
    PriorityName,
    ServerUrl,
    Yes,
    asking,
    confirm,
    stop,
)
from corvo.cli.commands.watching import watchable
from corvo.client import DEFAULT_SERVER

if TYPE_CHECKING:
    from corvo.client.answers import ScheduleView
    from corvo.client.http import Client

app = Commands(
    help="List, create, change and pause cron schedules. Without a command, list them.",
    invoke_without_command=True,
)

# Copies of the core's choices, as in requests.py; a test compares them.
CatchUpName = Literal["skip", "last", "all"]

ScheduleName = Annotated[str, typer.Argument(metavar="SCHEDULE", help="name or id of the schedule")]


def _answer(server: str, output: str, ask: "Callable[[Client], ScheduleView]") -> None:
    """Show the schedule that the server answers with."""
    from corvo.cli.screen import show_schedules  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich

    with asking(server) as client:
        view = ask(client)
    answer(view, output, lambda: show_schedules.schedule(view))


@app.callback()
def schedules(context: typer.Context, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """List, create, change and pause cron schedules. Without a command, list them.

    \b
    Example:
      corvo schedules
    """
    if context.invoked_subcommand is None:
        list_(server=server, output=output)


@app.command("list")
@watchable
def list_(server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """List all schedules by name, with the next and the last run.

    \b
    Examples:
      corvo schedules list
      corvo schedules list --output json | jq '.[] | select(.paused) | .name'
    """
    from corvo.cli.screen import show_schedules  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich

    with asking(server) as client:
        views = client.schedules()
    answer(views, output, lambda: show_schedules.schedules(views))


@app.command()
def show(schedule: ScheduleName, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """Show a schedule with its next five runs.

    \b
    Examples:
      corvo schedules show nightly
      corvo schedules show nightly --output json | jq -r '.next_slots[]'
    """
    _answer(server, output, lambda client: client.get_schedule(schedule))


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="unique name")],
    cron: Annotated[str, typer.Argument(help="five fields, or six with seconds last, or @daily, '@every 90s' …")],
    queue: Annotated[str, typer.Argument(help="queue of the jobs")],
    payload: Annotated[str, typer.Argument(help="payload of the jobs as JSON; - reads standard input")] = "{}",
    timezone: Annotated[str, typer.Option(metavar="ZONE", help="time zone of the expression")] = "UTC",
    priority: Annotated[PriorityName, typer.Option(help="priority of the jobs")] = "normal",
    max_retries: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="number of attempts; default: the server's")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="tag of the jobs; repeatable")] = None,
    tags: Annotated[str | None, typer.Option(metavar="JSON", help="tags of the jobs as an object")] = None,
    unique_key: Annotated[
        str, typer.Option(metavar="KEY", help="create no job while one with this key waits or runs")
    ] = "",
    catch_up: Annotated[CatchUpName, typer.Option(help="which missed runs to catch up")] = "last",
    catch_up_max: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="with --catch-up all: at most N runs")
    ] = None,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Create a schedule. If it exists, an identical one is left as it is and a different one is an error.

    \b
    Examples:
      corvo schedules create nightly '30 3 * * *' reports '{"kind": "daily"}' --timezone Europe/Berlin
      corvo schedules create ping '@every 10s' health --catch-up skip
      corvo schedules create bills '0 6 L * *' billing --catch-up all --catch-up-max 12 --tag team=finance
    """
    from corvo.cli.commands import bodies  # lazy: msgspec

    try:
        body = bodies.schedule_body(
            name,
            queue,
            cron,
            sys.stdin.read() if payload == "-" else payload,
            timezone=timezone,
            priority=priority,
            max_retries=max_retries,
            tags=tag or [],
            tags_json=tags,
            unique_key=unique_key,
            catch_up=catch_up,
            catch_up_max=catch_up_max,
        )
    except bodies.BadArgument as error:
        stop(MISUSED, str(error))
    _answer(server, output, lambda client: client.create_schedule(body))


@app.command()
def update(
    schedule: ScheduleName,
    cron: Annotated[str | None, typer.Option(metavar="CRON", help="new expression; applies from now on")] = None,
    timezone: Annotated[str | None, typer.Option(metavar="ZONE", help="time zone of the expression")] = None,
    queue: Annotated[str | None, typer.Option(metavar="NAME", help="queue of the jobs")] = None,
    payload: Annotated[
        str | None, typer.Option(metavar="JSON", help="payload of the jobs; - reads standard input")
    ] = None,
    priority: Annotated[PriorityName | None, typer.Option(help="priority of the jobs")] = None,
    max_retries: Annotated[int | None, typer.Option(metavar="N", min=0, help="number of attempts")] = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="replaces all tags; repeatable")] = None,
    tags: Annotated[str | None, typer.Option(metavar="JSON", help="replaces all tags; an object")] = None,
    unique_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="create no job while one with this key waits or runs; '': none")
    ] = None,
    unique_period: Annotated[
        int | None, typer.Option(metavar="SECONDS", min=0, help="a job holds the key no longer than this")
    ] = None,
    catch_up: Annotated[CatchUpName | None, typer.Option(help="which missed runs to catch up")] = None,
    catch_up_max: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="with --catch-up all: at most N runs")
    ] = None,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Change a schedule. Options that are not given stay unchanged.

    \b
    Examples:
      corvo schedules update nightly --cron '0 4 * * *'
      corvo schedules update nightly --payload '{"kind": "weekly"}' --unique-key nightly --unique-period 86400
    """
    from corvo.cli.commands import bodies  # lazy: msgspec

    try:
        body = bodies.new_terms(
            sys.stdin.read() if payload == "-" else payload,
            tag or [],
            tags,
            cron=cron,
            timezone=timezone,
            queue=queue,
            priority=bodies.tier(priority),
            max_retries=max_retries,
            unique_key=unique_key,
            unique_period=unique_period,
            catch_up=catch_up,
            catch_up_max=catch_up_max,
        )
    except bodies.BadArgument as error:
        stop(MISUSED, str(error))
    _answer(server, output, lambda client: client.update_schedule(schedule, body))


@app.command()
def pause(schedule: ScheduleName, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """Pause a schedule. Runs missed during the pause are not caught up.

    \b
    Examples:
      corvo schedules pause nightly
      corvo schedules pause nightly --output json
    """
    _answer(server, output, lambda client: client.pause_schedule(schedule))


@app.command()
def resume(schedule: ScheduleName, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """Resume a paused schedule, from now on.

    \b
    Examples:
      corvo schedules resume nightly
      corvo schedules resume nightly --output json
    """
    _answer(server, output, lambda client: client.resume_schedule(schedule))


@app.command()
def run(schedule: ScheduleName, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """Enqueue the job of a schedule now, in addition to its runs. Works while paused.

    \b
    Examples:
      corvo schedules run nightly
      corvo inspect "$(corvo schedules run nightly --output json | jq -r .job_id)"
    """
    from corvo.cli.screen import show as screen  # lazy: rich

    with asking(server) as client:
        made = client.run_schedule(schedule)
    screen.answer(made, output, lambda: screen.enqueued(made))


@app.command()
def delete(
    schedule: ScheduleName, yes: Yes = False, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table"
) -> None:
    """Delete a schedule. Its jobs stay. It asks first; without a terminal it needs --yes.

    \b
    Examples:
      corvo schedules delete nightly
      corvo schedules delete nightly --yes --output json
    """
    from corvo.cli.screen import show_schedules  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich

    confirm(yes, f"Delete the schedule {schedule}?")
    with asking(server) as client:
        deleted = client.delete_schedule(schedule)
    answer(deleted, output, lambda: show_schedules.deleted(deleted))
