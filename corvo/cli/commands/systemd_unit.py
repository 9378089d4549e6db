"""`corvo systemd-unit`: the unit that starts a server as a service."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from corvo.cli.commands.requests import MISUSED, stop


def systemd_unit(
    user: Annotated[str, typer.Option(metavar="NAME", help="user and group that the server runs as")] = "corvo",
    program: Annotated[
        str | None, typer.Option(metavar="PATH", help="absolute path of the command corvo  [default: this one]")
    ] = None,
) -> None:
    """Print a systemd unit that starts `corvo server` as a confined service.

    \b
    Examples:
      corvo systemd-unit > /etc/systemd/system/corvo.service
      corvo systemd-unit --user jobs --program /opt/corvo/bin/corvo
    """
    from corvo.cli.supervise.systemd import BadProgram, BadUser, unit  # lazy: structlog

    try:
        print(unit(str(Path(sys.executable).parent / "corvo") if program is None else program, user), end="")
    except (BadProgram, BadUser) as error:
        stop(MISUSED, str(error))
