"""`corvo worker`: runs the tasks of a Python program."""

import sys
from typing import Annotated, Literal

import typer

from corvo.cli.commands.requests import MISUSED, stop

LogLevel = Literal["debug", "info", "warning", "error"]


def worker(
    target: Annotated[str, typer.Argument(metavar="MODULE:APP", help="where the app is, such as shop.jobs:app")],
    queues: Annotated[str, typer.Option(metavar="A,B", help="only these; default: all", envvar="CORVO_QUEUES")] = "",
    concurrency: Annotated[
        int, typer.Option("--concurrency", "-c", metavar="N", min=1, help="jobs at a time", envvar="CORVO_CONCURRENCY")
    ] = 10,
    servers: Annotated[
        str | None, typer.Option("--server", metavar="URL", help="or several with commas; default: the app's")
    ] = None,
    shutdown_timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="for running jobs to end after SIGTERM")
    ] = 25.0,
    lease: Annotated[float, typer.Option(metavar="SECONDS", min=1, help="of a claim; heartbeats renew it")] = 30.0,
    prefetch: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="jobs claimed ahead; default: by how long they take")
    ] = None,
    worker_id: Annotated[str | None, typer.Option(help="default: host, process and a random part")] = None,
    health: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="serve /healthz and /metrics there")] = None,
    log_level: Annotated[LogLevel, typer.Option(help="what to log")] = "info",
    reload: Annotated[bool, typer.Option("--reload", help="start again when a .py file below here changes")] = False,
) -> None:
    """Run the tasks of a Python program, until Ctrl-C or SIGTERM.

    It fetches no more jobs then, and waits for the running ones; those that do not end in time are handed back with
    their checkpoints. A second signal hands them back at once. Exit code 0: every job was reported.

    \b
    Examples:
      corvo worker jobs:app
      corvo worker shop.jobs:app --queues emails.send,emails.bulk --concurrency 50
      corvo worker jobs:app --reload --log-level debug
      corvo worker jobs:app --health 0.0.0.0:9090 --shutdown-timeout 55
    """
    from corvo.client.worker.command import CannotRun, WorkerOptions, run_worker  # lazy: httpx, asyncio

    options = WorkerOptions(
        target=target,
        queues=[each for each in queues.split(",") if each],
        concurrency=concurrency,
        server=servers,
        shutdown_timeout=shutdown_timeout,
        lease=lease,
        prefetch=prefetch,
        worker_id=worker_id,
        health=health,
        log_level=log_level,
        reload=reload,
    )
    again = [sys.executable, "-m", "corvo.cli.main", *(one for one in sys.argv[1:] if one != "--reload")]
    try:
        code = run_worker(options, again)
    except CannotRun as error:
        stop(MISUSED, str(error))
    raise typer.Exit(code)
