"""The worker of the guide, against a server that plays back answers: when it stops, and what it says last."""

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.nodes import await_
from tests.client.playback import Playback, playing
from tests.docs.pages import ROOT, blocks

pytestmark = pytest.mark.system

PAGE = ROOT / "docs/how-to/write-a-worker-in-any-language.md"
END_S = 20.0
JOB: dict[str, Any] = {
    "job_id": "j1",
    "queue": "thumbnails",
    "payload": {"file": "cat.png"},
    "lease_duration": 0.3,
    "lease_token": 7,
}
LONG: dict[str, Any] = {**JOB, "payload": {"file": "cat.png", "steps": 100_000}}


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], "subprocess.Popen[bytes]"]]:
    workers: list[subprocess.Popen[bytes]] = []

    def start(url: str) -> "subprocess.Popen[bytes]":
        (code,) = (block.text for block in blocks(PAGE.read_text()) if block.text.startswith("# worker.py"))
        path = tmp_path / "worker.py"
        path.write_text(code.replace("http://localhost:8080", url))
        with (tmp_path / "output").open("wb") as output:
            workers.append(subprocess.Popen([sys.executable, str(path)], stdout=output, stderr=subprocess.STDOUT))
        return workers[-1]

    yield start
    for worker in workers:
        if worker.poll() is None:
            worker.kill()
        worker.wait()


@contextmanager
def serving(*jobs: dict[str, Any]) -> Iterator[Playback]:
    with playing() as playback:
        for job in jobs:
            playback.answer("POST", "/fetch", job)
        playback.answer("POST", "/fetch", b"", 204)
        playback.answer("POST", "/ack/j1", {"status": "ok"})
        playback.answer("POST", "/fail/j1", {"status": "cancelled"})
        playback.answer("POST", "/heartbeat", {"jobs": {"j1": {"status": "ok"}}})
        yield playback


def asked(playback: Playback, pattern: str) -> bool:
    return any(re.fullmatch(f"/api/v1/{pattern}", one.path) for one in playback.asked)


def test_it_ends_on_sigterm_while_the_server_is_away(start: Callable[[str], "subprocess.Popen[bytes]"]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        worker = start(url)
        listener.accept()[0].close()  # it has asked once, so its signal handlers are there
    worker.send_signal(signal.SIGTERM)

    assert worker.wait(END_S) == 0


def test_a_job_that_was_begun_is_finished_after_sigterm(start: Callable[[str], "subprocess.Popen[bytes]"]) -> None:
    job = {**JOB, "payload": {"file": "cat.png", "steps": 20}}
    with serving(job) as playback:
        worker = start(playback.url)
        await_(lambda: asked(playback, "heartbeat"))
        worker.send_signal(signal.SIGTERM)

        assert worker.wait(END_S) == 0
        assert asked(playback, "ack/j1") and not asked(playback, "fail/j1")


@pytest.mark.parametrize(("said", "last"), [("cancel", "fail/j1"), ("lease_lost", None)])
def test_it_stops_working_when_a_heartbeat_says_so(
    start: Callable[[str], "subprocess.Popen[bytes]"], tmp_path: Path, said: str, last: str | None
) -> None:
    with serving(LONG) as playback:
        playback.answer("POST", "/heartbeat", {"jobs": {"j1": {"status": said}}})
        worker = start(playback.url)
        await_(lambda: sum(one.path == "/api/v1/fetch" for one in playback.asked) > 1)  # it goes on with the next job
        worker.send_signal(signal.SIGTERM)

        assert worker.wait(END_S) == 0
        assert [one.path for one in playback.asked if re.search("ack|fail", one.path)] == (
            [f"/api/v1/{last}"] if last else []
        )
        assert "made" not in (tmp_path / "output").read_text()


def test_an_ack_that_got_no_answer_is_repeated(start: Callable[[str], "subprocess.Popen[bytes]"]) -> None:
    with playing() as playback:
        playback.answer("POST", "/fetch", {**JOB, "lease_duration": 60})
        playback.answer("POST", "/fetch", b"", 204)
        playback.refuse("POST", "/ack/j1", 503, "NOT_LEADER", "no leader", retry_after="0")
        playback.answer("POST", "/ack/j1", {"status": "ok"})
        worker = start(playback.url)
        await_(lambda: sum(one.path == "/api/v1/ack/j1" for one in playback.asked) == 2)
        worker.send_signal(signal.SIGTERM)

        assert worker.wait(END_S) == 0
        assert len({one.body for one in playback.asked if one.path == "/api/v1/ack/j1"}) == 1
