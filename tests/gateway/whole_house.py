"""The application as `gateway.__main__` puts it together, over fake shards and a real `read.db`."""

import os
from pathlib import Path

from corvo.endpoint import PlanContext
from corvo.model.ids import Minter
from gateway.access.guard import Guard, Policy
from gateway.access.login import Login
from gateway.access.registry import Registry
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
from gateway.pages import Pages
from gateway.search.database import ReadDb
from tests.gateway.asgi import OFF, PAYLOAD_BYTES_MAX, House, Reply, a_scope, call, parts
from tests.support.builders import NOW, Clock


class WholeHouse(House):
    def __init__(self, path: Path, shard_count: int = 1, policy: Policy = OFF) -> None:
        super().__init__(shard_count)
        self.read_db = ReadDb(path)
        shards = self.shards
        mint = Minter(Clock([NOW]), 0xABCDE)
        self.run_dir = path.parent / "run"
        self.uptime_s = 0.0
        health = Health(shards, self.read_db, "node-1", self.draining, self.run_dir, lambda: self.uptime_s)  # type: ignore[arg-type]
        fetching = Fetcher(shards, self.draining)  # type: ignore[arg-type]
        self.listening = EventListener(shards, self.draining)  # type: ignore[arg-type]
        rebuilding = Rebuilding(path.parent, self.read_db)
        composed = ComposedEndpoints(shards, fetching, self.read_db, health, self.listening, rebuilding)  # type: ignore[arg-type]
        pages = Pages(health, self.metrics, self.read_db, ENDPOINTS, "node-1", Console(path.parent / "console"))
        context = PlanContext(shard_count, PAYLOAD_BYTES_MAX, mint, Clock([NOW]), dice=os.urandom)
        self.registry = Registry(lambda ask, timeout_s: shards.ask(0, ask, timeout_s=timeout_s))
        streams = Streams(shards, fetching)  # type: ignore[arg-type]
        self.bulks = Bulks(shards, self.read_db, context, "node-1", self.draining)  # type: ignore[arg-type]
        self.guard = guard = Guard(context, self.registry, policy, clock_ns=Clock([NOW]))
        served = composed.by_name() | self.bulks.by_name() | AccessEndpoints(self.registry).by_name()
        self.app = Gateway(
            shards,  # type: ignore[arg-type]
            guard,
            served | Login(guard, is_secure=False).by_name(),
            pages.app(),
            self.metrics,
            streams,
            registry=self.registry,
        )

    def __exit__(self, *_: object) -> None:
        self.read_db.close()
        super().__exit__()

    def page(self, path: str, method: str = "GET", headers: list[tuple[bytes, bytes]] | None = None) -> Reply:
        path, _, query = path.partition("?")
        scope = a_scope(method, path, headers or [], query_string=query.encode())
        return self.runner.run(call(self.app, scope, parts()))
