"""`corvo job`: act on one job. These commands also exist without `job`.

Plain actions are derived from the endpoints (`derived.py`); here are those that need more.
"""

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corvo.cli.commands.requests import MISUSED, Commands, OutputFormat, ServerUrl, asking, stop
from corvo.cli.commands.times import moment
from corvo.client import DEFAULT_SERVER

if TYPE_CHECKING:
    from corvo.client.answers import Done

app = Commands(
    help="Act on one job: retry, cancel, hold, move and so on.",
    no_args_is_help=True,
)

JobId = Annotated[str, typer.Argument(metavar="ID", help="id of the job")]


def act(name: str, fields: dict[str, Any], job_id: str, server: str, output: str) -> None:
    """Ask for an endpoint by its name. Fields that were not given are left to the server. What only the command line
    knows is translated: the priority `low`, and times relative to now."""
    from corvo.cli.commands.bodies import body_of, tier  # lazy: msgspec
    from corvo.cli.screen import show  # lazy: rich
    from corvo.client.calls import call_of  # lazy: msgspec

    try:
        given = {field: value for field, value in fields.items() if value is not None}
        if "priority" in given:
            given["priority"] = tier(given["priority"])
        if "scheduled_at" in given:
            given["scheduled_at"] = moment(given["scheduled_at"], time.time_ns(), is_ahead=True)
        body = body_of(name, given)
    except ValueError as error:
        stop(MISUSED, str(error))
    with asking(server) as client:
        answer: Done = client.call(call_of(name, body, job_id=job_id))
    show.answer(answer, output, lambda: show.done(job_id, answer.status))


@app.command()
def delete(job_id: JobId, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """Delete a job in any state, with its history.

    \b
    Examples:
      corvo delete s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8
      corvo job delete s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8
    """
    act("delete_job", {}, job_id, server, output)


@app.command()
def replay(job_id: JobId, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """Enqueue a new job that starts at the checkpoint of this one, and print its id.

    \b
    Examples:
      corvo replay s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8
      corvo job replay s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8
    """
    from corvo.cli.screen import show  # lazy: rich
    from corvo.client.bodies import ReplayBody  # lazy: msgspec

    with asking(server) as client:
        answer = client.replay(job_id, ReplayBody(iteration=1))
    show.answer(answer, output, lambda: show.enqueued(answer))


BY_HAND = ("delete", "replay")
