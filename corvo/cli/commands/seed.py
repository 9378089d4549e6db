"""`corvo seed demo`: jobs in every state, to try commands and dashboards on."""

from typing import Annotated

import typer

from corvo.cli.commands.requests import MISUSED, Commands, OutputFormat, ServerUrl, Yes, asking, is_this_machine, stop
from corvo.client import DEFAULT_SERVER

app = Commands(
    help="Fill a server with example data.",
    no_args_is_help=True,
)


@app.callback()
def seed() -> None:
    """Fill a server with example data."""


@app.command()
def demo(
    count: Annotated[int, typer.Option(metavar="N", min=1, max=100_000, help="number of jobs")] = 48,
    yes: Yes = False,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Enqueue example jobs in all states, in queues whose names start with `demo.`, and one schedule.

    A server on another machine needs --yes. `corvo destroy demo.emails --confirm` and so on remove the jobs again.

    \b
    Examples:
      corvo seed demo
      corvo seed demo --count 500 --output json
    """
    from corvo.cli.commands.demo_jobs import seed_demo  # lazy: msgspec
    from corvo.cli.screen import show  # lazy: rich
    from corvo.cli.screen.show_progress import counting  # lazy: rich

    with asking(server) as client:
        if not yes and not is_this_machine(client.server):
            stop(MISUSED, f"{client.server} is not this machine; give --yes to fill it with example jobs")
        with counting("example jobs", count) as tell:
            made = seed_demo(client, count, tell)
    show.answer(made, output, lambda: show.plain(made.sentence()))
