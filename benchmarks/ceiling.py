"""The upper limit of HTTP: the gateway's server program and configuration around a handler that does nothing.

`python -m benchmarks.ceiling --fd N --bytes B` reads each body and answers 201 with B bytes, through the server's own
HTTP/1.1. The gateway serves plain requests on the fast path (`gateway/http/fast_path.py`), so it may be faster.
"""

import argparse
import asyncio
import gc
import signal
import socket
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.processes import Program, enqueues, listening_socket, python
from gateway.http.servers import hypercorn

READY_S_MAX = 30.0


class Ceiling:
    def __init__(self, folder: Path, answer_bytes: int) -> None:
        with listening_socket() as event_wait:
            self.address = ("127.0.0.1", event_wait.getsockname()[1])
            self.program = Program(
                python("-m", "benchmarks.ceiling", "--fd", str(event_wait.fileno()), "--bytes", str(answer_bytes)),
                folder / "ceiling.log",
                pass_fds=(event_wait.fileno(),),
            )
        try:
            self.program.await_ready(lambda: enqueues(self.address), READY_S_MAX, "the empty handler")
        except BaseException:
            self.program.kill()
            raise

    def stop(self) -> None:
        self.program.stop()


def handler(content: bytes) -> Any:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(content))]

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while (message := await receive())["type"] != "lifespan.shutdown":
                await send({"type": message["type"] + ".complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 201, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    return answer


async def _run(fd: int, answer_bytes: int) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)  # as the gateway does
    await hypercorn.serve(handler(b"x" * answer_bytes), socket.socket(fileno=fd), 1.0, stop)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ceiling", description=__doc__)
    parser.add_argument("--fd", type=int, required=True, help="listening socket, inherited")
    parser.add_argument("--bytes", type=int, required=True, help="length of each answer's body")
    options = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(options.fd, options.bytes))


if __name__ == "__main__":
    main()
