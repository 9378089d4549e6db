"""The console at /ui, from the files that the build left in `built/`.

A file is served only if its name was in that folder when the gateway started: the path of a request is looked up in a
dictionary and never reaches the file system. All other addresses under /ui are pages of the console. They get the same
index, which finds its files by `<base>`, relative to the address: so the console works under any prefix of a proxy.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

BUILT = Path(__file__).parent / "built"
PREFIX = "/ui"
DEPTH_MAX = 32  # slashes in the address of a page: the name of a queue may have some
SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " base-uri 'self'; form-action 'none'; frame-ancestors 'none'"
)
_INDEX = "index.html"
_BASE = b'<base href="./">'  # in the index, as built
_SIGN_ON = b'<meta name="sign-on" content="off">'
_HASHED = re.compile(r"assets/.+-[A-Za-z0-9_-]{8}\.\w+")
_IMMUTABLE = "public, max-age=31536000, immutable"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_ENCODINGS = (("br", ".br"), ("gzip", ".gz"))  # the smaller first
_ABSENT = b"""<!doctype html><html lang="en"><meta charset="utf-8"><title>Corvo: no console</title>
<h1>This server runs without its console</h1>
<p>It was installed from sources, and the console was not built. <code>make setup</code> builds it: this needs a
package registry of npm. Then start the server again. The <a href="docs">HTTP API</a> and the command line work.</p>
</html>
"""


class Asset(NamedTuple):
    """Held in memory, all of them: less than a megabyte, and a build may replace the files while we serve."""

    content: bytes
    media_type: str
    encodings: tuple[tuple[str, bytes], ...]  # the compressed copies beside it


class Console:
    """What was built, or nothing: then /ui says so."""

    def __init__(self, folder: Path = BUILT, has_sign_on: Callable[[], bool] = lambda: False) -> None:
        """`has_sign_on`: whether people may sign in with an issuer. The page asks before it has a credential."""
        self._has_sign_on = has_sign_on
        self._assets = _listed(folder)
        index = self._assets.pop(_INDEX, None)
        self._index = None if index is None else index.content
        if self._index is not None and (self._index.count(_BASE), self._index.count(_SIGN_ON)) != (1, 1):
            raise ValueError(f"{folder / _INDEX} has no place for its base and the sign-on")

    @property
    def is_built(self) -> bool:
        return self._index is not None

    def routes(self) -> list[Route]:
        return [Route(PREFIX, self._enter), Route(PREFIX + "/{path:path}", self._serve)]

    async def _enter(self, request: Request) -> Response:
        return RedirectResponse("ui/")  # relative: a proxy may serve us under a prefix

    async def _serve(self, request: Request) -> Response:
        path: str = request.path_params["path"]
        asset = self._assets.get(path)
        if asset is not None:
            return _file(path, asset, request.headers.get("accept-encoding", ""))
        if self._index is None:
            return _page(503, _ABSENT.replace(b'"docs"', b'"%bdocs"' % (b"../" * (path.count("/") + 1))))
        depth = path.count("/")
        if path.startswith("assets/") or depth > DEPTH_MAX:
            return Response(b"there is no such file in the console\n", 404, media_type="text/plain")
        index = self._index.replace(_BASE, b'<base href="%b">' % (b"../" * depth or b"./"))
        return _page(200, index.replace(_SIGN_ON, _SIGN_ON.replace(b"off", b"on")) if self._has_sign_on() else index)


def _listed(folder: Path) -> dict[str, Asset]:
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {
        name: Asset(
            content,
            _TYPES[end],
            tuple((coding, files[name + more]) for coding, more in _ENCODINGS if name + more in files),
        )
        for name, content in files.items()
        if (end := Path(name).suffix) in _TYPES
    }


def _page(status: int, content: bytes) -> Response:
    headers = {"cache-control": "no-cache", "content-security-policy": SECURITY_POLICY}
    return Response(content, status, headers, media_type=_TYPES[".html"])


def _file(name: str, asset: Asset, accepted: str) -> Response:
    headers = {"cache-control": _IMMUTABLE if _HASHED.fullmatch(name) else "no-cache", "vary": "accept-encoding"}
    accepts = parse_accepted(accepted)
    for coding, content in asset.encodings:
        if accepts.get(coding, 0.0) > 0.0:
            headers["content-encoding"] = coding
            return Response(content, 200, headers, media_type=asset.media_type)
    return Response(asset.content, 200, headers, media_type=asset.media_type)


def parse_accepted(header: str) -> Mapping[str, float]:
    """`br;q=1.0, gzip` → its codings with their weights. What cannot be read counts as refused."""
    found: dict[str, float] = {}
    for part in header.lower().split(",")[:16]:
        coding, _, parameter = part.strip().partition(";")
        name, _, weight = parameter.strip().partition("=")
        if not parameter:
            found[coding.strip()] = 1.0
        elif name.strip() == "q" and re.fullmatch(r"[01](\.\d{0,3})?", weight.strip()):
            found[coding.strip()] = float(weight)
    return found
