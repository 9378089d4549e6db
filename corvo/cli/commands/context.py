"""`corvo context`: name servers, choose one. The file is `contexts.py`'s."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from corvo.cli.commands import contexts
from corvo.cli.commands.contexts import BadContexts, ServerContext, ServerContexts
from corvo.cli.commands.requests import MISUSED, REFUSED, Commands, OutputFormat, stop

app = Commands(
    help="Name servers with their keys, and choose the one that commands talk to.",
    no_args_is_help=True,
)

if TYPE_CHECKING:
    from rich.table import Table

Name = Annotated[str, typer.Argument(metavar="NAME", help="name of the context", autocompletion=lambda: _names())]
Address = Annotated[str, typer.Option("--server", metavar="URL", help="address of the server")]
Key = Annotated[
    str | None, typer.Option("--api-key", metavar="KEY", help="kept in the file of contexts; - reads standard input")
]
KeyFile = Annotated[
    str | None, typer.Option("--api-key-file", metavar="FILE", help="file with the key, read at each use")
]
CaCertFile = Annotated[str | None, typer.Option("--ca-cert", metavar="FILE", help="certificates (PEM) to trust")]


@app.command()
def add(
    name: Name,
    address: Address,
    key: Key = None,
    key_file: KeyFile = None,
    ca_cert_file: CaCertFile = None,
    output: OutputFormat = "table",
) -> None:
    """Add a context, or replace the one with this name. The first one is used at once.

    The server is not asked. Contexts are kept in `~/.config/corvo/contexts.json` (or below `XDG_CONFIG_HOME`), which
    only you can read. With --api-key-file, that file keeps the path, not the key.

    \b
    Examples:
      corvo context add prod --server https://corvo.example.com --api-key-file ~/.corvo-prod.key
      pass corvo/staging | corvo context add staging --server https://corvo.staging:8443 --api-key -
      corvo context add here --server http://localhost:8080
    """
    if key and key_file:
        stop(MISUSED, "--api-key and --api-key-file exclude each other")
    if key == "-":
        key = typer.get_text_stream("stdin").read().strip()
    for option, path in (("--api-key-file", key_file), ("--ca-cert", ca_cert_file)):
        if path and not Path(path).expanduser().is_file():
            stop(MISUSED, f"{option} {path}: there is no such file")
    given = ServerContext(address, key, _absolute(key_file), _absolute(ca_cert_file))
    _check_address(address)
    changed = _change(lambda known: known.with_context(name, given))
    _say(name, "current" if changed.current == name else "added", output)


@app.command()
def use(name: Name, output: OutputFormat = "table") -> None:
    """Choose the context that commands use from now on.

    --server, --context, `CORVO_SERVER` and `CORVO_CONTEXT` win over it.

    \b
    Example:
      corvo context use prod
    """
    _change(lambda known: known.using(name))
    _say(name, "current", output)


@app.command("list")
def list_(output: OutputFormat = "table") -> None:
    """List the contexts. Keys are not shown.

    \b
    Examples:
      corvo context list
      corvo context list --output json | jq -r '.[] | select(.current) | .server'
    """
    from corvo.cli.screen.show import answer, columns, plain  # lazy: rich

    known = _read()
    rows = [
        {
            "name": name,
            "current": name == known.current,
            "server": one.server,
            "key": "stored" if one.api_key else one.api_key_file or "",
            "ca_cert": one.ca_cert or "",
        }
        for name, one in sorted(known.by_name.items())
    ]

    def drawn() -> "Table":
        grid = columns("NAME", "IN USE", "SERVER", "KEY", "CA CERT")
        for row in rows:
            texts = (str(row[column]) for column in ("server", "key", "ca_cert"))
            grid.add_row(plain(str(row["name"])), "yes" if row["current"] else "", *map(plain, texts))
        return grid

    answer(rows, output, drawn)


@app.command()
def remove(name: Name, output: OutputFormat = "table") -> None:
    """Remove a context with its key. The server is not touched.

    \b
    Example:
      corvo context remove staging
    """
    _change(lambda known: known.without(name))
    _say(name, "removed", output)


def _read() -> ServerContexts:
    try:
        return contexts.read(contexts.path_of(os.environ))
    except BadContexts as error:
        stop(REFUSED, str(error))


def _change(change: Callable[[ServerContexts], ServerContexts]) -> ServerContexts:
    try:
        path = contexts.path_of(os.environ)
        changed = change(contexts.read(path))
        contexts.write(path, changed)
    except BadContexts as error:
        stop(REFUSED, str(error))
    return changed


def _check_address(address: str) -> None:
    from corvo.client.http import BadServer, Client  # lazy: httpx

    try:
        Client(address).close()
    except BadServer as error:
        stop(MISUSED, str(error))


def _absolute(path: str | None) -> str | None:
    return None if path is None else str(Path(path).expanduser().absolute())


def _names() -> list[str]:
    """For completion, where an error has no place to be shown."""
    try:
        return sorted(contexts.read(contexts.path_of(os.environ)).by_name)
    except BadContexts:
        return []


def _say(name: str, status: str, output: str) -> None:
    from corvo.cli.screen.show import answer, plain  # lazy: rich

    answer({"name": name, "status": status}, output, lambda: plain(f"{name}  {status}"))
