"""A proxy that hands a request on, hears the whole answer, and cuts the connection before its client hears anything."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit


class Cutting:
    def __init__(self) -> None:
        self.url = ""
        self.cuts_left = 0  # how many answers will be lost
        self.lost: list[int] = []  # their statuses


@contextmanager
def cutting_in_front_of(server: str) -> Iterator[Cutting]:
    cutting = Cutting()
    address = urlsplit(server)

    class Passing(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            """Nothing."""

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            onward = HTTPConnection(str(address.hostname), address.port, timeout=30)
            onward.request(self.command, self.path, body, dict(self.headers.items()))
            answer = onward.getresponse()
            content = answer.read()
            onward.close()
            if cutting.cuts_left:
                cutting.cuts_left -= 1
                cutting.lost.append(answer.status)
                self.close_connection = True
                return
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "connection"):
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_PUT = do_DELETE = do_POST

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Passing)
    proxy.daemon_threads = True
    thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    cutting.url = f"http://127.0.0.1:{proxy.server_port}"
    try:
        yield cutting
    finally:
        proxy.shutdown()
        thread.join()
        proxy.server_close()
