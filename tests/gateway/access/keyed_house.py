"""The whole application behind its real guard: no request gets in without a credential. Over fake shards.

`make` creates keys as an admin does, over HTTP. An actor is one kind of caller: a role, a namespace, a scope.
"""

import asyncio
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from gateway.access.guard import Policy
from gateway.access.sessions import AdminPassword
from gateway.api.stream import PATH as STREAM
from tests.gateway.asgi import a_scope, parts
from tests.gateway.whole_house import WholeHouse

PASSWORD = "the-password-of-the-tests"
JSON = (b"content-type", b"application/json")


class Actor(NamedTuple):
    """One kind of caller. Without a role it has no credential, or one that nobody knows."""

    role: str = ""
    namespace: str = "default"
    scope: str = ""
    key: str = ""

    @property
    def is_confined(self) -> bool:
        return self.namespace != "default" or bool(self.scope)

    @property
    def title(self) -> str:
        if not self.role:
            return "an unknown key" if self.key else "nobody"
        return f"{self.role} of {self.namespace}" + (f" in {self.scope}" if self.scope else "")


class Told(NamedTuple):
    """The beginning of an answer, which may be a stream that has no end."""

    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.content)

    @property
    def _is_refusal(self) -> bool:
        return self.status >= 400 and self.headers.get("content-type") == "application/json"

    @property
    def code(self) -> str:
        return str(self.json["code"]) if self._is_refusal else ""

    @property
    def error(self) -> str:
        return str(self.json["error"]) if self._is_refusal else ""


class KeyedHouse(WholeHouse):
    def __init__(self, path: Path, shard_count: int = 4, *namespaces: str) -> None:
        super().__init__(path, shard_count, Policy("on", password=AdminPassword(PASSWORD)))
        for namespace in namespaces:
            made = self.tell("POST", "/namespaces", PASSWORD, {"name": namespace})
            assert made.status == 201, made

    def make(self, role: str, namespace: str = "default", scope: str = "", **fields: Any) -> Actor:
        body = {"name": f"{role}-{scope}", "role": role, "namespace": namespace, "queue_scope": scope, **fields}
        told = self.tell("POST", "/auth/keys", PASSWORD, {name: value for name, value in body.items() if value != ""})
        assert told.status == 200, told
        return Actor(role, namespace, scope, told.json["api_key"])

    def make_role(self, name: str, permissions: list[dict[str, Any]]) -> Told:
        return self.tell("POST", "/auth/roles", PASSWORD, {"name": name, "permissions": permissions})

    def tell(self, method: str, path: str, key: str, body: Any = None, *headers: tuple[bytes, bytes]) -> Told:
        """One request to the API; see `page` for the rest."""
        return self.visit(method, "/api/v1" + path, key, body, *headers)

    def visit(self, method: str, path: str, key: str, body: Any = None, *headers: tuple[bytes, bytes]) -> Told:
        path, _, query = path.partition("?")
        lines = [*headers, *([(b"x-api-key", key.encode())] if key else []), *([] if body is None else [JSON])]
        content = body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)
        scope = a_scope(method, path, lines, query_string=query.encode(), raw_path=path.encode())
        return self.runner.run(self._visit(scope, content))

    async def _visit(self, scope: Any, content: bytes) -> Told:
        """Until the answer is complete, or has begun as a stream of events: then the client hangs up."""
        sent: list[Any] = []
        has_begun = asyncio.Event()

        async def send(message: Any) -> None:
            sent.append(message)
            headers = dict(sent[0]["headers"])
            if headers.get(b"content-type", b"").startswith(b"text/event-stream"):
                has_begun.set()

        async def hang_up() -> Any:
            await has_begun.wait()
            return {"type": "http.disconnect"}

        async with asyncio.timeout(20):
            await self.app(scope, parts(content, then=hang_up), send)
        headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return Told(sent[0]["status"], headers, b"".join(message.get("body", b"") for message in sent[1:]))

    def changes_of(self, namespace: str) -> list[tuple[bytes, bytes]]:
        """Everything in the shards that is the namespace's, by its name in keys and values."""
        mark, ending = f"{namespace}|".encode(), f"_{namespace}".encode()
        return [
            (key, value)
            for machine in self.shards.machines
            for key, value in machine.records().items()
            if mark in key or ending in key or mark in value or ending in value
        ]

    def frame(self, key: str, frame: Any, *headers: tuple[bytes, bytes]) -> Any:
        """The answer to one frame of a stream; None if the stream was refused."""
        return self.runner.run(self._frame(key, frame, headers))

    async def _frame(self, key: str, frame: Any, headers: tuple[tuple[bytes, bytes], ...]) -> Any:
        lines = [*headers, *([(b"x-api-key", key.encode())] if key else [])]
        to_server: asyncio.Queue[Any] = asyncio.Queue()
        to_client: asyncio.Queue[Any] = asyncio.Queue()
        scope = {"type": "websocket", "query_string": b"", "path": STREAM, "headers": lines, "subprotocols": []}
        await to_server.put({"type": "websocket.connect"})
        task = asyncio.create_task(self.app({**scope, "client": ("127.0.0.1", 1)}, to_server.get, to_client.put))
        try:
            async with asyncio.timeout(20):
                if (await to_client.get())["type"] != "websocket.accept":
                    await task
                    return None
                await to_server.put({"type": "websocket.receive", "bytes": msgspec.json.encode(frame)})
                answer = msgspec.json.decode((await to_client.get())["bytes"])
                await to_server.put({"type": "websocket.disconnect", "code": 1000})
                await task
                return answer
        finally:
            task.cancel()
