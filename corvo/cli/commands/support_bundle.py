"""`corvo support-bundle`: what is needed to understand a problem, without secrets, in one file."""

import time
from pathlib import Path
from typing import Annotated

import typer

from corvo.cli.commands.requests import REFUSED, OutputFormat, ServerUrl, asking, stop
from corvo.client import DEFAULT_SERVER


def support_bundle(
    file: Annotated[
        str | None, typer.Argument(metavar="[FILE]", help="file to write  [default: corvo-support-DATE.tar.gz]")
    ] = None,
    data_dir: Annotated[
        str | None,
        typer.Option("--data-dir", metavar="DIR", help="also settings and checks of this node"),
    ] = None,
    log: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="also the end of this log, 2 MiB; repeatable")
    ] = None,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Write a support bundle: status, figures, settings, checks, versions and logs, without secrets and payloads.

    Known secrets (your key, those in the files that the settings name) and everything that looks like one are replaced.
    Names of queues, workers and hosts stay. Look into it before you send it. What cannot be had, because the server is
    down for instance, is a part that says why.

    \b
    Examples:
      corvo support-bundle
      corvo support-bundle problem.tar.gz --data-dir /var/lib/corvo --log /var/log/corvo.log
      journalctl -u corvo --since -1h > corvo.log && corvo support-bundle --log corvo.log
    """
    from corvo.cli.diagnosis.bundle import BundlePart, Origin, pack, parts_of  # lazy: httpx
    from corvo.cli.screen.show import answer, plain  # lazy: rich

    target = Path(file or time.strftime("corvo-support-%Y%m%d-%H%M%S.tar.gz"))
    made: list[str] = []

    def noted(part: BundlePart) -> BundlePart:
        made.append(part.name)
        return part

    try:
        with asking(server, deadline_s=5.0) as client:
            secrets = tuple(client.credentials.values())
            directory = None if data_dir is None else Path(data_dir)
            origin = Origin(client, directory, tuple(map(Path, log or ())), secrets)
            size = pack((noted(part) for part in parts_of(origin)), target, time.time())
    except OSError as error:
        stop(REFUSED, f"{target} cannot be written: {error.strerror}")
    told = {"file": str(target), "bytes": size, "parts": made}
    answer(told, output, lambda: plain(f"{target}  {len(made)} parts, {size} bytes"))
