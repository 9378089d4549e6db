"""Start of every process of a node: read the settings, set up logging, take the lock, end with the parent.

Not part of the pure core: it does I/O. `corvo server` writes the files, the other processes read them.
"""

import ctypes
import fcntl
import json
import logging
import os
import signal
import socket
import sys
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import msgspec
import structlog

from corvo.model.incidents import NodeRecord
from corvo.runtime.settings import Settings

BACKLOG = 1024  # connections that wait to be accepted; the kernel may allow fewer
RUN = "run"  # sockets, locks and the files that the supervisor writes, below the data directory
SECRET_BYTES_MIN = 16
_PR_SET_PDEATHSIG = 1


class Locked(Exception):
    """Another process holds the lock."""


class BadSecret(ValueError):
    """The file of the cluster's secret cannot be used: a sentence with the reason and the remedy."""


class Identity(msgspec.Struct, frozen=True):
    """Identity of a data directory. Stored outside LevelDB, so that a lost database is noticed, not created again."""

    cluster_id: str
    node_id: str
    shards: int
    format: int = 1
    founders: tuple[str, ...] | None = None  # nodes whose replicas vote from the first entry; None: only this one
    nodes: dict[str, str] = {}  # addresses known at creation, by name


def take_lock(path: Path) -> IO[str]:
    """An exclusive lock while the process runs. An ipc path is no lock: two processes can bind the same one."""
    file = path.open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.seek(0)
        holder = file.read().strip()
        file.close()
        raise Locked(holder) from None
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file


def open_listener(host: str, port: int, is_shared: bool = False) -> socket.socket:
    """A listening socket; port 0 lets the kernel choose. OSError when the address cannot be bound. Between shared
    sockets the kernel spreads connections evenly."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # accepted connections inherit this
        # And these: a client whose machine is gone is noticed within a minute, even on an idle connection.
        for option, value in ((socket.TCP_KEEPIDLE, 30), (socket.TCP_KEEPINTVL, 10), (socket.TCP_KEEPCNT, 3)):
            listener.setsockopt(socket.IPPROTO_TCP, option, value)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        listener.bind(address)
        # Only listen() fails: Linux lets two sockets with SO_REUSEADDR bind one port.
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def write_settings(settings: Settings) -> None:
    path = Path(settings.data_dir, RUN, "settings.json")
    path.touch(mode=0o600)  # an address may hold a password
    path.write_bytes(msgspec.json.format(msgspec.json.encode(settings)))


def read_settings(run_dir: Path) -> Settings:
    return msgspec.json.decode((run_dir / "settings.json").read_bytes(), type=Settings)


def write_record(run_dir: Path, record: NodeRecord) -> None:
    """Whole or not at all: gateways read it at any moment."""
    draft = run_dir / "incidents.json.new"
    draft.write_bytes(msgspec.json.format(msgspec.json.encode(record)))
    draft.replace(run_dir / "incidents.json")


def read_record(run_dir: Path) -> NodeRecord:
    """Empty where there is no supervisor."""
    try:
        return msgspec.json.decode((run_dir / "incidents.json").read_bytes(), type=NodeRecord)
    except FileNotFoundError:
        return NodeRecord()


def read_identity(data_dir: Path) -> Identity | None:
    path = data_dir / "identity.json"
    return msgspec.json.decode(path.read_bytes(), type=Identity) if path.exists() else None


def write_identity(data_dir: Path, identity: Identity) -> None:
    """Write a file atomically, and sync it to disk before returning."""
    path, draft = data_dir / "identity.json", data_dir / "identity.json.new"
    with draft.open("wb") as file:
        file.write(msgspec.json.encode(identity))
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync_directory(data_dir)


def read_secret(path: str) -> bytes | None:
    """The secret that all nodes share; None without a file. White space around it is ignored."""
    if not path:
        return None
    try:
        with Path(path).open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            secret = file.read().strip()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise BadSecret(f"the secret {path} cannot be read: {reason}; choose another --cluster-secret-file") from None
    if mode & 0o007:  # the group may read it: a Kubernetes volume belongs to a group
        raise BadSecret(f"the secret {path} is open to everybody; keep it to yourself with `chmod 600 {path}`")
    if len(secret) < SECRET_BYTES_MIN:
        raise BadSecret(
            f"the secret {path} has {len(secret)} bytes and needs {SECRET_BYTES_MIN};"
            f" make one with `head -c 32 /dev/urandom | base64 > {path}`, the same for all nodes"
        )
    return secret


def sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def die_with_parent() -> None:
    """Let the kernel end this process when its parent dies: a killed supervisor cannot. Linux only; elsewhere the locks
    prevent two nodes on one directory."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    except (OSError, AttributeError):
        return
    if os.getppid() == 1 and os.environ.get("CORVO_SUPERVISED_BY", "1") != "1":
        raise SystemExit("the supervisor is gone")


def configure_logging(level: str, log_format: str, **context: Any) -> None:
    """One line for each event on standard output, also for loggers of the standard library."""
    is_console = log_format == "console" or (log_format == "auto" and sys.stdout.isatty())
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    renderer: list[Any] = (
        [structlog.dev.ConsoleRenderer(colors=log_format == "auto" or sys.stdout.isatty())]
        if is_console
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(_to_json)]
    )
    structlog.configure(
        processors=[*shared, *renderer],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.WriteLoggerFactory(sys.stdout),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(**context)
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer],
        )
    )
    logging.basicConfig(handlers=[handler], level=getattr(logging, level.upper()), force=True)
    sys.excepthook = _log_crash
    # One write for each line: several processes share one pipe, and lines must not be mixed.
    sys.stdout.reconfigure(line_buffering=True, write_through=False)  # type: ignore[union-attr]  # a text stream


def _log_crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """One event like any other, so that the log says what ended a process."""
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    structlog.get_logger().critical("crashed", exc_info=(kind, error, trace))


def _to_json(event: Any, **options: Any) -> str:
    return json.dumps(event, **options)
