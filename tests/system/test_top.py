"""`corvo top` in a real terminal: three sizes, a server under load, and a shard that is killed meanwhile."""

import os
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rich.cells import cell_len

from chaos.node import Node
from corvo.client.bodies import AckBody, EnqueueBatchBody, EnqueueBody, FetchBatchBody, HoldBody
from corvo.client.calls import ServerRefused
from corvo.client.http import Client, Unreachable
from tests.cli.nodes import ROOT
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed: a real terminal needs it"),
]
QUEUES = ("mail.send", "images.resize", "billing.invoice")
SIZES = ((80, 24), (120, 40), (200, 60))
PATIENCE_S = 60.0


class Terminal:
    """A session of tmux with a server of its own, so that nobody else's is touched."""

    def __init__(self, folder: Path, command: list[str], size: tuple[int, int], **environment: str) -> None:
        self._socket = folder / "tmux"
        self.ended = folder / "ended"
        line = f"{shlex.join(command)}; echo $? > {shlex.quote(str(self.ended))}; cat"
        variables = [part for name, value in environment.items() for part in ("-e", f"{name}={value}")]
        self._tmux(
            *("-f", "/dev/null", "new-session", "-d", "-s", "top", "-x", str(size[0]), "-y", str(size[1])),
            *variables,
            line,
        )

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-S", str(self._socket), *arguments]
        environment = {**os.environ, "LC_ALL": "C.UTF-8"}
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=20, env=environment).stdout

    def screen(self, *flags: str) -> list[str]:
        return self._tmux("capture-pane", "-p", *flags, "-t", "top").split("\n")[:-1]

    def keys(self, *names: str) -> None:
        self._tmux("send-keys", "-t", "top", *names)

    def resize(self, width: int, height: int) -> None:
        self._tmux("resize-window", "-t", "top", "-x", str(width), "-y", str(height))

    def sees(self, *words: str) -> list[str]:
        """Waits until all of them stand on one screen."""
        shown: list[str] = []

        def has_all() -> bool:
            shown[:] = self.screen()
            return all(any(word in line for line in shown) for word in words)

        try:
            eventually(has_all, within_s=PATIENCE_S)
        except AssertionError:
            raise AssertionError(f"waited for {words} in vain:\n" + "\n".join(shown)) from None
        return shown

    def is_drawn(self, width: int, height: int) -> None:
        """The interval ends the first line, at the right edge, and the keys are the last one."""

        def fits() -> bool:
            shown = self.screen()
            first = shown[0].rstrip()
            return len(shown) == height and len(first) == width and first.endswith(" s") and "q quit" in shown[-1]

        try:
            eventually(fits, within_s=PATIENCE_S)
        except AssertionError:
            raise AssertionError(f"not drawn for {width} x {height}:\n" + "\n".join(self.screen())) from None

    def close(self) -> None:
        self._tmux("kill-server")


@contextmanager
def load(url: str) -> Iterator[None]:
    """Producer and worker. What they do is refused or lost while the shard is away: that is the point."""
    is_over = threading.Event()

    batch = EnqueueBatchBody([EnqueueBody(queue, {"to": "ada@example.org"}) for queue in QUEUES for _ in range(5)])

    def produce() -> None:
        with Client(url, timeout_s=5, deadline_s=5) as client:
            while not is_over.wait(0.1):
                ignoring(lambda: client.enqueue_batch(batch))

    def work() -> None:
        with Client(url, timeout_s=5, deadline_s=5) as client:
            while not is_over.is_set():
                ignoring(lambda: turn(client))

    def turn(client: Client) -> None:
        wanted = FetchBatchBody(queues=list(QUEUES[:2]), worker_id="worker-1", count=10, timeout=1)
        for job in client.fetch_batch(wanted).jobs:
            client.ack(job.job_id, AckBody(lease_token=job.lease_token))

    threads = [threading.Thread(target=one) for one in (produce, work)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def ignoring(act: Callable[[], object]) -> None:
    try:
        act()
    except (ServerRefused, Unreachable):
        pass


@pytest.fixture
def terminal(node: Node, folder: Path) -> Iterator[Terminal]:
    command = [sys.executable, "-m", "corvo.cli.main", "top", "--interval", "0.5", "--server", node.url]
    terminal = Terminal(folder, command, SIZES[0], PYTHONPATH=str(ROOT), NO_COLOR="1", TERM="screen-256color")
    yield terminal
    terminal.close()


def test_three_sizes_under_load_while_a_shard_is_killed(node: Node, terminal: Terminal) -> None:
    with Client(node.url) as client, load(node.url):
        for width, height in SIZES:
            terminal.resize(width, height)
            terminal.keys("1")
            terminal.is_drawn(width, height)
            shown = terminal.sees("● healthy", "QUEUE", *QUEUES, "q quit", "1/3")
            assert max(map(cell_len, shown)) <= width
            assert not any("…" in line for line in shown[6:]), "nothing of the table is cut off"

        before = client.cluster_status().restarts.get("shard-1", 0)
        terminal.resize(*SIZES[0])
        terminal.keys("6")
        node.kill("shard-1")
        terminal.sees(f"restarts: shard-1 {before + 1}", "● healthy", "READ.DB")
        assert not terminal.ended.exists()

        terminal.keys("1", "/", "mail", "Enter")
        terminal.sees("queues mail", "1/1")
        terminal.keys("P")
        terminal.sees("pause queue mail.send? y/n")
        terminal.keys("y")
        terminal.sees("pause queue mail.send: paused", "paused")
        assert client.get_queue("mail.send").paused

        held = client.enqueue(EnqueueBody("approvals", {"amount": 7}))
        client.hold(held.job_id, HoldBody(reason="needs a person"))
        terminal.keys("5")
        terminal.sees("needs a person")
        terminal.keys("Enter")
        terminal.sees("why         HELD", "A approve")
        terminal.keys("A", "y")
        eventually(lambda: client.get_job(held.job_id).state == "pending", within_s=PATIENCE_S)

    assert "\x1b[3" not in "".join(terminal.screen("-e")).replace("\x1b[39m", ""), "NO_COLOR is kept"
    node.stop()
    terminal.sees("STALE", "trying again in")
    terminal.keys("q")
    eventually(terminal.ended.exists, within_s=PATIENCE_S)
    assert terminal.ended.read_text().strip() == "0"
