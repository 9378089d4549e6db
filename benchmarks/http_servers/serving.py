"""`python -m benchmarks.http_servers.serving --run-dir run --candidate NAME --number N --fd F`: one more gateway of a
running node, assembled as `python -m gateway` does it, with the server to be measured."""

import argparse
import asyncio
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import uvloop

from benchmarks.http_servers.candidates import BY_NAME, Candidate
from benchmarks.load import Address
from benchmarks.node import Node
from benchmarks.processes import Program, enqueues, listening_socket, python
from corvo.runtime.process import RUN, configure_logging, die_with_parent, read_settings
from gateway import __main__ as gateway_main

READY_S_MAX = 30.0
FIRST_NUMBER = 10  # the node's own gateways have lower ones
_MODULE = "gateway.http.servers.candidate"


class Serving:
    """A gateway with one candidate, as a child process next to a node."""

    def __init__(self, node: Node, candidate: Candidate, number: int) -> None:
        with listening_socket() as listener:
            self.address: Address = ("127.0.0.1", listener.getsockname()[1])
            flags = ("--run-dir", RUN, "--candidate", candidate.name, "--number", str(FIRST_NUMBER + number))
            self.program = Program(
                python("-m", "benchmarks.http_servers.serving", *flags, "--fd", str(listener.fileno())),
                node.folder.with_name(f"{candidate.name}.log"),
                cwd=node.folder,
                pass_fds=(listener.fileno(),),
            )
        try:
            self.program.await_ready(lambda: enqueues(self.address), READY_S_MAX, candidate.name)
        except BaseException:
            self.program.kill()
            raise

    def cpu_s(self) -> float:
        return self.program.cpu_s()


@contextmanager
def served(node: Node, candidate: Candidate, number: int) -> Iterator[Serving]:
    serving = Serving(node, candidate, number)
    try:
        yield serving
    finally:
        serving.program.stop()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.http_servers.serving", description=__doc__)
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("--candidate", choices=sorted(BY_NAME), required=True)
    parser.add_argument("--number", type=int, required=True, help="among the gateways of the node")
    parser.add_argument("--fd", type=int, required=True, help="listening socket, inherited")
    options = parser.parse_args()
    die_with_parent()
    settings = read_settings(options.run_dir)
    configure_logging(settings.log_level, settings.log_format, process=f"gateway-{options.number}")
    sys.modules[_MODULE] = BY_NAME[options.candidate].load()  # the gateway imports its server by this name
    settings = msgspec.structs.replace(settings, http_server=_MODULE.rpartition(".")[2])
    listener = socket.socket(fileno=options.fd)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(gateway_main._run(settings, options.run_dir, options.number, listener, None))


if __name__ == "__main__":
    main()
