"""Hypercorn without our classes: the gateway's settings, and settings in place of our classes."""

import asyncio
import socket
from typing import Any

import hypercorn.asyncio
import hypercorn.asyncio.run
import hypercorn.asyncio.tcp_server
import hypercorn.protocol
import hypercorn.protocol.h2

from gateway.http.messages import HTTP2_HEAD_BYTES_MAX, HTTP2_STREAMS_MAX
from gateway.http.servers import hypercorn as ours
from gateway.http.tls_reload import Certificate

MUST_RESTART_TO_RENEW = False
PING_S = 20.0


async def serve(
    app: Any,
    listener: socket.socket,
    graceful_s: float,
    stop: asyncio.Event,
    certificate: Certificate | None = None,
) -> None:
    uninstall()
    config = ours.config(graceful_s)
    config.certificate = certificate
    config.websocket_ping_interval = PING_S
    config.h2_max_concurrent_streams = HTTP2_STREAMS_MAX
    config.h2_max_header_list_size = HTTP2_HEAD_BYTES_MAX
    config.bind = [f"fd://{listener.detach()}"]
    await hypercorn.asyncio.serve(app, config, shutdown_trigger=stop.wait)


def uninstall() -> None:
    """Restores Hypercorn's classes, which importing the gateway's module has replaced."""
    hypercorn.asyncio.run.TCPServer = hypercorn.asyncio.tcp_server.TCPServer  # type: ignore[attr-defined]
    hypercorn.protocol.H2Protocol = hypercorn.protocol.h2.H2Protocol  # type: ignore[attr-defined]
