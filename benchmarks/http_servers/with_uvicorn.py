"""uvicorn: httptools reads HTTP/1.1, `websockets` (sans I/O) the frames; the application is called as plain ASGI."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn

from corvo.model.limits import BODY_BYTES_MAX
from corvo.runtime.process import BACKLOG
from gateway.http.tls_reload import Certificate

MUST_RESTART_TO_RENEW = True


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # the gateway handles the signals


async def serve(
    app: Any,
    listener: socket.socket,
    graceful_s: float,
    stop: asyncio.Event,
    certificate: Certificate | None = None,
    web_sockets: str = "websockets-sansio",
) -> None:
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    config = uvicorn.Config(
        app,
        http="httptools",
        ws=web_sockets,
        loop="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        ws_max_size=BODY_BYTES_MAX,
        ws_per_message_deflate=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=int(graceful_s),
        backlog=BACKLOG,
    )
    server = _Server(config)
    serving = asyncio.ensure_future(server.serve([listener]))
    await stop.wait()
    server.should_exit = True
    await serving
