"""A server that plays back prepared answers and remembers what it was asked."""

import ssl
import threading
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import msgspec


class Asked(NamedTuple):
    method: str
    path: str
    body: bytes


class Prepared(NamedTuple):
    status: int
    content: bytes
    headers: dict[str, str]


class Playback:
    """Answers by method and path, with its query or whatever that is: each one is used once, the last one for ever."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[Asked] = []
        self.headers: list[dict[str, str]] = []  # of each request, names in lower case
        self._answers: dict[tuple[str, str], deque[Prepared]] = defaultdict(deque)

    def answer(self, method: str, path: str, body: Any, status: int = 200, **headers: str) -> None:
        content = body if isinstance(body, bytes) else msgspec.json.encode(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._answers[method, f"/api/v1{path}"].append(Prepared(status, content, named))

    def refuse(self, method: str, path: str, status: int, code: str, message: str, **headers: str) -> None:
        self.answer(method, path, {"error": message, "code": code}, status, **headers)

    def take(self, method: str, path: str) -> Prepared:
        answers = self._answers[method, path] or self._answers[method, path.partition("?")[0]]
        if not answers:
            return Prepared(404, b'{"error": "nothing prepared", "code": "NOT_FOUND"}', {})
        return answers.popleft() if len(answers) > 1 else answers[0]


@contextmanager
def playing(secure: ssl.SSLContext | None = None) -> Iterator[Playback]:
    """With a context it speaks TLS."""
    playback = Playback()

    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            """Nothing."""

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            playback.headers.append({name.lower(): value for name, value in self.headers.items()})
            playback.asked.append(Asked(self.command, self.path, body))
            prepared = playback.take(self.command, self.path)
            self.send_response(prepared.status)
            for name, value in prepared.headers.items():
                self.send_header(name, value)
            if prepared.status != 204:
                self.send_header("content-length", str(len(prepared.content)))
            self.end_headers()
            if prepared.status != 204:
                self.wfile.write(prepared.content)

        do_POST = do_PUT = do_DELETE = do_GET

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    server.daemon_threads = True
    if secure is not None:
        server.socket = secure.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    playback.url = f"{'http' if secure is None else 'https'}://127.0.0.1:{server.server_port}"
    try:
        yield playback
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
