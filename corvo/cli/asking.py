"""What commands that ask a server have in common: which one, how to print the answer, how to end when there is none."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

if TYPE_CHECKING:
    from corvo.client.http import Client

OK, REFUSED, MISUSED = 0, 1, 2

OutputName = Literal["table", "json"]
ServerUrl = Annotated[
    str, typer.Option("--server", metavar="URL", envvar="CORVO_SERVER", help="server to ask", show_envvar=True)
]
OutputFormat = Annotated[OutputName, typer.Option("--output", "-o", help="how to print the answer")]


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
    from corvo.client.http import BadServer, Client, Unreachable  # lazy: httpx

    try:
        with Client(server, timeout_s=timeout_s, deadline_s=deadline_s) as client:
            yield client
    except BadServer as error:
        stop(MISUSED, str(error))
    except ServerRefused as refused:
        stop(REFUSED, f"{refused.message} ({refused.code})")
    except Unreachable as error:
        stop(REFUSED, f"{error}; is `corvo server` running there? --server or CORVO_SERVER names another one")
