"""The mirror process: `python -m gateway.mirror --run-dir run`, with the data directory as its working directory.

Writes only the read database. On SIGTERM or SIGINT it commits the received changes, closes cleanly and exits with 0.
"""

import argparse
import os
import signal
import socket
from pathlib import Path
from typing import Any

import structlog

from corvo.runtime.clustering import is_clustered
from corvo.runtime.heartbeat import ProcessHeartbeat
from corvo.runtime.process import Locked, configure_logging, die_with_parent, read_identity, read_settings, take_lock
from corvo.runtime.read_db import address_of
from corvo.runtime.settings import Settings
from gateway.mirror.follow import MirrorFollower
from gateway.mirror.sqlite_store import SqliteStore, read_boot_id
from gateway.mirror.store import Store
from gateway.readdb.file import READ_DB

POSTGRES_SILENCE_S = 120.0  # well above the limit of one transaction, TURN_S_MAX in postgres_store.py

log = structlog.get_logger()


def main() -> None:
    if not __debug__:
        raise SystemExit("asserts guard the data: start Python without -O")
    parser = argparse.ArgumentParser(prog="python -m gateway.mirror")
    parser.add_argument("--run-dir", type=Path, default=Path("run"))
    run_dir: Path = parser.parse_args().run_dir
    settings = read_settings(run_dir)
    configure_logging(settings.log_level, settings.log_format, process="mirror")
    try:
        lock = take_lock(run_dir / "mirror.lock")
    except Locked as holder:
        raise SystemExit(f"another mirror runs on this data directory: process {holder}") from None
    die_with_parent()
    # Lists may be slightly stale, so the mirror yields to gateways and shards, most of all in a cluster. But at nice 19
    # on a busy machine it would never catch up after a start. So it lowers its priority once it has caught up.
    first, later = (4, 15) if is_clustered(settings) else (8, 0)
    os.nice(first)
    with lock:
        log.info("mirror started", shards=settings.shards)
        stopping = Stopping()
        addresses = [f"ipc://{run_dir}/shard-{shard}.ipc" for shard in range(settings.shards)]
        follower = MirrorFollower(Path.cwd(), addresses, _store(settings), on_caught_up=lambda: os.nice(later))
        heartbeat = ProcessHeartbeat(run_dir, "mirror", _silence_allowed_s(settings))
        try:
            follower.run(stopping.is_set, stopping.fileno(), heartbeat.beat)
        finally:
            heartbeat.end()


def _silence_allowed_s(settings: Settings) -> float:
    """PostgreSQL may be slow within one transaction; the store itself aborts one that takes too long."""
    if not settings.hang_timeout or address_of(settings) is None:
        return settings.hang_timeout
    return max(settings.hang_timeout, POSTGRES_SILENCE_S)


def _store(settings: Settings) -> Store[Any]:
    address = address_of(settings)
    if address is None:
        return SqliteStore(Path.cwd() / READ_DB, read_boot_id(), settings.shards)
    from gateway.mirror.postgres_store import PostgresStore  # lazy: psycopg is an optional extra

    identity = read_identity(Path.cwd())
    return PostgresStore(address, identity.cluster_id if identity is not None else "", settings.shards)


class Stopping:
    """A stop signal that wakes the poller: Python writes a byte to a polled socket and runs the handler."""

    def __init__(self) -> None:
        self._is_set = False
        self._reader, writer = socket.socketpair()
        writer.setblocking(False)
        self._writer = writer
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._set)
        signal.set_wakeup_fd(writer.fileno())

    def _set(self, *_: object) -> None:
        self._is_set = True

    def is_set(self) -> bool:
        return self._is_set

    def fileno(self) -> int:
        return self._reader.fileno()


if __name__ == "__main__":
    main()
