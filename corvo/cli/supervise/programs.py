"""Which processes a node consists of, and the supervisord configuration that says so. Pure.

Priorities decide the order: processes start by rising and stop by falling priority. So the gateways, last to start, are
first to go and drain while the shards still answer; the shards stop together; the mirror, which reads from them, last.
"""

import math
import re
import shlex
import sys
from collections.abc import Sequence

import msgspec

from corvo.runtime.process import RUN
from corvo.runtime.settings import Settings

GATEWAYS = "gateways"  # the program whose processes get the listening socket: see supervise.py
NUMBER = "{number}"  # in a command: the number of the process among its program's, from 0

# A process that lives this long counts as started; one that dies this often without getting there ends the node.
# supervisord counts the deaths in a row, so a slow crash loop is caught as surely as a fast one.
STARTED_S = 5
DEATHS_MAX = 10
DEATHS_ANY = 1_000_000_000  # of a process without which the node still serves jobs
STOP_MARGIN_S = 5  # beyond the drain, before a process that does not stop is killed
LOG_BYTES_MAX = 1_000_000

# supervisord takes the rest of a line after these for a comment, and offers no way to quote them.
_UNQUOTABLE = re.compile(r"[\r\n]|\s[;#]")


class Program(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    command: tuple[str, ...]
    priority: int
    count: int = 1
    deaths_max: int = DEATHS_MAX
    process: str = ""  # name of each of its processes; NUMBER is allowed here too


class Unwritable(ValueError):
    """A value that a supervisord configuration cannot hold."""


def programs(settings: Settings) -> list[Program]:
    python = sys.executable
    return [
        # Lists may fail while jobs are served: a mirror that cannot live is tried again for ever, and /readyz says so.
        Program(
            name="mirror",
            command=(python, "-m", "gateway.mirror", "--run-dir", RUN),
            priority=10,
            deaths_max=DEATHS_ANY,
        ),
        Program(
            name="shards",
            command=(python, "-m", "shards", "--run-dir", RUN, "--shard", NUMBER),
            priority=20,
            count=settings.shards,
            process=f"shard-{NUMBER}",
        ),
        Program(
            name=GATEWAYS,
            command=(python, "-m", "gateway", "--run-dir", RUN, "--gateway", NUMBER, "--listener", "stdin"),
            priority=30,
            count=settings.gateways,
            process=f"gateway-{NUMBER}",
        ),
    ]


def render(programs: Sequence[Program], data_dir: str, shutdown_timeout: float) -> str:
    """The configuration as text. There is no [inet_http_server] and no [unix_http_server]: nobody can give orders."""
    run_dir = f"{data_dir}/{RUN}"
    sections = [
        _section(
            "supervisord",
            {
                "nodaemon": "true",
                "silent": "true",  # its own lines go to the file only; ours say what an operator needs
                "nocleanup": "true",
                "logfile": _value(f"{run_dir}/supervisord.log"),
                "logfile_maxbytes": str(LOG_BYTES_MAX),
                "logfile_backups": "0",
                "pidfile": _value(f"{run_dir}/supervisord.pid"),
                "identifier": "corvo",
                "minfds": "256",  # server.py has raised the limit already; this one refuses to start where it cannot
                "minprocs": "1",  # the default of 200 refuses to start in a small container
            },
        )
    ]
    for program in programs:
        sections.append(
            _section(
                f"program:{program.name}",
                {
                    "command": _command(program.command),
                    # A short working directory keeps ipc://run/… below the 107 bytes of a socket's address.
                    "directory": _value(data_dir),
                    "process_name": _value(program.process or program.name),
                    "numprocs": str(program.count),
                    "priority": str(program.priority),
                    "autorestart": "true",
                    "startsecs": str(STARTED_S),
                    "startretries": str(program.deaths_max),
                    "stopsignal": "TERM",
                    "stopwaitsecs": str(math.ceil(shutdown_timeout) + STOP_MARGIN_S),
                    "stopasgroup": "true",
                    "killasgroup": "true",
                    "redirect_stderr": "true",
                    "stdout_logfile": "NONE",  # the process writes to our standard output itself: see supervise.py
                },
            )
        )
    return "\n".join(sections)


def _section(title: str, values: dict[str, str]) -> str:
    return "\n".join([f"[{title}]", *(f"{name}={value}" for name, value in values.items()), ""])


def _command(words: tuple[str, ...]) -> str:
    return " ".join(_value(word if word == NUMBER else shlex.quote(word)) for word in words)


def _value(text: str) -> str:
    """supervisord expands `%(name)s` in every value: a literal sign is doubled."""
    if _UNQUOTABLE.search(text):
        raise Unwritable(f"{text!r} holds a line break, or a space before ; or #: supervisord cannot be told about it")
    return text.replace("%", "%%").replace(NUMBER, "%(process_num)d")
