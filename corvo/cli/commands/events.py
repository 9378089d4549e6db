"""`corvo events`: past events of jobs and queues, one per line; with --follow, new ones as they come."""

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from corvo.cli.commands.requests import OutputFormat, ServerUrl, asking, complain
from corvo.client import DEFAULT_SERVER

if TYPE_CHECKING:
    from corvo.client.answers import EventView, Gap

PAUSE_S = 1.0  # before a broken stream is opened again
KEPT_SHOWN = 1_000


def events(
    queue: Annotated[list[str] | None, typer.Option(metavar="NAME", help="only this queue; repeatable")] = None,
    kind: Annotated[list[str] | None, typer.Option("--type", metavar="TYPE", help="only this type; repeatable")] = None,
    job: Annotated[list[str] | None, typer.Option(metavar="ID", help="only this job; repeatable")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="wait for new events, until Ctrl-C")] = False,
    start: Annotated[bool, typer.Option("--from-start", help="with --follow: start at the oldest event")] = False,
    after: Annotated[str, typer.Option(metavar="CURSOR", help="continue after this event")] = "",
    count: Annotated[
        int | None,
        typer.Option("-n", metavar="COUNT", min=1, help="at most COUNT  [default: 1000; no limit with --follow]"),
    ] = None,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Print stored events, oldest first; with --follow, new events as they come.

    Events of one shard are in order; those of several shards are ordered by their clocks. With --output json, each
    event is one line of JSON.

    \b
    Examples:
      corvo events --job s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8
      corvo events --follow --queue mail --type failed --type dead
      corvo events --follow --from-start --output json | jq .type
    """
    from corvo.client.listening import EventStream  # lazy: httpx

    filters = {"queues": ",".join(queue or []), "types": ",".join(kind or []), "job_ids": ",".join(job or [])}
    with asking(server) as client:
        listening = EventStream(client, filters, after)
        if follow:
            for number, heard in enumerate(listening.stream("start" if start else "", _pause), 1):
                _print(heard, output)
                if number == count:
                    return
        for event in listening.kept(count or KEPT_SHOWN):
            _print(event, output)
        if listening.has_more:
            complain(f"there are more events: --after {listening.cursor}")


def _pause(trouble: str) -> None:
    complain(f"{trouble}; reconnecting")
    time.sleep(PAUSE_S)


def _print(heard: "EventView | Gap", output: str) -> None:
    from corvo.cli.formats import JSON, NDJSON, TABLE  # lazy: msgspec
    from corvo.cli.screen import show  # lazy: rich
    from corvo.client.answers import Gap  # lazy: msgspec

    if isinstance(heard, Gap):
        complain(f"shard {heard.shard}: {heard.missed} events were deleted before they could be read")
    elif output == TABLE:
        show.table(show.event(heard))
    else:  # without an end, so JSON is JSON lines, too
        show.array([heard], NDJSON if output == JSON else output)
    sys.stdout.flush()
