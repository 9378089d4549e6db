"""A server with something to see, and a proxy that serves it under a prefix: for the tests of the console."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

FAILING = "SMTP timeout talking to mx7.example.org"


class Scene:
    """Queues `mail` (two dead jobs, two pending), `payments` (two held jobs) and `reports` (scheduled); two keys."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._http = httpx.Client(base_url=f"{url}/api/v1", timeout=20.0)
        self.dead = [self._dead_job(number) for number in range(2)]
        for number in range(2):
            self.ask("POST", "/enqueue", {"queue": "mail", "payload": {"to": "ada@example.org", "n": number}})
        self.held = [self._held_job(number) for number in range(2)]
        self.ask("POST", "/enqueue", {"queue": "reports", "delay": "1h"})
        self.ask("POST", "/schedules", {"name": "nightly", "queue": "reports", "cron": "0 3 * * *"})
        self.batch = self.ask(
            "POST", "/enqueue/batch", {"jobs": [{"queue": "a/b"}], "batch": {"description": "one part"}}
        )["batch_id"]
        self.keys = {role: self._key(role) for role in ("admin", "readonly")}

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._http.request(method, path, json=body)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def job(self, job_id: str) -> Any:
        return self.ask("GET", f"/jobs/{job_id}")

    def close(self) -> None:
        self._http.close()

    def _key(self, role: str) -> str:
        key = str(self.ask("POST", "/auth/keys", {"name": f"the {role}", "role": role})["api_key"])
        self._http.headers.setdefault("x-api-key", key)  # the first is the administrator's
        return key

    def _dead_job(self, number: int) -> str:
        self.ask("POST", "/enqueue", {"queue": "mail", "payload": {"to": "bob@example.org", "n": number}})
        job = self.ask("POST", "/fetch", {"queues": ["mail"], "worker_id": "worker-1", "hostname": "pod-1"})
        body = {"error": FAILING, "retry": False, "lease_token": job["lease_token"]}
        self.ask("POST", f"/fail/{job['job_id']}", body)
        return str(job["job_id"])

    def _held_job(self, number: int) -> str:
        job_id = self.ask("POST", "/enqueue", {"queue": "payments", "payload": {"order": number}})["job_id"]
        self.ask("POST", f"/jobs/{job_id}/hold", {"reason": "a large refund"})
        return str(job_id)


@contextmanager
def under_prefix(url: str, prefix: str) -> Iterator[str]:
    """A proxy that strips the prefix and passes on `Host`, as the guide asks for."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._pass("GET")

        def do_POST(self) -> None:
            self._pass("POST")

        def log_message(self, *_: object) -> None:
            pass

        def _pass(self, method: str) -> None:
            if not self.path.startswith(prefix + "/"):
                self.send_error(404)
                return
            content = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name: value for name, value in self.headers.items() if name.lower() != "connection"}
            target = url + self.path.removeprefix(prefix)
            try:
                with httpx.stream(method, target, content=content, headers=headers, timeout=20.0) as answer:
                    self.send_response(answer.status_code)
                    for name, value in answer.headers.items():
                        if name not in ("connection", "transfer-encoding"):
                            self.send_header(name, value)
                    self.send_header("connection", "close")
                    self.end_headers()
                    for piece in answer.iter_raw():
                        self.wfile.write(piece)
                        self.wfile.flush()
            except (httpx.HTTPError, OSError):
                pass  # either side has gone
            self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}{prefix}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
