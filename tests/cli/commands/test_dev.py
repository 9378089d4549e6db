"""`corvo dev`: a server to try things out on, with sample jobs and a sample worker, that leaves nothing behind."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corvo.cli.commands.dev_server import server_environment
from corvo.cli.main import run
from corvo.client.bodies import EnqueueBody, QueuesQuery
from corvo.client.http import Client, Unreachable
from tests.cli.local_clusters import READY_S, Local, started
from tests.cli.nodes import PATIENCE_S


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary directories are made."""
    folder = tmp_path / "t"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.fixture
def dev(temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Local]:
    monkeypatch.setenv("CORVO_READ_DB", "postgresql://nobody@127.0.0.1:1/nothing")  # of another server, not of this one
    with started(tmp_path, [sys.executable, "-m", "corvo.cli.main", "dev", "--output", "json"]) as process:
        process.await_(lambda: process.output.count("\n}\n") or process.handle.poll() is not None, READY_S)
        yield process


def counts(client: Client) -> dict[str, int]:
    rows = client.queues(QueuesQuery(consistent=True))
    return {state: sum(getattr(row, state) for row in rows) for state in ("pending", "active", "completed", "dead")}


@pytest.mark.system
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_sample_jobs_are_worked_off_and_nothing_is_left(dev: Local, temporary: Path, number: int) -> None:
    told: dict[str, Any] = json.loads(dev.output)
    data_dir = Path(told["data_dir"])
    assert data_dir.parent == temporary and data_dir.is_dir()
    assert told["url"].startswith("http://127.0.0.1:")

    with Client(told["url"]) as client:
        mine = client.enqueue(EnqueueBody(queue="demo.emails", payload={"to": "me"})).job_id
        dev.await_(lambda: client.get_job(mine).state == "completed", READY_S)
        dev.await_(lambda: counts(client)["pending"] == 0, READY_S)
        assert counts(client)["completed"] > 1

        assert dev.end(number) == 0
        with pytest.raises(Unreachable):
            client.queues()
    assert list(temporary.iterdir()) == []
    assert dev.errors == ""


@pytest.mark.system
def test_a_stop_during_the_start_leaves_nothing(temporary: Path, tmp_path: Path) -> None:
    with started(tmp_path, [sys.executable, "-m", "corvo.cli.main", "dev"]) as process:
        process.await_(lambda: list(temporary.iterdir()), PATIENCE_S)
        assert process.end(signal.SIGINT) == 0

    assert list(temporary.iterdir()) == []


@pytest.mark.system
def test_a_server_that_ends_is_reported_with_its_reason(temporary: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with started(tmp_path, [sys.executable, "-m", "corvo.cli.main", "dev", "--port", port]) as process:
            assert process.handle.wait(READY_S) == 1

    assert f"exit code 2: cannot listen on 127.0.0.1:{port}: " in process.errors
    assert list(temporary.iterdir()) == []


def test_settings_of_other_servers_are_not_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORVO_READ_DB", "postgresql://db/jobs")
    monkeypatch.setenv("CORVO_CONFIG", "corvo.toml")
    monkeypatch.setenv("HOME", "/home/ada")

    environment = server_environment()

    assert [name for name in environment if name.startswith("CORVO_")] == []
    assert environment["HOME"] == "/home/ada"


def test_a_directory_that_cannot_be_made_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr("tempfile.mkdtemp", refuse)

    assert run(["dev"]) == 2

    assert capsys.readouterr().err.startswith("corvo: cannot make a temporary directory: ")


def test_help_says_what_is_removed() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "corvo.cli.main", "dev", "--help"], capture_output=True, text=True, check=True
    ).stdout

    assert "removes" in shown
