"""Hypercorn: in pure Python, the default."""

import asyncio
import socket
import ssl
from typing import Any

import hypercorn.asyncio
from hypercorn.config import Config

from corvo.model.limits import BODY_BYTES_MAX
from corvo.runtime.process import BACKLOG
from gateway.http import hypercorn_connection
from gateway.http.tls_reload import Certificate

MUST_RESTART_TO_RENEW = False


class SecureConfig(Config):
    """With our own context for TLS: Hypercorn would make one that cannot be renewed."""

    certificate: Certificate | None = None

    @property
    def ssl_enabled(self) -> bool:
        return self.certificate is not None

    def create_ssl_context(self) -> ssl.SSLContext | None:
        return self.certificate.context if self.certificate is not None else None


async def serve(
    app: Any,
    listener: socket.socket,
    graceful_s: float,
    stop: asyncio.Event,
    certificate: Certificate | None = None,
) -> None:
    chosen = config(graceful_s)
    chosen.certificate = certificate
    chosen.bind = [f"fd://{listener.detach()}"]
    await hypercorn.asyncio.serve(app, chosen, shutdown_trigger=stop.wait)


def config(graceful_s: float) -> SecureConfig:
    config = SecureConfig()
    config.accesslog = None
    config.errorlog = None
    config.include_server_header = False
    config.graceful_timeout = graceful_s
    config.keep_alive_timeout = 30.0  # between requests, also for the head of one; a long poll is not idle
    config.keep_alive_max_requests = 1_000_000_000  # the default closes a busy worker's connection every 1000 requests
    config.ssl_handshake_timeout = 10.0
    config.h11_max_incomplete_size = 32 * 1024
    config.backlog = BACKLOG
    config.websocket_max_message_size = BODY_BYTES_MAX  # a larger frame closes the stream with 1009
    config.websocket_ping_interval = None  # the fast path does it: `gateway/http/websocket.py`
    return config


hypercorn_connection.install()
