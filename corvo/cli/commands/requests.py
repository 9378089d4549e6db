"""What commands that ask a server have in common: which one, how to print the answer, how to end when there is none."""

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer

if TYPE_CHECKING:
    from corvo.client.http import Client

OK, REFUSED, MISUSED = 0, 1, 2

OutputName = Literal["table", "json"]
ServerUrl = Annotated[
    str, typer.Option("--server", metavar="URL", envvar="CORVO_SERVER", help="server to ask", show_envvar=True)
]
CaCert = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        envvar="CORVO_CA_CERT",
        help="certificates (PEM) of who signed the server's; else the machine's are trusted",
        show_envvar=True,
    ),
]
OutputFormat = Annotated[OutputName, typer.Option("--output", "-o", help="how to print the answer")]


_ca_cert: ContextVar[str | None] = ContextVar("ca_cert", default=None)  # of the command that runs


class Commands(typer.Typer):
    """Every command that asks a server (`server: ServerUrl`) can also be told whom to trust, without a line in it."""

    def command(self, *names: Any, **fields: Any) -> Callable[..., Any]:
        register = super().command(*names, **fields)

        def take(command: Callable[..., Any]) -> Callable[..., Any]:
            register(_with_trust(command))
            return command

        return take


def _with_trust(command: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(command)
    if "server" not in signature.parameters:
        return command

    @functools.wraps(command)
    def run(*, ca_cert: str | None, **fields: Any) -> Any:
        _ca_cert.set(ca_cert)
        return command(**fields)

    added = inspect.Parameter("ca_cert", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=CaCert)
    parameters = []
    for parameter in signature.parameters.values():
        parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
        parameters += [added] if parameter.name == "server" else []
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # what typer reads
    run.__annotations__ = {**command.__annotations__, "ca_cert": CaCert}
    return run


# The choices of the core, written again because importing it slows `corvo --help` by a quarter; a test compares.
class StateName(StrEnum):  # typer takes no list of a Literal
    PENDING = "pending"
    ACTIVE = "active"
    COMPLETED = "completed"
    RETRYING = "retrying"
    DEAD = "dead"
    CANCELLED = "cancelled"
    SCHEDULED = "scheduled"
    HELD = "held"


def complain(message: str) -> None:
    print(f"corvo: {message}", file=sys.stderr)


def stop(code: int, *messages: str) -> NoReturn:
    for message in messages:
        complain(message)
    raise typer.Exit(code)


@contextmanager
def asking(server: str, timeout_s: float = 10.0, deadline_s: float = 15.0) -> "Iterator[Client]":
    """A client for the length of a command: a refusal, or no answer at all, ends the command with a line."""
    from corvo.client.calls import ServerRefused  # lazy: httpx and the operations
    from corvo.client.http import BadServer, Client, Unreachable, UntrustedServer  # lazy: httpx
    from corvo.client.trust import BadAuthority  # lazy: httpx

    try:
        with Client(server, timeout_s=timeout_s, deadline_s=deadline_s, ca_cert=_ca_cert.get()) as client:
            yield client
    except (BadServer, BadAuthority) as error:
        stop(MISUSED, str(error))
    except UntrustedServer as error:
        stop(REFUSED, str(error))
    except ServerRefused as refused:
        stop(REFUSED, f"{refused.message} ({refused.code})")
    except Unreachable as error:
        stop(REFUSED, f"{error}; is `corvo server` running there? --server or CORVO_SERVER names another one")
