"""systemd: the unit that starts a server, and the words that the server says to it.

The protocol is a datagram to the socket that the variable NOTIFY_SOCKET names (sd_notify(3)). Without the variable
nobody listens and nothing is sent.
"""

import os
import re
import socket
from pathlib import Path

import structlog

UNIT = Path(__file__).with_name("corvo.service")
NOTIFY_SOCKET = "NOTIFY_SOCKET"
READY, STOPPING = "READY=1", "STOPPING=1"
SEND_S = 1.0
_HOMES = ("/home/", "/root/", "/run/user/")
_PLAIN = re.compile(r"/[^\"'\\\x00-\x1f\x7f]+")
_USER = re.compile(r"[a-z_][a-z0-9_-]{0,30}")


class BadProgram(ValueError):
    """Why no unit can start it, in a sentence."""


class BadUser(ValueError):
    """Why it is no name of a user, in a sentence."""


def take_address() -> str:
    """Where the manager listens; empty: nowhere. Taken out of the environment: our processes say nothing to it."""
    return os.environ.pop(NOTIFY_SOCKET, "")


def notify(address: str, *words: str) -> None:
    """A manager that does not listen any more is no reason to stop."""
    if not address:
        return
    name = f"\0{address[1:]}" if address.startswith("@") else address
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.settimeout(SEND_S)
            sender.sendto("\n".join(words).encode(), name)
    except OSError as error:
        structlog.get_logger().warning("service manager cannot be told", words=words, reason=str(error))


def unit(program: str, user: str) -> str:
    """The text of corvo.service for a program at this path."""
    if not _USER.fullmatch(user):
        raise BadUser(f"{user!r} is no name of a user")
    gaps = {
        "@PROGRAM@": _quoted(program),
        "@USER@": user,
        "@PROTECT_HOME@": "read-only" if program.startswith(_HOMES) else "yes",
    }
    text = UNIT.read_text()
    for gap, value in gaps.items():
        text = text.replace(gap, value)
    return text


def _quoted(program: str) -> str:
    """As systemd.service(5) reads a command line: % and $ are doubled, quotes are for spaces."""
    if not _PLAIN.fullmatch(program):
        raise BadProgram(f"{program!r} is no absolute path without quotes and backslashes")
    escaped = program.replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if " " in escaped else escaped
