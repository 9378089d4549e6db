"""`corvo why`: the reason why a job is not running."""

from typing import Annotated

import typer

from corvo.cli.commands.requests import OutputFormat, ServerUrl, asking
from corvo.client import DEFAULT_SERVER


def why(
    job_id: Annotated[str, typer.Argument(help="id of the job")],
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Show why a job is not running, as the leader of its shard knows it now.

    \b
    Examples:
      corvo why s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8
      corvo why s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8 --output json
    """
    from corvo.cli.screen import show  # lazy: rich

    with asking(server) as client:
        view = client.why(job_id)
    show.answer(view, output, lambda: show.why(view))
