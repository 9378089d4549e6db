"""A line to PostgreSQL: how the mirror and the gateway connect, and how neither waits for ever.

PostgreSQL's own time-outs need a server that lives. One that hangs, or a network that swallows everything, is cut off
from here: the socket is shut down, and whoever waits at it is told that the connection is lost.
"""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import Dialect
from sqlalchemy.dialects.postgresql import psycopg as dialect

from corvo.runtime.read_db import PostgresAddress

CONNECT_S = 5
POSTGRES: Dialect = dialect.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy's

Connection = psycopg.Connection[tuple[Any, ...]]


def connect(address: PostgresAddress, *, application: str, **settings: str) -> Connection:
    """Without prepared statements: after a swap they would be about tables that are gone, and poolers dislike them."""
    given = conninfo_to_dict(address.url).get("options") or ""
    options = " ".join([str(given), *(f"-c {name}={value}" for name, value in settings.items())])
    return psycopg.connect(
        address.url,
        autocommit=True,
        prepare_threshold=None,
        connect_timeout=CONNECT_S,
        application_name=application,
        client_encoding="utf8",
        tcp_user_timeout=10_000,
        options=options,
    )


def without_nul(value: Any) -> Any:
    """PostgreSQL's text cannot hold a NUL; an error's message can, and a search for one."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) and "\0" in value else value


@contextmanager
def cut_after(connection: Connection, seconds: float) -> Iterator[None]:
    timer = threading.Timer(seconds, _cut, (connection,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _cut(connection: Connection) -> None:
    try:
        with socket.socket(fileno=os.dup(connection.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)
    except (OSError, psycopg.Error):
        pass  # it is closed already
