"""`corvo queue`: look at one queue, stop and start it, limit it, empty it, delete it.

The commands that people type in a hurry exist at the top as well: `corvo pause mail` is `corvo queue pause mail`.
"""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from corvo.cli.commands.requests import MISUSED, REFUSED, Commands, OutputFormat, ServerUrl, asking, stop
from corvo.client import DEFAULT_SERVER
from corvo.model.timestamps import parse_duration

if TYPE_CHECKING:
    from corvo.queries.queue import QueueDetail

SLICES_S = 600.0  # a queue of millions is emptied in slices, and the answer comes after the last
LOOK_AGAIN_S = 0.5

app = Commands(
    help="Look at a queue, stop and start it, limit it, empty it.",
    no_args_is_help=True,
    rich_markup_mode=None,  # as in main.py
)

QueueName = Annotated[str, typer.Argument(metavar="QUEUE", help="name of the queue")]
Yes = Annotated[bool, typer.Option("--yes", help="do not ask")]


@app.command()
def show(queue: QueueName, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """Show one queue with its counts, its limits and what is left in it, as its shard knows it now.

    \b
    Examples:
      corvo queue show mail
      corvo queue show mail --output json | jq .oldest_pending_age_ms
    """
    from corvo.cli.screen import show_queue  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich

    with asking(server) as client:
        detail = client.get_queue(queue)
    answer(detail, output == "json", lambda: show_queue.queue(detail))


@app.command()
def pause(queue: QueueName, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """Give out no more jobs of a queue. Those that workers have go on.

    \b
    Examples:
      corvo queue pause mail
      corvo pause mail
    """
    from corvo.cli.screen import show_queue  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich

    with asking(server) as client:
        changed = client.pause_queue(queue)
    answer(changed, output == "json", lambda: show_queue.said(queue, changed.status))


@app.command()
def resume(queue: QueueName, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table") -> None:
    """Give out jobs of a queue again, after a pause or a drain.

    \b
    Examples:
      corvo queue resume mail
      corvo resume mail
    """
    from corvo.cli.screen import show_queue  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich

    with asking(server) as client:
        changed = client.resume_queue(queue)
    answer(changed, output == "json", lambda: show_queue.said(queue, changed.status))


@app.command()
def drain(
    queue: QueueName,
    wait: Annotated[bool, typer.Option("--wait", help="return when no job is active any more")] = False,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Give out no more jobs of a queue, and say how many are still active.

    \b
    Examples:
      corvo queue drain mail --wait
      corvo drain mail --output json
    """
    from corvo.cli.screen import show_queue  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich

    with asking(server) as client:
        drained = client.drain_queue(queue)
        while wait and drained.active:
            time.sleep(LOOK_AGAIN_S)
            drained.active = _still_draining(client.get_queue(queue))
            drained.status = "draining" if drained.active else "drained"
    answer(drained, output == "json", lambda: show_queue.drained(queue, drained))


def _still_draining(detail: "QueueDetail") -> int:
    if not detail.draining:
        stop(REFUSED, f"{detail.name} is {detail.status}: somebody has ended the drain")
    return detail.active


@app.command()
def clear(
    queue: QueueName, yes: Yes = False, server: ServerUrl = DEFAULT_SERVER, output: OutputFormat = "table"
) -> None:
    """Delete the jobs of a queue that wait: pending, scheduled and retrying ones.

    \b
    Examples:
      corvo queue clear mail
      corvo clear mail --yes
    """
    from corvo.cli.screen import show_queue  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich

    _confirm(yes, f"Delete all jobs that wait in {queue}?")
    with asking(server, timeout_s=SLICES_S) as client:
        cleared = client.clear_queue(queue)
    answer(cleared, output == "json", lambda: show_queue.cleared(queue, cleared))


@app.command()
def delete(
    queue: QueueName,
    force: Annotated[bool, typer.Option("--force", help="also while workers have jobs of it")] = False,
    yes: Yes = False,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Delete a queue, its limits and all its jobs, also those that have ended.

    \b
    Examples:
      corvo queue delete mail
      corvo queue delete mail --yes --force
    """
    from corvo.cli.screen import show_queue  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich
    from corvo.ops.queues.delete_queue import DeleteQueueQuery  # lazy: the operations with msgspec

    _confirm(yes, f"Delete {queue} and all its jobs, also those that have ended?")
    with asking(server, timeout_s=SLICES_S) as client:
        changed = client.delete_queue(queue, DeleteQueueQuery(confirm=True, force=force))
    answer(changed, output == "json", lambda: show_queue.said(queue, changed.status))


@app.command()
def concurrency(
    queue: QueueName,
    limit: Annotated[int, typer.Argument(metavar="MAX", min=0, help="jobs active at a time; 0: no limit")],
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Limit how many jobs of a queue are active at a time, over all workers.

    \b
    Examples:
      corvo queue concurrency mail 5
      corvo queue concurrency mail 0
    """
    from corvo.cli.screen import show_queue  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich
    from corvo.ops.queues.set_concurrency import ConcurrencyBody  # lazy: the operations with msgspec

    with asking(server) as client:
        changed = client.set_concurrency(queue, ConcurrencyBody(limit))
    answer(changed, output == "json", lambda: show_queue.said(queue, changed.status))


@app.command()
def throttle(
    queue: QueueName,
    rate: Annotated[
        int | None, typer.Argument(metavar="RATE", min=1, help="jobs given out", show_default=False)
    ] = None,
    per: Annotated[str, typer.Option(metavar="SPAN", help="in any span of this length, 1s to 24h")] = "1s",
    off: Annotated[bool, typer.Option("--off", help="remove the throttle")] = False,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Limit how many jobs of a queue are given out in any span of time.

    \b
    Examples:
      corvo queue throttle mail 100 --per 1m
      corvo queue throttle mail --off
    """
    from corvo.cli.screen import show_queue  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich
    from corvo.ops.queues.set_throttle import ThrottleBody  # lazy: the operations with msgspec

    if off is (rate is not None):
        stop(MISUSED, "give a rate, or --off to remove the throttle; corvo queue throttle --help shows the usage")
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
    answer(changed, output == "json", lambda: show_queue.said(queue, changed.status))


@app.command()
def retention(
    queue: QueueName,
    completed: Annotated[str | None, typer.Option(metavar="SPAN", help="of jobs that are completed")] = None,
    dead: Annotated[str | None, typer.Option(metavar="SPAN", help="of jobs that are dead")] = None,
    cancelled: Annotated[str | None, typer.Option(metavar="SPAN", help="of jobs that were cancelled")] = None,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Say how long jobs of a queue are kept after their end: `7d`, `forever`, or `default` for the server's own.

    \b
    Examples:
      corvo queue retention mail --completed 1h --dead forever
      corvo queue retention mail --dead default
    """
    from msgspec import UNSET  # lazy: msgspec

    from corvo.cli.screen import show_queue  # lazy: rich
    from corvo.cli.screen.show import answer  # lazy: rich
    from corvo.ops.queues.set_retention import RetentionBody  # lazy: the operations with msgspec

    spans = [UNSET if span is None else None if span == "default" else span for span in (completed, dead, cancelled)]
    with asking(server) as client:
        changed = client.set_retention(queue, RetentionBody(*spans))
    answer(changed, output == "json", lambda: show_queue.said(queue, changed.status))


def _confirm(is_sure: bool, question: str) -> None:
    if not is_sure and not typer.confirm(question):
        stop(REFUSED, "nothing was deleted")
