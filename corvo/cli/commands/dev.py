"""`corvo dev`: a server to try things out on."""

from typing import Annotated

import typer

from corvo.cli.commands.requests import MISUSED, OutputFormat, stop
from corvo.runtime.addresses import PORT_MAX


def dev(
    port: Annotated[int, typer.Option(metavar="PORT", min=0, max=PORT_MAX, help="HTTP port; 0: a free one")] = 0,
    jobs: Annotated[int, typer.Option(metavar="N", min=0, max=1_000, help="number of sample jobs")] = 24,
    output: OutputFormat = "table",
) -> None:
    """Start a temporary server with sample jobs and a worker for them. Ctrl-C stops it and removes its data.

    The server listens on this machine only. Its data is in a temporary directory, and it ignores the settings of other
    servers. The sample worker takes jobs of the queues `demo.…`, also those that you enqueue. Some of them fail once.
    With --output json or yaml, one object with address, directory and log is printed when the server is ready.

    \b
    Examples:
      corvo dev
      corvo dev --port 8080 --jobs 100
      corvo dev --jobs 0
    """
    from corvo.cli.commands.dev_server import run_dev  # lazy: httpx and the supervisor's helpers
    from corvo.cli.supervise.server import CannotStart  # lazy: structlog

    try:
        code = run_dev(port, jobs, output)
    except CannotStart as error:
        stop(MISUSED, str(error))
    raise typer.Exit(code)
