"""`corvo batch`: create, seal and show batches."""

from typing import Annotated

import typer

from corvo.cli.commands.requests import MISUSED, Commands, OutputFormat, ServerUrl, asking, stop
from corvo.cli.commands.watching import watchable
from corvo.client import DEFAULT_SERVER

app = Commands(
    help="Group jobs into a batch, with callbacks when all of them have ended.",
    no_args_is_help=True,
)

BatchName = Annotated[str, typer.Argument(metavar="ID", help="id of the batch")]


@app.command()
def create(
    on_complete: Annotated[
        str | None, typer.Option(metavar="QUEUE", help="queue of the callback when all jobs have ended")
    ] = None,
    on_success: Annotated[
        str | None, typer.Option(metavar="QUEUE", help="queue of the callback if all jobs completed")
    ] = None,
    on_failure: Annotated[
        str | None, typer.Option(metavar="QUEUE", help="queue of the callback if any job did not complete")
    ] = None,
    payload: Annotated[str, typer.Option(metavar="JSON", help="payload of the callbacks; the counts are added")] = "{}",
    description: Annotated[str, typer.Option(metavar="TEXT", help="a note")] = "",
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Create a batch and print its id. Jobs are added by `batch_id` until the batch is sealed.

    \b
    Examples:
      corvo batch create --on-complete albums.done --payload '{"album": 42}'
      corvo batch create --on-success reports.send --on-failure alarms --description "nightly reports"
    """
    from corvo.cli.commands import bodies  # lazy: rich, msgspec
    from corvo.cli.screen import show_batch  # lazy: rich, msgspec
    from corvo.cli.screen.show import answer  # lazy: rich

    try:
        body = bodies.batch_body(on_complete, on_success, on_failure, payload, description)
    except bodies.BadArgument as error:
        stop(MISUSED, str(error))
    with asking(server) as client:
        made = client.create_batch(body)
    answer(made, output, lambda: show_batch.made(made))


@app.command()
def seal(batch: BatchName, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """Seal a batch: it takes no more jobs, and its callbacks run when all its jobs have ended.

    \b
    Examples:
      corvo batch seal s01_batch_18a1f0c2d3e4f5a60a1b2c3d4e
      corvo batch seal s01_batch_18a1f0c2d3e4f5a60a1b2c3d4e --output json
    """
    from corvo.cli.screen import show_batch  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich

    with asking(server) as client:
        sealed = client.seal_batch(batch)
    answer(sealed, output, lambda: show_batch.sealed(batch, sealed))


@app.command()
@watchable
def show(batch: BatchName, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """Show a batch: state, counts and callbacks.

    \b
    Examples:
      corvo batch show s01_batch_18a1f0c2d3e4f5a60a1b2c3d4e
      corvo batch show s01_batch_18a1f0c2d3e4f5a60a1b2c3d4e --output json | jq .pending
    """
    from corvo.cli.screen import show_batch  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich

    with asking(server) as client:
        view = client.get_batch(batch)
    answer(view, output, lambda: show_batch.batch(view))
