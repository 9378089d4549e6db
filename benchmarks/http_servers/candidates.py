"""The servers to compare. A candidate whose packages are not installed is left out, and a line says so."""

import importlib
import importlib.util
from typing import Any, NamedTuple


class Candidate(NamedTuple):
    name: str
    module: str  # with `serve(app, listener, graceful_s, stop, certificate)`
    needs: tuple[str, ...]  # packages
    what: str
    is_for_streams_only: bool = False  # another candidate serves requests the same way

    def missing(self) -> list[str]:
        return [package for package in self.needs if importlib.util.find_spec(package) is None]

    def load(self) -> Any:
        return importlib.import_module(self.module)


FAST_PATH = "fast-path"
CANDIDATES = (
    Candidate(FAST_PATH, "gateway.http.servers.hypercorn", (), "Hypercorn with our fast path, as the gateway runs it"),
    Candidate("hypercorn", "benchmarks.http_servers.plain_hypercorn", (), "Hypercorn, same settings, no fast path"),
    Candidate(
        "httptools",
        "benchmarks.http_servers.with_httptools",
        (),
        "httptools and websockets (sans I/O) under an asyncio protocol of ours",
    ),
    Candidate(
        "uvicorn",
        "benchmarks.http_servers.with_uvicorn",
        ("uvicorn",),
        "uvicorn with httptools and websockets",
    ),
    Candidate(
        "uvicorn-wsproto",
        "benchmarks.http_servers.with_uvicorn_wsproto",
        ("uvicorn", "wsproto"),
        "uvicorn with httptools and wsproto",
        is_for_streams_only=True,
    ),
    Candidate("granian", "gateway.http.servers.granian", ("granian",), "Granian, as the gateway runs it"),
)
BY_NAME = {candidate.name: candidate for candidate in CANDIDATES}
