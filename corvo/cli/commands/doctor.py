"""`corvo doctor`: what is wrong with a server or a machine, and what to do about it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from corvo.cli.commands.requests import REFUSED, OutputFormat, ServerUrl, asking
from corvo.client import DEFAULT_SERVER

if TYPE_CHECKING:
    from rich.table import Table

    from corvo.cli.diagnosis.verdicts import Check

_STYLES = {"ok": "green", "warn": "yellow", "fail": "red"}


def doctor(
    data_dir: Annotated[
        str | None,
        typer.Option("--data-dir", metavar="DIR", help="check this machine and this directory, and no server"),
    ] = None,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Check a server, or with --data-dir a machine before its first start. Exit code 1 when a check fails.

    A server is asked for its versions, clock, health, leaders, durability and restarts. A machine is measured: file
    limits, SQLite, clock, permissions, free space, kind of file system and the time of an fsync. The directory may be
    missing, or be in use by a running server. Each check has a verdict (ok, warn, fail) and says what to do.

    \b
    Examples:
      corvo doctor
      corvo doctor --data-dir /var/lib/corvo
      corvo doctor --output json | jq -r '.checks[] | select(.verdict != "ok") | .remedy'
    """
    from corvo.cli.screen.show import answer  # lazy: rich

    if data_dir is not None:
        from corvo.cli.diagnosis.machine import directory_checks, machine_checks  # lazy: sqlite3

        checks = [*machine_checks(), *directory_checks(Path(data_dir))]
    else:
        from corvo.cli.diagnosis.remote import server_checks  # lazy: httpx

        with asking(server, deadline_s=5.0) as client:
            checks = list(server_checks(client))
    verdict = next((one for one in ("fail", "warn") if any(check.verdict == one for check in checks)), "ok")
    answer({"verdict": verdict, "checks": checks}, output, lambda: _drawn(checks))
    if verdict == "fail":
        raise typer.Exit(REFUSED)


def _drawn(checks: "list[Check]") -> "Table":
    from rich.table import Table  # lazy: rich
    from rich.text import Text  # lazy: rich

    from corvo.cli.screen.show import plain  # lazy: rich

    grid = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("CHECK", "VERDICT"):
        grid.add_column(heading, no_wrap=True)
    grid.add_column("FOUND, AND WHAT TO DO", overflow="fold")
    for one in checks:
        remedy = f"\n→ {one.remedy}" if one.remedy else ""
        grid.add_row(one.name, Text(one.verdict, _STYLES[one.verdict]), plain(one.found + remedy))
    return grid
