"""`corvo queue`: show, pause, drain, limit, clear and delete a queue.

The frequent ones are also commands of their own: `corvo pause mail` is `corvo queue pause mail`.
"""

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from corvo.cli.commands.requests import (
    MISUSED,
    REFUSED,
    Commands,
    OutputFormat,
    ServerUrl,
    Yes,
    asking,
    complain,
    confirm,
    stop,
)
from corvo.cli.commands.watching import watchable
from corvo.client import DEFAULT_SERVER
from corvo.model.timestamps import parse_duration

if TYPE_CHECKING:
    from corvo.client.answers import QueueDetail
    from corvo.client.http import Client

SLICES_S = 600.0  # a queue of millions is emptied in slices; the answer comes after the last one
LOOK_AGAIN_S = 0.5

app = Commands(
    help="Show, pause, drain, limit, clear and delete a queue.",
    no_args_is_help=True,
)

QueueName = Annotated[str, typer.Argument(metavar="QUEUE", help="name of the queue")]


@app.command()
@watchable
def show(queue: QueueName, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """Show one queue: counts, limits and age of its oldest job, as its shard knows them now.

    \b
    Examples:
      corvo queue show mail
      corvo queue show mail --output json | jq .oldest_pending_age_ms
    """
    from corvo.cli.screen import show_queue  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich

    with asking(server) as client:
        detail = client.get_queue(queue)
    answer(detail, output, lambda: show_queue.queue(detail))


@app.command()
def pause(queue: QueueName, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """Pause a queue: workers get no more jobs from it. Active jobs continue.

    \b
    Examples:
      corvo queue pause mail
      corvo pause mail
    """
    from corvo.cli.screen import show_queue  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich

    with asking(server) as client:
        changed = client.pause_queue(queue)
    answer(changed, output, lambda: show_queue.said(queue, changed.status))


@app.command()
def resume(queue: QueueName, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """Resume a queue after a pause or a drain.

    \b
    Examples:
      corvo queue resume mail
      corvo resume mail
    """
    from corvo.cli.screen import show_queue  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich

    with asking(server) as client:
        changed = client.resume_queue(queue)
    answer(changed, output, lambda: show_queue.said(queue, changed.status))


@app.command()
def drain(
    queue: QueueName,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="wait until no job is active")] = True,
    timeout: Annotated[
        str | None, typer.Option(metavar="SPAN", help="stop waiting after this long, with exit code 1, such as 10m")
    ] = None,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Drain a queue: pause it and wait until no job is active.

    The queue stays paused afterwards, also after a timeout or Ctrl-C; `corvo resume` opens it again.

    \b
    Examples:
      corvo drain mail
      corvo drain mail --timeout 10m && echo safe to deploy
      corvo queue drain mail --no-wait --output json
    """
    from corvo.cli.screen import show_queue  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich

    try:
        timeout_s = float("inf") if timeout is None else parse_duration(timeout) / 1000
    except ValueError as error:
        stop(MISUSED, f"--timeout {timeout}: {error}")
    with asking(server) as client:
        drained = client.drain_queue(queue)
        if wait and drained.active:
            drained.active = _wait_for_running_jobs(client, queue, drained.active, time.monotonic() + timeout_s)
            drained.status = "draining" if drained.active else "drained"
    answer(drained, output, lambda: show_queue.drained(queue, drained))
    if wait and drained.active:
        stop(REFUSED, f"{drained.active} jobs of {queue} still run after {timeout}; the queue stays paused")


def _wait_for_running_jobs(client: "Client", queue: str, active: int, deadline: float) -> int:
    """How many are left. Progress goes to standard error, at a terminal as one line that changes."""
    shown = 0
    while active and time.monotonic() < deadline:
        if active != shown and sys.stderr.isatty():
            print(f"\r{active} jobs still running ", end="", file=sys.stderr, flush=True)
        elif active != shown:
            complain(f"{active} jobs still running")
        shown = active
        time.sleep(min(LOOK_AGAIN_S, max(0.0, deadline - time.monotonic())))
        active = _still_draining(client.get_queue(queue))
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    return active


def _still_draining(detail: "QueueDetail") -> int:
    if not detail.draining:
        stop(REFUSED, f"the drain of {detail.name} was ended by another command; the queue is {detail.status}")
    return detail.active


@app.command()
def clear(
    queue: QueueName, yes: Yes = False, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table"
) -> None:
    """Delete the waiting jobs of a queue: pending, scheduled and retrying ones.

    It asks first. Without a terminal it needs --yes.

    \b
    Examples:
      corvo queue clear mail
      corvo clear mail --yes
    """
    from corvo.cli.screen import show_queue  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich

    confirm(yes, f"Delete all waiting jobs of {queue}?")
    with asking(server, timeout_s=SLICES_S) as client:
        cleared = client.clear_queue(queue)
    answer(cleared, output, lambda: show_queue.cleared(queue, cleared))


def destroy(
    queue: QueueName,
    force: Annotated[bool, typer.Option("--force", help="even while it has active jobs")] = False,
    yes: Yes = False,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Delete a queue, its limits and all its jobs, ended ones too.

    It asks first. Without a terminal it needs --yes (or --confirm).

    \b
    Examples:
      corvo destroy mail --confirm
      corvo queue delete mail --yes --force
    """
    from corvo.cli.screen import show_queue  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich
    from corvo.client.bodies import DeleteQueueQuery  # lazy: msgspec

    confirm(yes, f"Delete {queue} and all its jobs, ended ones too?")
    with asking(server, timeout_s=SLICES_S) as client:
        changed = client.delete_queue(queue, DeleteQueueQuery(confirm=True, force=force))
    answer(changed, output, lambda: show_queue.said(queue, changed.status))


app.command("delete")(destroy)


@app.command()
def concurrency(
    queue: QueueName,
    limit: Annotated[int, typer.Argument(metavar="MAX", min=0, help="active jobs at a time; 0: no limit")],
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Limit how many jobs of a queue are active at a time, across all workers.

    \b
    Examples:
      corvo queue concurrency mail 5
      corvo queue concurrency mail 0
    """
    from corvo.cli.screen import show_queue  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich
    from corvo.client.bodies import ConcurrencyBody  # lazy: msgspec

    with asking(server) as client:
        changed = client.set_concurrency(queue, ConcurrencyBody(limit))
    answer(changed, output, lambda: show_queue.said(queue, changed.status))


@app.command()
def throttle(
    queue: QueueName,
    rate: Annotated[
        int | None, typer.Argument(metavar="RATE", min=1, help="jobs per window", show_default=False)
    ] = None,
    per: Annotated[str, typer.Option(metavar="SPAN", help="length of the time window, 1s to 24h")] = "1s",
    off: Annotated[bool, typer.Option("--off", help="remove the throttle")] = False,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Limit how many jobs of a queue start within a time window.

    \b
    Examples:
      corvo queue throttle mail 100 --per 1m
      corvo queue throttle mail --off
    """
    from corvo.cli.screen import show_queue  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich
    from corvo.client.bodies import ThrottleBody  # lazy: msgspec

    if off is (rate is not None):
        stop(MISUSED, "give either a rate or --off; corvo queue throttle --help shows the usage")
    try:
        window_ms = parse_duration(per)
    except ValueError as error:
        stop(MISUSED, f"--per {per}: {error}")
    with asking(server) as client:
        changed = (
            client.remove_throttle(queue)
            if rate is None
            else client.set_throttle(queue, ThrottleBody(rate=rate, window_ms=window_ms))
        )
    answer(changed, output, lambda: show_queue.said(queue, changed.status))


@app.command()
def retention(
    queue: QueueName,
    completed: Annotated[str | None, typer.Option(metavar="SPAN", help="for completed jobs")] = None,
    dead: Annotated[str | None, typer.Option(metavar="SPAN", help="for dead jobs")] = None,
    cancelled: Annotated[str | None, typer.Option(metavar="SPAN", help="for cancelled jobs")] = None,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Set how long ended jobs of a queue are kept: `7d`, `forever`, or `default` for the server's default.

    \b
    Examples:
      corvo queue retention mail --completed 1h --dead forever
      corvo queue retention mail --dead default
    """
    from msgspec import UNSET  # lazy: msgspec

    from corvo.cli.screen import show_queue  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich
    from corvo.client.bodies import RetentionBody  # lazy: msgspec

    spans = [UNSET if span is None else None if span == "default" else span for span in (completed, dead, cancelled)]
    with asking(server) as client:
        changed = client.set_retention(queue, RetentionBody(*spans))
    answer(changed, output, lambda: show_queue.said(queue, changed.status))


@app.command()
def redact(
    queue: QueueName,
    path: Annotated[list[str] | None, typer.Option(metavar="PATH", help="such as customer.email; repeatable")] = None,
    none: Annotated[bool, typer.Option("--none", help="remove the paths of this queue")] = False,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Set which values of its jobs' documents people do not see, or show the paths. Workers see everything.

    \b
    Examples:
      corvo queue redact mail --path customer.email --path 'items.*.iban'
      corvo queue redact mail
      corvo queue redact mail --none
    """
    from corvo.cli.screen import show_queue  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich
    from corvo.client.bodies import RedactionBody  # lazy: msgspec

    if path and none:
        stop(MISUSED, "give paths or --none, not both")
    with asking(server) as client:
        if path or none:
            changed = client.set_redaction(queue, RedactionBody(path or []))
            answer(changed, output, lambda: show_queue.said(queue, changed.status))
        else:
            view = client.redaction(queue)
            answer(view, output, lambda: "\n".join(view.paths) or "(none)")
