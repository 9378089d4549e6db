"""A request to the console alone, without a gateway around it."""

import asyncio
from typing import Any

from starlette.applications import Starlette

from gateway.console.assets import Console
from tests.gateway.asgi import Reply, a_scope, parts


def ask(console: Console, path: str, *headers: tuple[bytes, bytes], method: str = "GET") -> Reply:
    app = Starlette(routes=console.routes())
    app.router.redirect_slashes = False
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app(a_scope(method, path, list(headers)), parts(), send))
    told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Reply(sent[0]["status"], told, b"".join(message.get("body", b"") for message in sent[1:]))
