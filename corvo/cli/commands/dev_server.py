"""The temporary server of `corvo dev`: a `corvo server` in a temporary directory, and a sample worker in this process.

Everything ends with this process: a signal stops the server in order, and the kernel stops it if we are killed.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import httpx
import msgspec

import corvo
from corvo.cli.commands.demo_jobs import ERRORS, QUEUES, seed_demo
from corvo.cli.commands.local import LOOK_S, READY_S, STOP_S, Signals, trouble_of
from corvo.cli.commands.requests import TABLE, complain
from corvo.cli.formats import encoded
from corvo.cli.supervise.server import CannotStart, url_of
from corvo.client.answers import FetchedJob
from corvo.client.bodies import AckBody, FailBody, FetchBody
from corvo.client.calls import ServerRefused
from corvo.client.http import Client, Unreachable
from corvo.runtime.process import RUN, die_with_parent, read_settings
from corvo.runtime.settings import ENV_PREFIX

WORKER = "sample-worker"
CONSOLE = "/ui/"
SHARDS = 2  # fewer processes than a real server: it starts sooner
FETCH_S = 1.0  # a poll; a signal waits for its end
WORK_S = 0.3  # a job's work
FAILS_EVERY = 5  # every fifth job fails at its first attempt
PAUSE_S = 0.5  # after a request that failed


class DevReport(msgspec.Struct):
    """What a program that started `corvo dev` needs."""

    url: str
    data_dir: str
    log: str
    pid: int
    console: str = ""  # address of the web console, where the gateway serves one


def run_dev(port: int, jobs: int, output: str) -> int:
    """Exit code: 0 after a signal, 1 when the server ended by itself."""
    with Signals.heeded() as signals, _temporary() as folder, DevServer(folder, port) as server:
        url = server.await_ready(signals)
        if url:
            with Client(url, waits_for_server=False) as client:
                _seed(client, jobs)  # before anybody knows the address: it claims jobs to bring them into their states
                report = DevReport(url, str(server.data_dir), str(server.log), server.handle.pid, _console_of(url))
                _tell(report, output)
                _work(client, server, signals, is_told=output == TABLE)
        if signals.count:
            return 0
        complain(server.how_it_ended())
        return 1


@contextmanager
def _temporary() -> Iterator[Path]:
    try:
        folder = tempfile.TemporaryDirectory(prefix="corvo-dev-", ignore_cleanup_errors=True)
    except OSError as error:
        raise CannotStart(f"cannot make a temporary directory: {error.strerror}; set TMPDIR to another place") from None
    with folder as name:
        yield Path(name)


class DevServer:
    """Until the end of the block."""

    def __init__(self, folder: Path, port: int) -> None:
        self.data_dir = folder
        self.log = folder / "server.log"
        options = {"--data-dir": str(folder), "--bind": f"127.0.0.1:{port}", "--shards": str(SHARDS), "--fsync": "off"}
        with self.log.open("wb") as output:
            self.handle = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "corvo.cli.main",
                    "server",
                    *(word for pair in options.items() for word in pair),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=server_environment(),
                process_group=0,  # Ctrl-C reaches only us, and we stop the server
                preexec_fn=die_with_parent,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.handle.terminate()
        try:
            self.handle.wait(STOP_S)
        except subprocess.TimeoutExpired:
            complain("the server does not stop and is killed")
            self.handle.kill()
            self.handle.wait()

    @property
    def is_running(self) -> bool:
        return self.handle.poll() is None

    def await_ready(self, signals: Signals) -> str:
        """Its address. Empty: it ended, or we were asked to stop."""
        with httpx.Client(timeout=READY_S) as http:
            while self.is_running and not signals.count:
                url = self._address()
                if url and not trouble_of(http, url):
                    return url
                time.sleep(LOOK_S)
        return ""

    def _address(self) -> str:
        """With the port that it found. Empty until it has written its settings."""
        try:
            return url_of(read_settings(self.data_dir / RUN).bind)
        except (OSError, msgspec.MsgspecError):
            return ""

    def how_it_ended(self) -> str:
        """The log is removed with everything else, so its last line of complaint is repeated."""
        code = self.handle.wait(STOP_S)
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        lines = [line for line in self.log.read_text(errors="replace").splitlines() if line.startswith("corvo: ")]
        return f"the server ended with {how}" + (f": {lines[-1].removeprefix('corvo: ')}" if lines else "")


def server_environment() -> dict[str, str]:
    """Without the settings of other servers, so that it cannot write into their database or join their cluster."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ENV_PREFIX)}
    roots = [str(Path(corvo.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**environment, "PYTHONPATH": os.pathsep.join(roots)}


def _tell(report: DevReport, output: str) -> None:
    if output != TABLE:
        print(encoded(report, output), flush=True)
        return
    console = f"   console  {report.console}\n" if report.console else ""
    print(
        f"\n   Corvo {corvo.__version__}, a temporary server\n\n"
        f"   address  {report.url}\n"
        f"   routes   {report.url}/docs\n"
        f"{console}"
        f"   data     {report.data_dir}, removed at the end\n\n"
        "   In another terminal:\n\n"
        f"   export CORVO_SERVER={report.url}\n"
        "   corvo top\n"
        '   corvo enqueue demo.emails \'{"to": "you@example.com"}\'\n\n'
        "   Ctrl-C stops the server and removes everything\n",
        flush=True,
    )


def _console_of(url: str) -> str:
    address = f"{url}{CONSOLE}"
    try:
        is_there = httpx.get(address, timeout=READY_S, trust_env=False).is_success
    except httpx.HTTPError:
        return ""
    return address if is_there else ""


# The sample worker


def _seed(client: Client, jobs: int) -> None:
    try:
        if jobs:
            seed_demo(client, jobs)
    except (ServerRefused, Unreachable) as error:
        complain(f"not all sample jobs were made: {error}")


def _work(client: Client, server: DevServer, signals: Signals, is_told: bool) -> None:
    """Works off what is in the queues of the sample jobs, one job at a time."""
    taken = 0
    while server.is_running and not signals.count:
        try:
            job = client.fetch(FetchBody(queues=list(QUEUES), worker_id=WORKER, timeout=FETCH_S))
            if job is None:
                continue
            taken += 1
            _rest(WORK_S, signals)
            outcome = _report(client, job, is_failing=taken % FAILS_EVERY == 0 and job.attempt == 1)
            if is_told:
                print(f"   {outcome:<10} {job.queue:<13} {job.job_id}  attempt {job.attempt}", flush=True)
        except (ServerRefused, Unreachable) as error:  # somebody tries what happens when a process is killed
            if not signals.count:
                complain(str(error))
                _rest(PAUSE_S, signals)


def _report(client: Client, job: FetchedJob, is_failing: bool) -> str:
    if is_failing:
        error = ERRORS[job.max_retries % len(ERRORS)]
        return client.fail(job.job_id, FailBody(lease_token=job.lease_token, error=error, retry_after="2s")).status
    client.ack(job.job_id, AckBody(lease_token=job.lease_token, result={"ok": True}))
    return "completed"


def _rest(seconds: float, signals: Signals) -> None:
    """Ends early when we are asked to stop."""
    deadline = time.monotonic() + seconds
    while not signals.count and (left := deadline - time.monotonic()) > 0:
        time.sleep(min(left, LOOK_S / 4))
