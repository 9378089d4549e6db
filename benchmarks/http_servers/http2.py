"""`python -m benchmarks.http_servers.http2 NAME`: `tests/gateway/http/test_http2.py` against a server's own HTTP/2.

Each test has its own process, so a server that one test breaks fails no other. Prints how many tests pass, and the last
line of each failure. `hypercorn` is Hypercorn with settings only, `hypercorn-connection` adds our connection class
(idle sockets, end of TLS), `granian` is Granian as the gateway runs it, and `ours` is what the gateway runs today.
"""

import argparse
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from benchmarks.processes import ROOT, python

TESTS = "tests/gateway/http/test_http2.py"
TEST_S = 90.0
AT_ONCE = 2


class Plugin:
    """Replaces the server that the tests name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def pytest_collection_finish(self) -> None:
        from gateway.http.servers import hypercorn as ours  # lazy: after pytest has rewritten the assertions

        if self._name == "hypercorn-connection":
            import hypercorn.protocol
            import hypercorn.protocol.h2

            usual = ours.config

            def config(graceful_s: float) -> Any:
                chosen = usual(graceful_s)
                chosen.h2_max_concurrent_streams = 100
                chosen.h2_max_header_list_size = 32 * 1024
                return chosen

            ours.config = config
            hypercorn.protocol.H2Protocol = hypercorn.protocol.h2.H2Protocol  # type: ignore[attr-defined]
        elif self._name == "hypercorn":
            from benchmarks.http_servers import plain_hypercorn

            ours.serve = plain_hypercorn.serve
        elif self._name == "granian":
            from gateway.http.servers import granian

            ours.serve = granian.serve


SERVERS = ("ours", "hypercorn", "hypercorn-connection", "granian")


def collected() -> list[str]:
    done = subprocess.run(
        python("-m", "pytest", "-n", "0", "--collect-only", TESTS),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [line for line in done.stdout.splitlines() if "::" in line]


def fault(name: str, test: str) -> str:
    """Why the test fails; empty if it passes."""
    command = python("-m", "benchmarks.http_servers.http2", name, "--test", test)
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TEST_S, check=False)
    except subprocess.TimeoutExpired:
        return f"not done within {TEST_S:g} s"
    if done.returncode == 0:
        return ""
    told = [line[2:].strip() for line in done.stdout.splitlines() if line.startswith("E  ")]
    return told[0] if told else f"code {done.returncode}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.http_servers.http2", description=__doc__)
    parser.add_argument("name", choices=SERVERS)
    parser.add_argument("--test", help="only this one, in this process")
    options = parser.parse_args()
    if options.test:
        return int(pytest.main(["-n", "0", "-x", "--tb=short", options.test], [Plugin(options.name)]))
    tests = collected()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        faults = dict(zip(tests, pool.map(lambda test: fault(options.name, test), tests), strict=True))
    failed = {test: why for test, why in faults.items() if why}
    print(f"{options.name}: {len(tests) - len(failed)} of {len(tests)} pass")
    for test, why in failed.items():
        print(f"  {test.partition('::')[2]}: {why}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
