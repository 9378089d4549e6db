"""`corvo bench`: load on a server, and what it reached."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from corvo.cli.commands.requests import MISUSED, REFUSED, OutputFormat, ServerUrl, asking, complain, stop
from corvo.client import DEFAULT_SERVER

if TYPE_CHECKING:
    from corvo.client.bench.plan import BenchPlan

BATCH_MAX = 512  # as in corvo.client.bench.plan, which is imported late; a test compares

ModeName = Literal["steady", "burst", "latency"]
ProtocolName = Literal["stream", "http"]


def bench(
    mode: Annotated[ModeName, typer.Option(help="steady: whole lives; burst: all in, all out; latency: see above")] = (
        "steady"
    ),
    protocol: Annotated[ProtocolName, typer.Option(help="one WebSocket a connection, or HTTP requests")] = "stream",
    connections: Annotated[int, typer.Option(metavar="N", min=1, max=1024, help="connections at a time")] = 8,
    batch: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=BATCH_MAX, help="jobs a frame or request  [default: 50]")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=10_000_000, help="end after so many  [default for burst: 20000]"),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(metavar="S", min=0.1, max=3600, help="end after so long  [default: 10]")
    ] = None,
    rate: Annotated[
        float | None, typer.Option(metavar="N", min=0.1, max=100_000, help="latency: jobs a second  [default: 100]")
    ] = None,
    payload_bytes: Annotated[
        int, typer.Option(metavar="N", min=0, max=1_000_000, help="about so many bytes of payload a job")
    ] = 100,
    queues: Annotated[int, typer.Option(metavar="N", min=1, max=100, help="queues to spread the jobs over")] = 8,
    keep: Annotated[bool, typer.Option("--keep", help="leave the queues and jobs there afterwards")] = False,
    save: Annotated[str | None, typer.Option(metavar="FILE", help="write the results there as JSON, too")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="yes, on a server that is not on this machine")] = False,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Put load on a server and tell what it reached; errors and overloads are counted, too.

    steady: each connection enqueues, fetches and acks by the batch, as fast as it is answered. burst: all jobs in, then
    all out. latency: one job at a time at a fixed rate, timed from the moment that it was due to be sent until a
    waiting worker has it. The jobs go through queues of their own (bench.…), which are deleted afterwards. Ctrl-C ends
    it and shows what was measured so far.

    \b
    Examples:
      corvo bench
      corvo bench --mode burst --jobs 100000 --protocol http --connections 4
      corvo bench --mode latency --rate 500 --seconds 30 --output json
      corvo bench --save before.json --batch 10 --payload-bytes 1000
    """
    from corvo.cli.screen import show, show_bench  # lazy: rich
    from corvo.client.bench.plan import BadPlan, make_plan  # lazy: msgspec
    from corvo.client.bench.report import measure  # lazy: httpx, websockets and uvloop

    try:
        plan = make_plan(mode, protocol, connections, batch, queues, payload_bytes, jobs, seconds, rate)
    except BadPlan as error:
        stop(MISUSED, str(error))
    with asking(server) as client:
        if not _is_here(client.server):
            if not yes:
                stop(MISUSED, f"{client.server} is not this machine; give --yes if it may be put under load")
            complain(f"putting load on {client.server}")
        with _watching(plan) as watch:
            report = measure(client, plan, watch, is_kept=keep)
    if save is not None:
        try:
            Path(save).write_bytes(show_bench.as_json(report))
        except OSError as error:
            complain(f"{save} cannot be written: {error.strerror}")
    show.answer(report, output == "json", lambda: show_bench.table(report))
    if report.errors or not report.is_whole:
        raise typer.Exit(REFUSED)


def _is_here(server: str) -> bool:
    from urllib.parse import urlsplit  # lazy: as the rest of this command

    from corvo.runtime.addresses import is_loopback, join_address  # lazy: likewise

    return is_loopback(join_address(urlsplit(server).hostname or "", 0))


@contextmanager
def _watching(plan: "BenchPlan") -> Iterator[Any]:
    """A bar on a terminal, nothing elsewhere."""
    from rich.console import Console  # lazy: rich
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # lazy: rich

    if not sys.stderr.isatty():
        yield lambda jobs: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,.0f} jobs"))
    with Progress(
        *columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True, refresh_per_second=4
    ) as progress:
        task = progress.add_task(f"{plan.mode}, {plan.protocol}", total=plan.jobs)
        yield lambda jobs: progress.advance(task, jobs)
