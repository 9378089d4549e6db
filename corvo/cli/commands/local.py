"""`corvo local`: a whole cluster on one machine, one `corvo server` per node, until a signal.

A node that ends is reported and the others go on. It is not restarted by itself, so that one can kill a node and watch;
`corvo local start` starts it again (supervise/local_control.py).
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import httpx
import msgspec
from rich.console import Console
from rich.table import Table

import corvo
from corvo.cli.commands.requests import TABLE, complain
from corvo.cli.formats import encoded
from corvo.cli.screen.show import columns, cut, plain, table
from corvo.cli.supervise.local_control import (
    RUNNING,
    ControlFailed,
    LocalCluster,
    NodeReport,
    NodeRequests,
    descendants,
    find_node,
    read_report,
    write_report,
)
from corvo.cli.supervise.local_layout import Layout, LayoutOptions, NodePlace, settle
from corvo.cli.supervise.server import CannotStart, check_certificate
from corvo.cli.supervise.signals import heeding
from corvo.runtime.process import Locked, die_with_parent, take_lock
from corvo.runtime.settings import ENV_PREFIX, half_of_tls

LOOK_S = 0.2
READY_S = 2.0  # for one answer about readiness
STOP_S = 40.0  # for the drain of a node and the end of its processes

# A node is told here what it is; these words from the environment would make it another one, or none.
NOT_INHERITED = {
    ENV_PREFIX + name.upper()
    for name in ("config", "join", "discover", "discover_dns_name", "raft_advertise", "cluster_secret_file")
}

CommandOf = Callable[[NodePlace, Layout, Path, LayoutOptions], list[str]]


def server_command(place: NodePlace, layout: Layout, data_dir: Path, wishes: LayoutOptions) -> list[str]:
    options = {
        "--data-dir": str(data_dir / place.node_id),
        "--node-id": place.node_id,
        "--bind": place.address,
        "--raft-bind": place.raft_address,
        "--peers": layout.peers,
        "--shards": str(layout.shards),
        "--fsync": wishes.fsync,
        "--tls-cert": wishes.tls_cert,
        "--tls-key": wishes.tls_key,
    }
    words = [word for option in options.items() for word in option]
    return [sys.executable, "-m", "corvo.cli.main", "server", *words]


def run_local(wishes: LayoutOptions, output: str = TABLE, command_of: CommandOf = server_command) -> int:
    """Exit code: 0 after a signal, 1 when every node has ended by itself."""
    data_dir = Path(wishes.data_dir).absolute()
    if half := half_of_tls(wishes.tls_cert, wishes.tls_key):
        raise CannotStart(half)
    check_certificate(wishes.tls_cert, wishes.tls_key)
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        lock = take_lock(data_dir / "lock")
    except Locked as locked:
        raise CannotStart(
            f"another process (pid {locked}) is using {data_dir}; stop it first or use another --data-dir"
        ) from None
    except OSError as error:
        raise CannotStart(
            f"cannot use {data_dir} as data directory: {error.strerror}; choose another --data-dir"
        ) from None
    with lock, Signals.heeded() as signals:
        scheme = "https" if wishes.tls_cert else "http"
        cluster = Cluster(data_dir, settle(data_dir, wishes, random.Random()), scheme, signals)
        try:
            for place in cluster.layout.nodes:
                cluster.start(place, command_of(place, cluster.layout, data_dir, wishes))
            cluster.publish()
            if output == TABLE:
                table(cluster.table())
            if cluster.await_ready():
                _tell_ready(cluster, output)
            while cluster.is_wanted() and not signals.count:
                time.sleep(LOOK_S)
                cluster.report_ends()
                cluster.start_again()
        finally:
            cluster.stop()
            (data_dir / RUNNING).unlink(missing_ok=True)
    if signals.count:
        return 0
    complain(f"every node has ended; their logs in {data_dir} say why")
    return 1


def _tell_ready(cluster: "Cluster", output: str) -> None:
    if output != TABLE:
        print(encoded(cluster.report(), output), flush=True)
        return
    ended = [node.place.node_id for node in cluster.nodes if not node.is_running]
    print(f"ready, but for {', '.join(ended)}" if ended else "ready", flush=True)
    running = next(node.place for node in cluster.nodes if node.is_running)
    print(f"corvo cluster status --server {cluster.url_of(running)} shows them; Ctrl-C stops all", flush=True)


class Signals:
    """How often we were asked to stop."""

    def __init__(self) -> None:
        self.count = 0

    @classmethod
    @contextmanager
    def heeded(cls) -> "Iterator[Signals]":
        signals = cls()
        with heeding(signals._receive):
            yield signals

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.count += 1


class LocalNode:
    """One `corvo server`, and its log."""

    def __init__(self, place: NodePlace, command: list[str], log: Path) -> None:
        self.place = place
        self.command = command
        self.log = log
        self.is_reported = False  # that it has ended
        self._log_begins = log.stat().st_size if log.exists() else 0
        with log.open("ab") as output:
            self.handle = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=_environment(),
                process_group=0,  # Ctrl-C reaches only us, and we stop the nodes one by one
                preexec_fn=die_with_parent,
            )

    @property
    def is_running(self) -> bool:
        return self.handle.poll() is None

    def how_it_ended(self) -> str:
        code = self.handle.returncode
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        with self.log.open("rb") as file:
            file.seek(self._log_begins)
            lines = [line for line in file.read().decode(errors="replace").splitlines() if line.startswith("corvo: ")]
        reason = f": {lines[-1].removeprefix('corvo: ')}" if lines else f"; {self.log} says why"
        return f"{self.place.node_id} ended with {how}{reason}"


class Cluster:
    def __init__(self, data_dir: Path, layout: Layout, scheme: str, signals: Signals) -> None:
        self.layout = layout
        self._scheme = scheme
        self.nodes: list[LocalNode] = []
        self._data_dir = data_dir
        self._signals = signals
        self._requests = NodeRequests(data_dir)
        self._requests.clear()

    def start(self, place: NodePlace, command: list[str]) -> None:
        self.nodes.append(LocalNode(place, command, self._data_dir / f"{place.node_id}.log"))

    def url_of(self, place: NodePlace) -> str:
        return f"{self._scheme}://{place.address}"

    def is_running(self) -> bool:
        return any(node.is_running for node in self.nodes)

    def is_wanted(self) -> bool:
        """False when no node runs and none of them was stopped or killed by a command, to be started again."""
        return self.is_running() or any(self._requests.is_down(node.place.node_id) for node in self.nodes)

    def start_again(self) -> None:
        """Nodes for which `corvo local start` has asked."""
        for number, node in enumerate(self.nodes):
            if self._requests.take_start(node.place.node_id) and not node.is_running:
                self.nodes[number] = LocalNode(node.place, node.command, node.log)
                self.publish()

    def publish(self) -> None:
        write_report(self._data_dir, self.report())

    def report_ends(self) -> None:
        """A line for each node that has ended since the last look."""
        for node in self.nodes:
            if not node.is_running and not node.is_reported:
                node.is_reported = True
                again = f"; `corvo local start {node.place.node_id}` starts it again"
                complain(node.how_it_ended() + (again if self._requests.is_down(node.place.node_id) else ""))

    def await_ready(self) -> bool:
        """Until every node that runs is ready. False: none runs any more, or we were asked to stop."""
        began = time.monotonic()
        waiting = list(self.nodes)
        # On a terminal only; standard error, because standard output may be read by a program.
        # The certificate is not checked: these are our own processes, and nothing secret is sent.
        with httpx.Client(timeout=READY_S, verify=False) as http, Console(stderr=True).status("starting") as line:
            while not self._signals.count:
                self.report_ends()
                waiting = [node for node in waiting if node.is_running]
                troubles = {}
                for node in waiting:
                    if not self._signals.count and (trouble := trouble_of(http, self.url_of(node.place))):
                        troubles[node.place.node_id] = trouble
                waiting = [node for node in waiting if node.place.node_id in troubles]
                if not troubles:
                    return self.is_running() and not self._signals.count
                name, trouble = next(iter(troubles.items()))
                names = ", ".join(troubles)
                seconds = time.monotonic() - began
                line.update(plain(f"waiting for {names} · {seconds:.0f} s · {name}: {cut(trouble)}"))
                time.sleep(LOOK_S)
        return False

    def stop(self) -> None:
        """One after the other, the last one first, so that each can hand over what it leads. Asked twice: at once."""
        for node in reversed(self.nodes):
            deadline = time.monotonic() + STOP_S
            if node.is_running:
                node.handle.terminate()
            while node.is_running and time.monotonic() < deadline:
                if self._signals.count > 1:
                    self._stop_at_once()
                time.sleep(LOOK_S / 4)
            if node.is_running:
                complain(f"{node.place.node_id} does not stop and is killed")
                node.handle.kill()
                node.handle.wait()

    def _stop_at_once(self) -> None:
        """A node that is asked to stop and then interrupted kills its processes."""
        self._signals.count = 1
        for node in self.nodes:
            if node.is_running:
                node.handle.terminate()
                node.handle.send_signal(signal.SIGINT)

    def report(self) -> LocalCluster:
        nodes = [
            NodeReport(
                node_id=node.place.node_id,
                url=self.url_of(node.place),
                raft_address=node.place.raft_address,
                pid=node.handle.pid,
                data_dir=str(self._data_dir / node.place.node_id),
                log=str(node.log),
                is_running=node.is_running,
            )
            for node in self.nodes
        ]
        return LocalCluster(str(self._data_dir), self.layout.shards, nodes, [node.url for node in nodes])

    def table(self) -> Table:
        grid = columns("NODE", "URL", "BETWEEN NODES", ">PID", "DATA", "LOG")
        for node in self.report().nodes:
            places = (node.data_dir, node.log)
            grid.add_row(node.node_id, node.url, node.raft_address, str(node.pid), *map(plain, places))
        return grid


def print_status(report: LocalCluster, output: str) -> None:
    """Each node with its state: ready, the reason why not, or stopped."""
    states = {node.node_id: _state(node) for node in report.nodes}
    if output != TABLE:
        nodes = [{**msgspec.to_builtins(node), "state": states[node.node_id]} for node in report.nodes]
        content = {**msgspec.to_builtins(report), "nodes": nodes}
        print(encoded(content, output))
        return
    grid = columns("NODE", "STATE", "URL", ">PID", ">PROCESSES", "LOG")
    for node in report.nodes:
        state = states[node.node_id]
        count = 1 + len(descendants(node.pid)) if node.is_running else 0
        pid = str(node.pid) if node.is_running else ""
        grid.add_row(node.node_id, plain(cut(state)), node.url, pid, str(count), plain(node.log))
    table(grid)


def await_node(data_dir: Path, node: NodeReport, patience_s: float) -> str:
    """Why the node is not ready after so long; empty: it is."""
    deadline = time.monotonic() + patience_s
    while True:
        state = _state(node)
        if state == "ready":
            return ""
        try:
            is_running = find_node(read_report(data_dir), node.node_id).is_running
        except ControlFailed as error:
            return str(error)
        if not is_running:
            return f"it has ended; {node.log} says why"
        if time.monotonic() > deadline:
            return state
        time.sleep(LOOK_S)


def _state(node: NodeReport) -> str:
    if not node.is_running:
        return "stopped"
    with httpx.Client(timeout=READY_S, verify=False) as http:  # our own processes, as in `await_ready`
        return trouble_of(http, node.url) or "ready"


def trouble_of(http: httpx.Client, url: str) -> str:
    """Why the node is not ready; empty: it is."""
    try:
        answer = http.get(f"{url}/readyz")
    except httpx.HTTPError:
        return "does not answer yet"
    if answer.status_code == httpx.codes.OK:
        return ""
    try:
        return msgspec.json.decode(answer.content, type=_Unready).error
    except msgspec.MsgspecError:
        return f"answers {answer.status_code}"


class _Unready(msgspec.Struct):
    error: str


def _environment() -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}
    roots = [str(Path(corvo.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**environment, "PYTHONPATH": os.pathsep.join(roots)}
