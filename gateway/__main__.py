"""`python -m gateway --run-dir run`: settings → app → serve. The supervisor starts it in the data directory and passes
the listening socket as standard input (`--listener stdin`). Without that, it opens a socket."""

import argparse
import asyncio
import gc
import importlib
import os
import signal
import socket
import sys
import time
from pathlib import Path

import msgspec
import structlog
import uvloop

from corvo.endpoint import PlanContext
from corvo.model import audit
from corvo.model.access_records import RateLimit
from corvo.model.ids import Minter
from corvo.runtime.addresses import is_loopback, parse_networks, split_address
from corvo.runtime.admin_password import BadPassword, read_password
from corvo.runtime.certificate import BadCertificate
from corvo.runtime.clustering import is_clustered
from corvo.runtime.heartbeat import INTERVAL_NS, ProcessHeartbeat
from corvo.runtime.movable_clock import wall_clock
from corvo.runtime.origins import parse_origins
from corvo.runtime.payload_keys import read_payload_keys
from corvo.runtime.process import Locked, configure_logging, die_with_parent, open_listener, read_settings, take_lock
from corvo.runtime.read_db import address_of
from corvo.runtime.secret_file import BadSecretFile, client_secret
from corvo.runtime.settings import Settings
from gateway.access.audit_writer import AuditWriter
from gateway.access.auditing import Auditing
from gateway.access.guard import Guard, Policy
from gateway.access.key_uses import KeyUses
from gateway.access.late_sign_on import LateSignOn, SignOnOptions
from gateway.access.login import Login
from gateway.access.person_sessions import PersonSessions
from gateway.access.proxy_headers import ProxyHeaders
from gateway.access.quotas import QuotaWatch
from gateway.access.redaction import Curtain
from gateway.access.registry import Registry
from gateway.access.sessions import AdminPassword
from gateway.api.access import AccessEndpoints
from gateway.api.bulk.bulks import Bulks
from gateway.api.composed import ComposedEndpoints
from gateway.api.events import EventListener
from gateway.api.fetch import Fetcher
from gateway.api.rebuild import Rebuilding
from gateway.api.stream import Streams
from gateway.app import ENDPOINTS, Gateway
from gateway.console.assets import Console
from gateway.health import Health
from gateway.http.cors import Cors
from gateway.http.rate_limits import Rate, RateLimits
from gateway.http.tls_reload import Certificate
from gateway.metrics import Metrics
from gateway.pages import Pages
from gateway.readdb.file import READ_DB
from gateway.search.database import ReadDb
from gateway.shards.client import Shards
from gateway.shards.plan_executor import Looking
from gateway.shards.sealing import Sealing

ASK_S = 10.0  # how long a request may wait for its shard, retries included

log = structlog.get_logger()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m gateway", description="HTTP in front of the shards.")
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("--gateway", type=int, default=0, metavar="N", help="its number among those of the node")
    parser.add_argument("--listener", choices=["stdin"], help="the socket to serve; it opens one when not given")
    options = parser.parse_args()
    die_with_parent()
    settings = read_settings(options.run_dir)
    configure_logging(settings.log_level, settings.log_format, process=f"gateway-{options.gateway}")
    try:
        lock = take_lock(options.run_dir / f"gateway-{options.gateway}.lock")
    except Locked as holder:
        log.error("another process serves HTTP here", pid=str(holder))
        return 1
    try:
        certificate = Certificate(settings.tls_cert, settings.tls_key) if settings.tls_cert else None
    except BadCertificate as error:
        log.error(str(error))
        return 1
    try:
        policy, sign_on_options = _policy(settings), _sign_on_options(settings)
        sealing = Sealing(read_payload_keys(settings.payload_key_file))
    except (BadPassword, BadSecretFile) as error:
        log.error(str(error))
        return 1
    listener = _inherited() if options.listener else open_listener(*split_address(settings.bind))
    if is_clustered(settings):
        os.nice(4)  # a request may wait; a shard that is silent for half a second is considered dead
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(
            _run(settings, options.run_dir, options.gateway, listener, certificate, policy, sign_on_options, sealing)
        )
    log.info("stopped")
    lock.close()
    return 0


def _inherited() -> socket.socket:
    """Take the supervisor's listening socket, and put an empty standard input in its place."""
    listener = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return listener


def _rate_limits(settings: Settings, registry: Registry) -> RateLimits | None:
    if settings.rate_limit == "off":
        return None

    def limits_of(namespace: str) -> RateLimit | None:
        record = registry.namespace(namespace)
        return None if record is None else record.limits

    return RateLimits(
        Rate(settings.rate_limit_read_rps, settings.rate_limit_read_burst),
        Rate(settings.rate_limit_write_rps, settings.rate_limit_write_burst),
        settings.rate_limit,
        limits_of,
    )


def _policy(settings: Settings) -> Policy:
    password = read_password(settings.admin_password_file)
    return Policy(
        settings.auth,
        is_loopback(settings.bind),
        None if password is None else AdminPassword(password),
        frozenset(parse_origins(settings.cors_origins)),
    )


def _sign_on_options(settings: Settings) -> SignOnOptions:
    audiences = tuple(filter(None, (part.strip() for part in settings.oidc_audiences.split(","))))
    return SignOnOptions(audiences, settings.public_url, client_secret(settings))


async def _run(
    settings: Settings,
    run_dir: Path,
    number: int,
    listener: socket.socket,
    certificate: Certificate | None,
    policy: Policy,
    sign_on_options: SignOnOptions,
    sealing: Sealing,
) -> None:
    draining = asyncio.Event()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    server = importlib.import_module(f"gateway.http.servers.{settings.http_server}")  # the other is not loaded

    shards = Shards([f"ipc://{run_dir}/shard-{shard}.ipc" for shard in range(settings.shards)], ASK_S, sealing)
    data_dir = run_dir.parent
    read_db = ReadDb(address_of(settings) or data_dir / READ_DB)
    mint = Minter(time.time_ns, int.from_bytes(os.urandom(5)))
    health = Health(shards, read_db, settings.node_id, draining, run_dir)
    metrics = Metrics(number, settings.metrics_queues)
    fetching = Fetcher(shards, draining)
    rebuilding = Rebuilding(data_dir, read_db)
    registry = Registry(lambda ask, timeout_s: shards.ask(0, ask, timeout_s=timeout_s))
    curtain = Curtain(lambda: registry.state.redaction, sealing)
    listening = EventListener(shards, draining, curtain)
    composed = ComposedEndpoints(shards, fetching, read_db, health, listening, rebuilding)
    clock_ns = wall_clock(settings.test_clock, data_dir)
    context = PlanContext(settings.shards, settings.max_payload_size, mint, clock_ns, dice=os.urandom)
    key_uses = KeyUses(lambda ask, timeout_s: shards.ask(0, ask, timeout_s=timeout_s))
    cors, limits = Cors(parse_origins(settings.cors_origins)), _rate_limits(settings, registry)
    streams = Streams(shards, fetching, limits)
    seat = f"{settings.node_id}/{number}"  # the next process with this name takes over its bulk operations at once
    bulks = Bulks(shards, read_db, context, seat, draining)
    audit_writer = AuditWriter(lambda ask, timeout_s: shards.ask(audit.SHARD, ask, timeout_s=timeout_s), mint.claim_id)
    sessions = PersonSessions(lambda ask, timeout_s: shards.ask(0, ask, timeout_s=timeout_s), registry, audit_writer)
    sign_on = LateSignOn(registry, sessions, sign_on_options)
    pages = Pages(
        health, metrics, read_db, ENDPOINTS, settings.node_id, Console(has_sign_on=lambda: sign_on.is_on), sign_on
    )
    proxies = ProxyHeaders(registry, parse_networks(settings.trusted_proxies))
    quotas = QuotaWatch(
        registry, lambda shard, ask, timeout_s: shards.ask(shard, ask, timeout_s=timeout_s), settings.shards
    )
    context = msgspec.structs.replace(context, rooms=quotas)
    guard = Guard(context, registry, policy, sign_on, proxies, note_use=key_uses.note)
    access = AccessEndpoints(registry, guard.has_password)
    is_secure = certificate is not None or settings.public_url.startswith("https://")
    login = Login(guard, is_secure, sessions)
    served = composed.by_name() | bulks.by_name() | access.by_name() | login.by_name()
    auditing = Auditing(
        ENDPOINTS,
        audit_writer,
        Looking(shards, ENDPOINTS),
        settings.audit_payload_reads == "on",
        guard.known_key,
    )
    gateway = Gateway(shards, guard, served, pages.app(), metrics, streams, cors, limits, registry, auditing, curtain)
    bulks.start()
    registry.start()
    key_uses.start()
    quotas.start()

    def drain() -> None:
        log.info("draining")
        streams.drain()
        fetching.drain()  # waits end early and /readyz answers 503; then the server finishes open requests
        loop.call_later(0.1, stop.set)

    def renewed() -> None:
        if server.MUST_RESTART_TO_RENEW:
            drain()  # the supervisor starts the next process, and holds the port until then

    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, drain)
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    log.info("serving", bind=settings.bind, http_server=settings.http_server, tls=certificate is not None)
    watching = None if certificate is None else asyncio.ensure_future(certificate.watch(renewed))
    heartbeat = ProcessHeartbeat(run_dir, f"gateway-{number}", settings.hang_timeout)
    beating = asyncio.ensure_future(_beat(heartbeat))
    try:
        await server.serve(gateway, listener, settings.shutdown_timeout, stop, certificate)
    finally:
        if watching is not None:
            watching.cancel()
        beating.cancel()
        heartbeat.end()
        await bulks.stop()
        await key_uses.stop()
        await quotas.stop()
        await auditing.stop()
        await registry.stop()
        await sign_on.close()
        shards.close()
        read_db.close()


async def _beat(heartbeat: ProcessHeartbeat) -> None:
    while True:
        heartbeat.beat()
        await asyncio.sleep(INTERVAL_NS / 1e9)


if __name__ == "__main__":
    sys.exit(main())
