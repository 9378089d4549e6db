"""`corvo bench`: put load on a server and measure."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from corvo.cli.commands.requests import (
    MISUSED,
    REFUSED,
    OutputFormat,
    ServerUrl,
    Yes,
    asking,
    complain,
    is_this_machine,
    stop,
)
from corvo.client import DEFAULT_SERVER

if TYPE_CHECKING:
    from corvo.client.bench.plan import BenchPlan

BATCH_MAX = 512  # as in corvo.client.bench.plan, which is imported late; a test compares

ModeName = Literal["steady", "burst", "latency"]
ProtocolName = Literal["stream", "http"]


def bench(
    mode: Annotated[ModeName, typer.Option(help="what to measure, see above")] = ("steady"),
    protocol: Annotated[ProtocolName, typer.Option(help="one WebSocket per connection, or HTTP requests")] = "stream",
    connections: Annotated[int, typer.Option(metavar="N", min=1, max=1024, help="number of connections")] = 8,
    batch: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=BATCH_MAX, help="jobs per frame or request  [default: 50]")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=10_000_000, help="stop after N jobs  [default for burst: 20000]"),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(metavar="S", min=0.1, max=3600, help="stop after S seconds  [default: 10]")
    ] = None,
    rate: Annotated[
        float | None, typer.Option(metavar="N", min=0.1, max=100_000, help="latency: jobs per second  [default: 100]")
    ] = None,
    payload_bytes: Annotated[
        int, typer.Option(metavar="N", min=0, max=1_000_000, help="payload size of a job in bytes, roughly")
    ] = 100,
    queues: Annotated[int, typer.Option(metavar="N", min=1, max=100, help="number of queues")] = 8,
    keep: Annotated[bool, typer.Option("--keep", help="keep the queues and jobs afterwards")] = False,
    save: Annotated[
        str | None, typer.Option(metavar="FILE", help="also write the results to this file as JSON")
    ] = None,
    yes: Yes = False,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Put load on a server and measure throughput or latency.

    steady: each connection enqueues, fetches and acks batches of jobs as fast as the server answers. burst: first
    enqueue all jobs, then fetch and ack them all. latency: enqueue at a fixed rate and measure the time from when a job
    was due to be sent until a waiting worker has it. The jobs use their own queues (bench.…), which are deleted
    afterwards. Errors and overloads are counted. Ctrl-C stops and shows what was measured so far. A server on another
    machine needs --yes.

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
        if not is_this_machine(client.server):
            if not yes:
                stop(MISUSED, f"{client.server} is not this machine; give --yes to put load on it")
            complain(f"putting load on {client.server}")
        with _watching(plan) as watch:
            report = measure(client, plan, watch, is_kept=keep)
    if save is not None:
        try:
            Path(save).write_bytes(show_bench.as_json(report))
        except OSError as error:
            complain(f"{save} cannot be written: {error.strerror}")
    show.answer(report, output, lambda: show_bench.table(report))
    if report.errors or not report.is_whole:
        raise typer.Exit(REFUSED)


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
