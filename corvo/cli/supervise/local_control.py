"""Stop, kill and start single nodes of a running `corvo local`, from another terminal.

`corvo local` writes `running.json` with the processes of its nodes. Signals go straight to the processes. A start is a
request: `corvo local` must be the parent of every node, so the command leaves a file in `control/` and it does the
rest. Another file there says that a node is down on purpose, so that `corvo local` does not end with its last node.
"""

import fcntl
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

RUNNING = "running.json"
CONTROL = "control"
GONE_S = 10.0  # for killed processes to disappear
LOOK_S = 0.05


class NodeReport(msgspec.Struct):
    node_id: str
    url: str
    raft_address: str
    pid: int
    data_dir: str
    log: str
    is_running: bool


class LocalCluster(msgspec.Struct):
    """What `corvo local --output json` prints."""

    data_dir: str
    shards: int
    nodes: list[NodeReport]
    urls: list[str]


class ControlFailed(Exception):
    """Why not, in a sentence."""


class NodeRequests:
    """The files in `control/`: what was asked of `corvo local` about its nodes."""

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir / CONTROL

    def clear(self) -> None:
        self._folder.mkdir(exist_ok=True)
        for path in self._folder.iterdir():
            path.unlink()

    def ask_start(self, node_id: str) -> None:
        self._path(node_id, "down").unlink(missing_ok=True)
        self._path(node_id, "start").touch()

    def take_start(self, node_id: str) -> bool:
        """Whether a start was asked for since the last time."""
        try:
            self._path(node_id, "start").unlink()
        except FileNotFoundError:
            return False
        return True

    def note_down(self, node_id: str) -> None:
        self._path(node_id, "down").touch()

    def is_down(self, node_id: str) -> bool:
        return self._path(node_id, "down").exists()

    def _path(self, node_id: str, word: str) -> Path:
        return self._folder / f"{node_id}.{word}"


def write_report(data_dir: Path, report: LocalCluster) -> None:
    draft = data_dir / f"{RUNNING}.new"
    draft.write_bytes(msgspec.json.encode(report))
    draft.replace(data_dir / RUNNING)


def read_report(data_dir: Path) -> LocalCluster:
    """Of the `corvo local` that runs there now."""
    try:
        with (data_dir / "lock").open("r") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                parent = int(lock.read().strip() or 0)
            else:
                raise FileNotFoundError  # nobody holds it
        report = msgspec.json.decode((data_dir / RUNNING).read_bytes(), type=LocalCluster)
    except (OSError, ValueError):
        raise ControlFailed(f"no `corvo local` is running in {data_dir}; start one, or name its --data-dir") from None
    for node in report.nodes:
        node.is_running = _parent_of(node.pid) == parent
    return report


def find_node(report: LocalCluster, node_id: str) -> NodeReport:
    for node in report.nodes:
        if node.node_id == node_id:
            return node
    names = ", ".join(node.node_id for node in report.nodes)
    raise ControlFailed(f"there is no {node_id}; the nodes are {names}")


def kill(data_dir: Path, node_id: str) -> int:
    """SIGKILL to all processes of a node at once, as a power cut would. How many there were."""
    node = _running(data_dir, node_id)
    NodeRequests(data_dir).note_down(node_id)
    os.kill(node.pid, signal.SIGSTOP)  # so that the supervisor starts none of them again meanwhile
    family = [node.pid, *descendants(node.pid)]
    for pid in reversed(family):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    _await(lambda: not any(map(_is_alive, family)), GONE_S, f"the processes of {node_id} do not end")
    return len(family)


def stop(data_dir: Path, node_id: str, patience_s: float) -> None:
    """SIGTERM: the node finishes its requests and transfers its leaderships."""
    node = _running(data_dir, node_id)
    NodeRequests(data_dir).note_down(node_id)
    os.kill(node.pid, signal.SIGTERM)
    _await(lambda: not _is_alive(node.pid), patience_s, f"{node_id} has not stopped after {patience_s:g} s")


def start(data_dir: Path, node_id: str, patience_s: float) -> None:
    """Until the node has a process; that it is ready is another question."""
    if find_node(read_report(data_dir), node_id).is_running:
        raise ControlFailed(f"{node_id} is running already")
    NodeRequests(data_dir).ask_start(node_id)
    _await(lambda: find_node(read_report(data_dir), node_id).is_running, patience_s, f"{node_id} does not start")


def descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            children.setdefault(_parent_of(int(path.name)), []).append(int(path.name))
    family = [pid]
    for member in family:
        family += children.get(member, [])
    return family[1:]


def _running(data_dir: Path, node_id: str) -> NodeReport:
    node = find_node(read_report(data_dir), node_id)
    if not node.is_running:
        raise ControlFailed(f"{node_id} is not running; `corvo local start {node_id}` starts it")
    return node


def _await(condition: Callable[[], bool], patience_s: float, complaint: str) -> None:
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            raise ControlFailed(complaint)
        time.sleep(LOOK_S)


def _is_alive(pid: int) -> bool:
    """A zombie is not: its parent has yet to take note."""
    return _status(pid)[0] not in ("", "Z", "X")


def _parent_of(pid: int) -> int:
    state, parent = _status(pid)
    return 0 if state in ("", "Z", "X") else parent


def _status(pid: int) -> tuple[str, int]:
    """State and parent, which follow the name in its brackets. Empty state: there is no such process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "", 0
    return fields[0], int(fields[1])
