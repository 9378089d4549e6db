"""`corvo events`: what happened to jobs and queues, a line each; with --follow, what happens."""

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from corvo.cli.commands.requests import OutputFormat, ServerUrl, asking, complain
from corvo.client import DEFAULT_SERVER

if TYPE_CHECKING:
    from corvo.queries.events import EventView, Gap

PAUSE_S = 1.0  # before a broken stream is taken up again
KEPT_SHOWN = 1_000


def events(
    queue: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="only this queue; may be given several times")
    ] = None,
    kind: Annotated[
        list[str] | None, typer.Option("--type", metavar="TYPE", help="only this type; may be given several times")
    ] = None,
    job: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="only this job; may be given several times")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="go on with what happens, until Ctrl-C")] = False,
    start: Annotated[bool, typer.Option("--from-start", help="with --follow: begin with the oldest kept")] = False,
    after: Annotated[str, typer.Option(metavar="CURSOR", help="go on after this place")] = "",
    count: Annotated[
        int | None,
        typer.Option("-n", metavar="COUNT", min=1, help="at most so many  [default: 1000; with --follow, no end]"),
    ] = None,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Print events: those that are kept, oldest first; with --follow, those that come.

    Events of one shard come in order; of several shards, in the order of their clocks. With --output json each event is
    a line of JSON.

    \b
    Examples:
      corvo events --job s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8
      corvo events --follow --queue mail --type failed --type dead
      corvo events --follow --from-start --output json | jq .type
    """
    from corvo.client.listening import EventStream  # lazy: httpx

    filters = {"queues": ",".join(queue or []), "types": ",".join(kind or []), "job_ids": ",".join(job or [])}
    is_json = output == "json"
    with asking(server) as client:
        listening = EventStream(client, filters, after)
        if follow:
            for number, heard in enumerate(listening.stream("start" if start else "", _pause), 1):
                _print(heard, is_json)
                if number == count:
                    return
        for event in listening.kept(count or KEPT_SHOWN):
            _print(event, is_json)
        if listening.has_more:
            complain(f"there are more: --after {listening.cursor}")


def _pause(trouble: str) -> None:
    complain(f"{trouble}; going on in a moment")
    time.sleep(PAUSE_S)


def _print(heard: "EventView | Gap", is_json: bool) -> None:
    import msgspec  # lazy: as below

    from corvo.cli.screen import show  # lazy: rich
    from corvo.queries.events import Gap  # lazy: the operations

    if isinstance(heard, Gap):
        complain(f"shard {heard.shard}: {heard.missed} events were no longer kept")
    elif is_json:
        sys.stdout.write(msgspec.json.encode(heard).decode() + "\n")
    else:
        show.table(show.event(heard))
    sys.stdout.flush()
