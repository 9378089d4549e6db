"""One stream to one of the servers, opened again and again.

A worker needs one connection. When it breaks, the next server of the list is tried, with a pause that grows and varies,
so that a thousand workers do not come back in the same millisecond.
"""

import asyncio
import random
from collections.abc import Callable
from urllib.parse import urlsplit

import websockets
from websockets.asyncio.client import ClientConnection, connect

from .. import __version__
from ..connection import API_KEY_HEADER
from ..trust import trusting

PATH = "/api/v1/stream"
CONNECT_S_MAX = 10.0
PING_EVERY_S, PING_S_MAX = 5.0, 10.0  # a silent network is noticed within their sum
PAUSE_S_FIRST, PAUSE_S_MAX = 0.1, 5.0
FRAME_BYTES_MAX = 64 * 1024 * 1024  # an answer has claims of 8 MiB, and what is around them


class StreamLost(Exception):
    """The connection broke, or could not be opened. Says why."""


class StreamSource:
    """Where streams come from."""

    def __init__(
        self,
        servers: list[str],
        api_key: str | None,
        ca_cert: str | None,
        dice: Callable[[], float] = random.random,
    ) -> None:
        self._servers = [server if "://" in server else f"http://{server}" for server in servers]
        self._headers = {} if api_key is None else {API_KEY_HEADER: api_key}
        self._ca_cert = ca_cert
        self._dice = dice
        self._turn = 0
        self._failures = 0

    @property
    def server(self) -> str:
        return self._servers[self._turn % len(self._servers)]

    async def open(self) -> ClientConnection:
        url = urlsplit(self.server)
        is_secure = url.scheme == "https"
        try:
            stream = await connect(
                f"{'wss' if is_secure else 'ws'}://{url.netloc}{url.path.rstrip('/')}{PATH}",
                compression=None,
                max_size=FRAME_BYTES_MAX,
                max_queue=None,  # what is open bounds what can come
                open_timeout=CONNECT_S_MAX,
                close_timeout=1.0,
                ping_interval=PING_EVERY_S,
                ping_timeout=PING_S_MAX,
                proxy=None,
                ssl=trusting(self._ca_cert) if is_secure else None,
                additional_headers=self._headers,
                user_agent_header=f"corvo-worker/{__version__}",
            )
        except (OSError, TimeoutError, websockets.WebSocketException) as error:
            self._failures += 1
            self._turn += 1
            raise StreamLost(f"no stream at {url.geturl()}: {error or type(error).__name__}") from None
        self._failures = 0
        return stream

    async def pause(self) -> None:
        """Before the next attempt. The first after a loss goes to the next server, almost at once."""
        longest = min(PAUSE_S_FIRST * 2.0 ** min(self._failures, 10), PAUSE_S_MAX)
        await asyncio.sleep(longest * (0.5 + 0.5 * self._dice()))

    def lost(self) -> None:
        self._turn += 1
