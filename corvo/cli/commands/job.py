"""`corvo job`: act on one job. Most of these commands may also be typed without `job`."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from corvo.cli.commands.requests import Commands, OutputFormat, ServerUrl, asking
from corvo.client import DEFAULT_SERVER

if TYPE_CHECKING:
    from corvo.client.http import Client

app = Commands(
    help="Act on one job: run it again, stop it, hold it, move it.",
    no_args_is_help=True,
    rich_markup_mode=None,  # as in main.py
)

JobId = Annotated[str, typer.Argument(metavar="ID", help="id of the job")]
Reason = Annotated[str, typer.Option(metavar="TEXT", help="for people; shown with the job")]
PriorityName = Literal["critical", "high", "normal"]


def _act(server: str, output: str, job_id: str, action: "Callable[[Client], Any]") -> None:
    from corvo.cli.screen import show  # lazy: rich

    with asking(server) as client:
        answer = action(client)
    show.answer(answer, output == "json", lambda: show.done(job_id, answer.status))


@app.command()
def retry(job_id: JobId, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """Run a job again that has ended, or a scheduled one at once, with all its attempts before it.

    \b
    Examples:
      corvo retry s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8
      corvo job retry s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8 --output json
    """
    _act(server, output, job_id, lambda client: client.retry(job_id))


@app.command()
def requeue(job_id: JobId, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """Run a dead job once more; the attempts it has had stay counted.

    \b
    Example:
      corvo job requeue s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8
    """
    _act(server, output, job_id, lambda client: client.requeue(job_id))


@app.command()
def cancel(
    job_id: JobId,
    grace: Annotated[
        str | None, typer.Option(metavar="SPAN", help="time for the worker of an active job, such as 90s; 0s: none")
    ] = None,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Cancel a job that has not ended; the worker of an active one gets a grace to stop.

    \b
    Examples:
      corvo cancel s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8
      corvo job cancel s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8 --grace 5m
    """
    from corvo.ops.jobs.cancel import CancelBody  # lazy: the operations with msgspec

    _act(server, output, job_id, lambda client: client.cancel(job_id, CancelBody(grace)))


@app.command()
def hold(
    job_id: JobId, reason: Reason = "", server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table"
) -> None:
    """Keep a job from running until it is approved or rejected.

    \b
    Examples:
      corvo hold s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8 --reason 'ask Ada first'
      corvo job hold s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8
    """
    from corvo.ops.jobs.hold import HoldBody  # lazy: the operations with msgspec

    _act(server, output, job_id, lambda client: client.hold(job_id, HoldBody(reason)))


@app.command()
def approve(job_id: JobId, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """Let a held job run.

    \b
    Examples:
      corvo approve s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8
      corvo job approve s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8
    """
    _act(server, output, job_id, lambda client: client.approve(job_id))


@app.command()
def reject(
    job_id: JobId, reason: Reason = "", server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table"
) -> None:
    """End a held job without running it.

    \b
    Examples:
      corvo reject s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8 --reason 'no longer needed'
      corvo job reject s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8
    """
    from corvo.ops.jobs.reject import RejectBody  # lazy: the operations with msgspec

    _act(server, output, job_id, lambda client: client.reject(job_id, RejectBody(reason)))


@app.command()
def move(
    job_id: JobId,
    queue: Annotated[str, typer.Argument(help="queue that gets the job")],
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Put a job that is not active into another queue; it keeps its id.

    \b
    Examples:
      corvo move s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8 mail.slow
      corvo job move s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8 mail.slow
    """
    from corvo.ops.jobs.move import MoveBody  # lazy: the operations with msgspec

    _act(server, output, job_id, lambda client: client.move(job_id, MoveBody(queue)))


@app.command()
def delete(job_id: JobId, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """Delete a job in any state, with its history.

    \b
    Examples:
      corvo delete s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8
      corvo job delete s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8
    """
    _act(server, output, job_id, lambda client: client.delete(job_id))


@app.command()
def priority(
    job_id: JobId,
    priority: Annotated[PriorityName, typer.Argument(help="higher ones are fetched first")],
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Give a job that waits another priority.

    \b
    Example:
      corvo job priority s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8 high
    """
    from corvo.ops.jobs.change_priority import PriorityBody  # lazy: the operations with msgspec

    _act(server, output, job_id, lambda client: client.change_priority(job_id, PriorityBody(priority)))


@app.command()
def replay(job_id: JobId, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """Enqueue a new job that begins at the checkpoint of this one, and print its id.

    \b
    Example:
      corvo job replay s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8
    """
    from corvo.cli.screen import show  # lazy: rich
    from corvo.ops.jobs.replay import ReplayBody  # lazy: the operations with msgspec

    with asking(server) as client:
        answer = client.replay(job_id, ReplayBody(iteration=1))
    show.answer(answer, output == "json", lambda: show.enqueued(answer))


SHORT = (retry, cancel, hold, approve, reject, move, delete)
