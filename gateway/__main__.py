"""`python -m gateway --run-dir run`: settings → app → serve. The supervisor starts it in the data directory."""

import argparse
import asyncio
import gc
import os
import signal
import sys
import time
from pathlib import Path

import structlog
import uvloop
from hypercorn.asyncio import serve
from hypercorn.config import Config

from corvo.addresses import split_address
from corvo.clustering import is_clustered
from corvo.ids import Minter
from corvo.limits import BODY_BYTES_MAX
from corvo.node import Locked, configure_logging, die_with_parent, read_settings, take_lock
from corvo.ops.operation import Asking
from corvo.settings import Settings
from gateway import connection
from gateway.answers.database import ReadDb
from gateway.app import ENDPOINTS, Gateway
from gateway.bulk.bulks import Bulks
from gateway.events import Listening
from gateway.fetching import Fetching
from gateway.health import Health
from gateway.journeys import Journeys
from gateway.links import Shards
from gateway.metrics import Metrics
from gateway.pages import Pages
from gateway.stream import Streams

ASK_S = 10.0  # how long a request may wait for its shard, retries included

connection.install()

log = structlog.get_logger()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m gateway", description="HTTP in front of the shards.")
    parser.add_argument("--run-dir", type=Path, required=True)
    options = parser.parse_args()
    die_with_parent()
    settings = read_settings(options.run_dir)
    configure_logging(settings.log_level, settings.log_format, process="gateway")
    try:
        lock = take_lock(options.run_dir / "gateway.lock")
    except Locked as holder:
        log.error("another process serves HTTP here", pid=str(holder))
        return 1
    if is_clustered(settings):
        os.nice(4)  # a request may wait a moment; a shard that says nothing for half a second is taken for dead
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(settings, options.run_dir))
    log.info("stopped")
    lock.close()
    return 0


async def _run(settings: Settings, run_dir: Path) -> None:
    draining = asyncio.Event()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    shards = Shards([f"ipc://{run_dir}/shard-{shard}.ipc" for shard in range(settings.shards)], ASK_S)
    read_db = ReadDb(run_dir.parent / "read.db")
    mint = Minter(time.time_ns, int.from_bytes(os.urandom(5)))
    health = Health(shards, read_db, settings.node_id, draining)
    metrics = Metrics()
    fetching = Fetching(shards, draining)
    journeys = Journeys(shards, fetching, read_db, mint, health, Listening(shards, draining))
    pages = Pages(health, metrics, read_db, ENDPOINTS, settings.node_id)
    asking = Asking(settings.shards, settings.max_payload_size, mint, time.time_ns)
    streams = Streams(shards, fetching, asking)
    bulks = Bulks(shards, read_db, asking, settings.node_id, draining)
    gateway = Gateway(shards, asking, journeys.by_name() | bulks.by_name(), pages.app(), metrics, streams)
    bulks.start()

    def drain() -> None:
        log.info("draining")
        streams.drain()
        fetching.drain()  # waits end early, /readyz says no; then the server finishes what is in flight
        loop.call_later(0.1, stop.set)

    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, drain)
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    log.info("serving", bind=settings.bind)
    try:
        await serve(gateway, _config(settings), shutdown_trigger=stop.wait)  # type: ignore[arg-type]  # ASGI 3 callable
    finally:
        await bulks.stop()
        shards.close()
        read_db.close()


def _config(settings: Settings) -> Config:
    host, port = split_address(settings.bind)
    config = Config()
    config.bind = [f"[{host}]:{port}" if ":" in host else f"{host}:{port}"]
    config.accesslog = None
    config.errorlog = None
    config.include_server_header = False
    config.graceful_timeout = settings.shutdown_timeout
    config.keep_alive_timeout = 30.0  # between requests, also for the head of one; a long poll is not idle
    config.keep_alive_max_requests = 1_000_000_000  # the default closes a busy worker's connection every 1000 requests
    config.h11_max_incomplete_size = 32 * 1024
    config.backlog = 1024
    config.websocket_max_message_size = BODY_BYTES_MAX  # a larger frame closes the stream with 1009
    config.websocket_ping_interval = None  # the lane of the stream does it: `gateway/websocket.py`
    return config


if __name__ == "__main__":
    sys.exit(main())
