"""`corvo job`: plain actions on one job. Written by `python -m corvo.cli.derive`: do not edit."""

from typing import Annotated

import typer

from corvo.cli.commands.job import JobId, act, app
from corvo.cli.commands.requests import OutputFormat, PriorityName, ServerUrl
from corvo.client import DEFAULT_SERVER


@app.command()
def cancel(
    job_id: JobId,
    grace: Annotated[
        str | None,
        typer.Option(
            "--grace", help="how long the worker of an active job may take to stop: `90s`, or seconds; 0: stop at once"
        ),
    ] = None,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Cancel a job that has not ended; the worker of an active job gets time to stop.

    \b
    Examples:
      corvo cancel s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8 --grace 5s
      corvo job cancel s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8 --grace 5s
    """
    act("cancel", {"grace": grace}, job_id, server, output)


@app.command()
def retry(
    job_id: JobId,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Run an ended job again, or a scheduled job at once, with all its attempts.

    \b
    Examples:
      corvo retry s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8
      corvo job retry s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8
    """
    act("retry", {}, job_id, server, output)


@app.command()
def requeue(
    job_id: JobId,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Run a dead job once more; its attempts are not reset.

    \b
    Examples:
      corvo requeue s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8
      corvo job requeue s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8
    """
    act("requeue", {}, job_id, server, output)


@app.command()
def hold(
    job_id: JobId,
    reason: Annotated[str | None, typer.Option("--reason", help="for people; shown with the job")] = None,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Keep a job from running until it is approved or rejected.

    \b
    Examples:
      corvo hold s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8 --reason 'check the address first'
      corvo job hold s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8 --reason 'check the address first'
    """
    act("hold", {"reason": reason}, job_id, server, output)


@app.command()
def approve(
    job_id: JobId,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Let a held job run.

    \b
    Examples:
      corvo approve s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8
      corvo job approve s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8
    """
    act("approve", {}, job_id, server, output)


@app.command()
def reject(
    job_id: JobId,
    reason: Annotated[str | None, typer.Option("--reason", help="for people; shown with the job")] = None,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """End a held job without running it.

    \b
    Examples:
      corvo reject s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8 --reason 'no longer needed'
      corvo job reject s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8 --reason 'no longer needed'
    """
    act("reject", {"reason": reason}, job_id, server, output)


@app.command()
def move(
    job_id: JobId,
    queue: Annotated[
        str, typer.Argument(help="1 to 200 characters of letters, digits and `._:/-`, beginning with a letter or digit")
    ],
    reset_attempts: Annotated[
        bool, typer.Option("--reset-attempts", help="count its attempts from zero again")
    ] = False,
    keep_priority: Annotated[
        bool, typer.Option("--keep-priority/--no-keep-priority", help="false: it is `normal` in its new queue")
    ] = True,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Move a job that is not active to another queue; it keeps its id.

    \b
    Examples:
      corvo move s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8 emails.slow
      corvo job move s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8 emails.slow
    """
    act(
        "move",
        {"queue": queue, "reset_attempts": reset_attempts, "keep_priority": keep_priority},
        job_id,
        server,
        output,
    )


@app.command()
def priority(
    job_id: JobId,
    priority: Annotated[PriorityName, typer.Argument()],
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Change the priority of a waiting job.

    \b
    Examples:
      corvo priority s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8 high
      corvo job priority s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8 high
    """
    act("change_priority", {"priority": priority}, job_id, server, output)


@app.command()
def reschedule(
    job_id: JobId,
    scheduled_at: Annotated[
        str | None, typer.Option("--scheduled-at", help="not before this time: RFC 3339, or a date")
    ] = None,
    delay: Annotated[str | None, typer.Option("--delay", help="not before this delay from now: `10m`")] = None,
    delay_ms: Annotated[
        int | None, typer.Option("--delay-ms", help="the same in milliseconds; takes precedence")
    ] = None,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Change the time at which a waiting job runs.

    \b
    Examples:
      corvo reschedule s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8 --delay 10m
      corvo job reschedule s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8 --delay 10m
    """
    act("reschedule", {"scheduled_at": scheduled_at, "delay": delay, "delay_ms": delay_ms}, job_id, server, output)


ACTIONS = (cancel, retry, requeue, hold, approve, reject, move, priority, reschedule)
