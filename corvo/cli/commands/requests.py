"""What all commands share: the flags of a connection, the output format, the question before a deletion, the exit."""

import functools
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, NoReturn, get_args

import typer

from corvo.cli.commands import contexts
from corvo.cli.commands.help import GroupedHelp
from corvo.client import DEFAULT_SERVER

if TYPE_CHECKING:
    from corvo.client.http import Client

OK, REFUSED, MISUSED = 0, 1, 2
SERVER_VARIABLES = ("CORVO_SERVER", "CORVO_URL")
KEY_FILE = "CORVO_API_KEY_FILE"  # a file with the key, when --api-key is not given

TABLE = "table"

# Copies of corvo.cli.formats, which needs msgspec; a test compares them.
OutputName = Literal["table", "json", "ndjson", "yaml"]
ServerUrl = Annotated[
    str,
    typer.Option(
        "--server",
        metavar="URL",
        envvar=list(SERVER_VARIABLES),
        help="address of the server",
        show_envvar=True,
        show_default=DEFAULT_SERVER,  # or that of the context
    ),
]
ContextName = Annotated[
    str | None,
    typer.Option(
        "--context",
        metavar="NAME",
        help=f"server, key and certificates of `corvo context add` [{contexts.VARIABLE}]",
    ),
]
CaCert = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        envvar="CORVO_CA_CERT",
        help="certificates (PEM) to trust instead of the system's",
        show_envvar=True,
    ),
]
ApiKey = Annotated[
    str | None,
    typer.Option(
        "--api-key",
        metavar="KEY",
        envvar="CORVO_API_KEY",
        help="sent with every request as X-API-Key",
        show_envvar=True,
    ),
]
OutputFormat = Annotated[
    OutputName, typer.Option("--output", "-o", help="output format; errors are JSON with all but table")
]
OutputJson = Annotated[bool, typer.Option("--output-json", help="same as --output json")]
Yes = Annotated[bool, typer.Option("--yes", "-y", "--confirm", help="do not ask for confirmation")]


class Connection(NamedTuple):
    """Flags of the running command that `asking` needs."""

    ca_cert: str | None = None
    api_key: str | None = None


_connection: ContextVar[Connection] = ContextVar("connection")
_is_json: ContextVar[bool] = ContextVar("is_json", default=False)


class Commands(typer.Typer):
    """Adds the shared flags to every command: `--output` and `--output-json`, and to commands with a `server`
    parameter also `--context`, `--ca-cert` and `--api-key`. Such a command is given the address of the server, wherever
    it comes from."""

    def __init__(self, **fields: Any) -> None:
        # rich doubles the time that help takes
        super().__init__(**{"cls": GroupedHelp, "rich_markup_mode": None, **fields})

    def command(self, *names: Any, **fields: Any) -> Callable[..., Any]:
        return self._taking(super().command(*names, **fields))

    def callback(self, *names: Any, **fields: Any) -> Callable[..., Any]:
        return self._taking(super().callback(*names, **fields))

    def _taking(self, register: Callable[..., Any]) -> Callable[..., Any]:
        def take(command: Callable[..., Any]) -> Callable[..., Any]:
            register(_with_shared_flags(command))
            return command

        return take


def _with_shared_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(command)
    own = signature.parameters

    @functools.wraps(command)
    def run(
        *,
        output_json: bool = False,
        output: str = "table",
        context_name: str | None = None,
        ca_cert: str | None = None,
        api_key: str | None = None,
        **fields: Any,
    ) -> Any:
        chosen = "json" if output_json and output == TABLE else output
        _is_json.set(chosen != TABLE)
        _connection.set(Connection(ca_cert, api_key))
        if "server" in own:
            fields["server"] = _server(fields.get("server") or "", context_name)
        return command(**fields, **({"output": chosen} if "output" in own else {}))

    added: dict[str, Any] = (
        {"context_name": (ContextName, None), "ca_cert": (CaCert, None), "api_key": (ApiKey, None)}
        if "server" in own
        else {}
    )
    added |= {} if "output" in own else {"output": (OutputFormat, "table")}
    added["output_json"] = (OutputJson, False)
    parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own.values()]
    # No default: a server that nobody named is that of the context.
    parameters = [one.replace(default="") if one.name == "server" else one for one in parameters]
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in added.items()
    ]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # what typer reads
    run.__annotations__ = {**command.__annotations__, **{name: annotation for name, (annotation, _) in added.items()}}
    return run


def _server(given: str, context_name: str | None) -> str:
    """The address, and the key and certificates of its context where no others are given."""
    try:
        named = next(filter(None, map(os.environ.get, SERVER_VARIABLES)), None)
        is_flag = given != named  # typer has already put the variable in the place of a missing flag
        source = contexts.Source(
            flag=given if is_flag else None,
            variable=named,
            context_flag=context_name,
            context_variable=os.environ.get(contexts.VARIABLE),
        )
        is_needed = context_name or not (given or named)
        known = contexts.read(contexts.path_of(os.environ)) if is_needed else contexts.ServerContexts("", {})
        chosen = contexts.choose(source, known)
    except contexts.BadContexts as error:
        stop(MISUSED, str(error))
    if chosen is None:
        return DEFAULT_SERVER
    flags = _connection.get(Connection())
    key_file = chosen.api_key_file or ""
    _connection.set(
        Connection(
            flags.ca_cert or chosen.ca_cert,
            flags.api_key or (None if os.environ.get(KEY_FILE) else chosen.api_key or _key_of_file(key_file)),
        )
    )
    return chosen.server


# Copies of the core's choices: importing the core slows `corvo --help` by a quarter. A test compares them.
class StateName(StrEnum):  # typer takes no list of a Literal
    PENDING = "pending"
    ACTIVE = "active"
    COMPLETED = "completed"
    RETRYING = "retrying"
    DEAD = "dead"
    CANCELLED = "cancelled"
    SCHEDULED = "scheduled"
    HELD = "held"


PriorityName = Literal["critical", "high", "normal", "low"]  # low is a second name of normal, as in the original


def complain(message: str) -> None:
    """A line for people on standard error."""
    print(f"corvo: {message}", file=sys.stderr)


def stop(code: int, *messages: str, kind: str = "") -> NoReturn:
    report_error(code, *messages, kind=kind)
    raise typer.Exit(code)


def report_error(code: int, *messages: str, kind: str = "") -> None:
    """On standard error: a line each with --output table, else one JSON object. `kind` names what went wrong."""
    if _is_json.get():
        named = {"error": "; ".join(messages), "code": kind or ("USAGE" if code == MISUSED else "FAILED")}
        print(json.dumps(named, ensure_ascii=False), file=sys.stderr)
        return
    for message in messages:
        complain(f"{message} ({kind})" if kind else message)


def expect_json(arguments: Sequence[str]) -> None:
    """For errors in the arguments themselves, which are found before any command runs."""
    pairs = pairwise([*arguments, ""])
    formats = tuple(name for name in get_args(OutputName) if name != TABLE)
    forms = ("--output-json", *(f"{flag}{name}" for flag in ("--output=", "-o", "-o=") for name in formats))
    _is_json.set(any(one in forms or (one in ("--output", "-o") and after in formats) for one, after in pairs))


def confirm(is_sure: bool, question: str) -> None:
    """The rule of all destructive commands: asked at a terminal, refused without a terminal, unless --yes is given."""
    if is_sure:
        return
    if not sys.stdin.isatty():
        stop(MISUSED, f"there is no terminal to ask {question!r}; give --yes to go ahead")
    if not typer.confirm(question, err=True):
        stop(REFUSED, "nothing was changed")


def is_this_machine(server: str) -> bool:
    from urllib.parse import urlsplit  # lazy: few commands need it

    from corvo.runtime.addresses import is_loopback, join_address  # lazy: likewise

    return is_loopback(join_address(urlsplit(server).hostname or "", 0))


def _key_of_file(path: str) -> str | None:
    """For containers, where secrets are files. The key never stands in a variable or a command line then."""
    if not path:
        return None
    try:
        return Path(path).read_text(encoding="latin-1").strip()
    except OSError as error:
        stop(MISUSED, f"the file of the API key, {path}, cannot be read: {(error.strerror or str(error)).lower()}")


@contextmanager
def asking(server: str, timeout_s: float = 10.0, deadline_s: float = 15.0) -> "Iterator[Client]":
    """A client for the length of a command. A refusal, or no answer at all, ends the command with an error."""
    from corvo.client.calls import ServerRefused  # lazy: msgspec
    from corvo.client.http import BadServer, Client, Unreachable, UntrustedServer  # lazy: httpx
    from corvo.client.trust import BadAuthority  # lazy: httpx

    flags = _connection.get(Connection())
    api_key = flags.api_key or _key_of_file(os.environ.get(KEY_FILE, ""))
    if api_key and not (api_key.isascii() and api_key.isprintable()):
        stop(MISUSED, "the API key has a character that an HTTP header cannot carry")
    try:
        with Client(
            server,
            timeout_s=timeout_s,
            deadline_s=deadline_s,
            waits_for_server=False,  # a person waits
            ca_cert=flags.ca_cert,
            api_key=api_key,
        ) as client:
            yield client
    except (BadServer, BadAuthority) as error:
        stop(MISUSED, str(error))
    except UntrustedServer as error:
        stop(REFUSED, str(error), kind="UNTRUSTED")
    except ServerRefused as refused:
        stop(REFUSED, refused.message, kind=refused.code)
    except Unreachable as error:
        advice = "is `corvo server` running there? --server, CORVO_SERVER or `corvo context use` name another one"
        stop(REFUSED, f"{error}; {advice}", kind="UNREACHABLE")
