"""From method and path to endpoint: one dict for fixed paths, a short list for those with parameters.

A parameter is the text between two slashes. A slash inside a queue's name is sent as `%2F`, and
`gateway/http/messages.py` keeps it apart from the slashes of the path: a queue `a/throttle` is not the throttle of `a`.
"""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec

from corvo.endpoint import Answer, Endpoint
from corvo.model.access import OPEN
from corvo.model.errors import Refusal
from corvo.model.name_fields import NameKind
from gateway.access.names import parameter_kinds
from gateway.http.messages import ENCODED_SLASH, Request

API = "/api/v1"

Handler = Callable[[Any, Request], Awaitable[Answer]]  # (body or query, request): serves an endpoint without a plan


class Match(NamedTuple):
    endpoint: Endpoint
    parameters: tuple[str, ...]
    kinds: tuple[NameKind | None, ...]  # of the parameters that are names


class Routes:
    def __init__(self, endpoints: tuple[Endpoint, ...]) -> None:
        self._fixed: dict[tuple[str, str], Match] = {}
        self._patterns: list[tuple[tuple[str | None, ...], Endpoint, tuple[NameKind | None, ...]]] = []
        self._open: set[tuple[str, str]] = set()
        self.decoders: dict[str, msgspec.json.Decoder[msgspec.Struct]] = {}
        for endpoint in endpoints:
            for path in (endpoint.path, *endpoint.aliases):
                self._add(API + path, endpoint)
                if endpoint.access == OPEN:
                    assert "{" not in path, f"{endpoint.name} is open: its path must be a fixed one"
                    self._open.add((endpoint.method, API + path))
            if endpoint.body is not None:
                self.decoders[endpoint.name] = msgspec.json.Decoder(endpoint.body)

    def _add(self, path: str, endpoint: Endpoint) -> None:
        if "{" in path:
            pieces = tuple(None if piece.startswith("{") else piece for piece in path.split("/"))
            self._patterns.append((pieces, endpoint, parameter_kinds(endpoint)))
        else:
            self._fixed[endpoint.method, path] = Match(endpoint, (), ())

    def is_open(self, method: str, path: str) -> bool:
        """Whether a request needs no credential."""
        return ("GET" if method == "HEAD" else method, path) in self._open

    def find(self, method: str, path: str) -> Match:
        """HEAD is served where GET is: the answer without its body."""
        known = "GET" if method == "HEAD" else method
        match = self._fixed.get((known, path)) or self._match(known, path)
        if match is not None:
            return match
        allowed = sorted(self._methods_of(path))
        path = path.replace(ENCODED_SLASH, "%2F")
        if allowed:
            raise Refusal("METHOD_NOT_ALLOWED", f"{path} supports {', '.join(allowed)}, not {method}")
        raise unknown_path(path)

    def _match(self, method: str, path: str) -> Match | None:
        pieces = path.split("/")
        for pattern, endpoint, kinds in self._patterns:
            if endpoint.method == method and _fits(pattern, pieces):
                values = tuple(
                    value.replace(ENCODED_SLASH, "/")
                    for piece, value in zip(pattern, pieces, strict=True)
                    if piece is None
                )
                return Match(endpoint, values, kinds)
        return None

    def methods_of(self, path: str) -> list[str]:
        """All that a client may send; empty where nothing is served."""
        methods = self._methods_of(path)
        if "GET" in methods:
            methods.add("HEAD")
        return sorted(methods | {"OPTIONS"}) if methods else []

    def _methods_of(self, path: str) -> set[str]:
        pieces = path.split("/")
        methods = {method for method, fixed in self._fixed if fixed == path}
        methods |= {endpoint.method for pattern, endpoint, _ in self._patterns if _fits(pattern, pieces)}
        return methods


def _fits(pattern: tuple[str | None, ...], pieces: list[str]) -> bool:
    return len(pattern) == len(pieces) and all(
        piece == known or (known is None and piece != "") for known, piece in zip(pattern, pieces, strict=True)
    )


def unknown_path(path: str) -> Refusal:
    return Refusal("NOT_FOUND", f"there is no route {path[:200]}; /docs lists the routes")
