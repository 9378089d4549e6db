"""Connections of the mirror and the gateway to PostgreSQL, with hard deadlines.

PostgreSQL's own timeouts need a live server. If the server hangs or the network drops everything, `cut_after` shuts the
socket down, and the waiting call fails with a lost connection.
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
    """Connects without prepared statements: after a swap they would name dropped tables, and poolers break them."""
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
    """PostgreSQL's text cannot hold a NUL, but error messages and search terms can."""
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
        pass  # already closed
