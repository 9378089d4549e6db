"""The settings as flags of a command; flags, environment and file are combined here.

Flags are derived from `corvo.runtime.settings`, so a new setting is a new flag without a line here. They are text until
`load` checks them: it reports every fault, where the parser of the command line would stop at the first.
"""

import inspect
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from corvo.cli.commands.requests import MISUSED, OutputFormat, stop
from corvo.runtime.clustering import pod_of
from corvo.runtime.settings import ENV_PREFIX, BadSettings, Origins, Settings, describe, load, names

CONFIG_VARIABLE = ENV_PREFIX + "CONFIG"
_SECOND_NAMES = {"shards": "--raft-shards"}

Flags = dict[str, str | bool | None]


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """A command that takes every setting as a flag, and `--config`; `output` if it has such a parameter."""
    own = [one for one in inspect.signature(command).parameters if one == "output"]

    def run(config: str | None, durable: bool = False, **flags: Any) -> None:
        others = {name: flags.pop(name) for name in own}
        if durable:
            if flags["fsync"] not in (None, "on"):
                stop(MISUSED, f"--durable and --fsync {flags['fsync']} exclude each other")
            flags["fsync"] = "on"
        command(flags, config, **others)

    parameters = [
        _parameter("config", typer.Option("--config", metavar="FILE", help=f"settings as TOML [{CONFIG_VARIABLE}]"))
    ]
    parameters += [_parameter(name, _option(name)) for name in names()]
    parameters.append(_switch("durable", typer.Option("--durable", help="same as --fsync on, which is the default")))
    parameters += [_output() for _ in own]
    run.__name__ = command.__name__
    run.__doc__ = command.__doc__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what typer reads
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def load_settings(flags: Flags, config: str | None, environ: Mapping[str, str]) -> tuple[Settings, Origins]:
    """`BadSettings` with every fault, a file that cannot be read among them."""
    path = config or environ.get(CONFIG_VARIABLE)
    if not path:
        return _discovering(*load(flags, environ))
    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise BadSettings([f"the settings file {path} cannot be read: {reason}"]) from None
    return _discovering(*load(flags, environ, text, path))


def _discovering(settings: Settings, origins: Origins) -> tuple[Settings, Origins]:
    """Nodes that find each other by DNS are named by their machines, unless the settings say otherwise."""
    if not settings.discover or (settings.discover_dns_name and origins["node_id"] != "default"):
        return settings, origins
    try:
        node_id, dns_name = pod_of(socket.getfqdn())
    except ValueError as error:
        if settings.discover_dns_name:
            return settings, origins
        raise BadSettings([str(error)]) from None
    return msgspec.structs.replace(
        settings,
        node_id=node_id if origins["node_id"] == "default" else settings.node_id,
        discover_dns_name=settings.discover_dns_name or dns_name,
    ), origins


def flag_of(name: str) -> str:
    return "--" + name.replace("_", "-")


def _option(name: str) -> Any:
    default = Settings.__struct_defaults__[names().index(name)]
    origin = f"{ENV_PREFIX}{name.upper()}; default {default if default != '' else 'none'}"
    if isinstance(default, bool):
        return typer.Option(f"{flag_of(name)}/--no-{flag_of(name)[2:]}", help=f"{describe(name)} [{origin}]")
    names_ = [flag_of(name), *filter(None, [_SECOND_NAMES.get(name)])]
    return typer.Option(*names_, metavar="VALUE", help=f"{describe(name)} [{origin}]")


def _switch(name: str, option: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[bool, option])


def _output() -> inspect.Parameter:
    return inspect.Parameter("output", inspect.Parameter.KEYWORD_ONLY, default="table", annotation=OutputFormat)


def _parameter(name: str, option: Any) -> inspect.Parameter:
    is_switch = name in names() and isinstance(Settings.__struct_defaults__[names().index(name)], bool)
    kind: Any = bool | None if is_switch else str | None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, option])
