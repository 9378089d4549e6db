"""`corvo doctor`, `corvo support-bundle` and `corvo mcp` against one real server, and without any."""

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.node import Node
from corvo.cli import main
from corvo.cli.main import run
from corvo.client.bodies import EnqueueBody
from corvo.client.http import Client

PASSWORD = "planted-admin-password-0123456789"
IN_LOG = "sk_" + "Planted9" * 6
IN_URL = "planted-in-a-url"
PAYLOAD = "planted-payload"
ANSWER_S = 30.0


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("live")
    password = folder / "admin-password"
    password.touch(0o600)
    password.write_text(PASSWORD)
    data_dir = folder / "data"
    data_dir.mkdir(0o700)
    node = Node.start(data_dir, "--shards", "2", "--auth", "on", "--admin-password-file", str(password))
    with Client(node.url, api_key=PASSWORD) as client:
        client.enqueue(EnqueueBody(queue="mail", payload={"note": PAYLOAD}))
    yield node
    node.stop()


@pytest.fixture
def live(node: Node, monkeypatch: pytest.MonkeyPatch) -> Node:
    monkeypatch.setenv("CORVO_SERVER", node.url)
    monkeypatch.setenv("CORVO_API_KEY", PASSWORD)
    return node


def checks(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, str]]:
    return {one["name"]: one for one in json.loads(capsys.readouterr().out)["checks"]}


@pytest.mark.system
def test_doctor_finds_nothing_wrong_with_a_server_that_is_well(live: Node, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--output", "json"]) == 0

    found = checks(capsys)
    assert set(found) == {
        "server", "versions", "server clock", "health", "leaders", "durability", "read.db", "restarts",
    }  # fmt: skip
    for name in ("versions", "server clock", "health", "leaders", "durability", "restarts"):
        assert found[name]["verdict"] == "ok", found[name]


@pytest.mark.system
def test_doctor_says_what_its_key_may_not_see(
    live: Node, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CORVO_API_KEY")

    assert run(["doctor", "--output", "json"]) == 1

    found = checks(capsys)
    assert found["server"]["verdict"] == "ok"
    assert "UNAUTHORIZED" in found["health"]["found"] and "give a key" in found["health"]["remedy"]


@pytest.mark.system
def test_doctor_checks_the_directory_of_a_running_server(live: Node, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(path.name for path in live.data_dir.iterdir())

    run(["doctor", "--data-dir", str(live.data_dir), "--output", "json"])

    found = checks(capsys)
    assert found["data directory"]["verdict"] == "ok"
    assert "median" in found["fsync"]["found"]
    assert sorted(path.name for path in live.data_dir.iterdir()) == before


def test_doctor_says_that_no_server_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--server", "http://127.0.0.1:1"]) == 1

    shown = capsys.readouterr().out
    assert "fail" in shown and "nothing answers" in shown and "→ start it" in shown


def unpacked(file: Path) -> dict[str, str]:
    with tarfile.open(file) as archive:
        members = [one for one in archive.getmembers() if one.isfile()]
        texts = {}
        for one in members:
            content = archive.extractfile(one)
            assert content is not None
            texts[one.name.partition("/")[2]] = content.read().decode()
    return texts


@pytest.mark.system
def test_a_support_bundle_has_everything_but_the_secrets(
    live: Node, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "server.log"
    more = f"login with {IN_LOG}\nread-db postgresql://corvo:{IN_URL}@db/jobs\nadmin said {PASSWORD}\nlast line\n"
    log.write_text((live.data_dir / "server.log").read_text() + more)
    file = tmp_path / "bundle.tar.gz"
    options = ["--data-dir", str(live.data_dir), "--log", str(log), "--output", "json"]

    assert run(["support-bundle", str(file), *options]) == 0

    told = json.loads(capsys.readouterr().out)
    parts = unpacked(file)
    assert list(parts) == told["parts"] and file.stat().st_mode & 0o077 == 0
    for name, text in parts.items():
        for secret in (PASSWORD, IN_LOG, IN_URL, PAYLOAD):
            assert secret not in text, f"{name} holds {secret}"
    assert json.loads(parts["server/status.json"])["status"] == "healthy"
    assert [one["name"] for one in json.loads(parts["server/queues.json"])] == ["mail"]
    assert "corvo_" in parts["server/metrics.txt"]
    assert json.loads(parts["node/settings.json"])["shards"] == "2"
    assert "last line" in parts["logs/1-server.log"] and "[redacted]" in parts["logs/1-server.log"]
    assert "identity.json" in parts["node/files.txt"]


def test_a_bundle_is_made_where_no_server_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bundle.tar.gz"
    options = ["--server", "http://127.0.0.1:1", "--data-dir", str(tmp_path / "none"), "--log", str(tmp_path / "none")]

    assert run(["support-bundle", str(file), *options]) == 0

    parts = unpacked(file)
    assert parts["server/status.json"].startswith("not to be had: nothing answers")
    assert "no settings of a run" in parts["node/settings.json"] and "not to be had" in parts["logs/1-none"]


def test_a_bundle_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["support-bundle", str(tmp_path / "no" / "x.tar.gz"), "--server", "http://127.0.0.1:1"]) == 1

    assert "cannot be written" in capsys.readouterr().err


class Assistant:
    """A client of `corvo mcp`, over its standard input and output."""

    def __init__(self, node: Node, *flags: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(Path(main.__file__).parents[2]), "CORVO_API_KEY": PASSWORD}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "corvo.cli.main", "mcp", "--server", node.url, *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        self._number = 0
        asked = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        self.greeting = self.ask("initialize", **asked)
        self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def say(self, message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, **params: Any) -> Any:
        """The result, or the error."""
        self._number += 1
        self.say({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        assert self.process.stdout is not None
        answer = json.loads(self.process.stdout.readline())
        assert answer["id"] == self._number
        return answer.get("result", answer.get("error"))

    def use(self, tool: str, /, **arguments: Any) -> Any:
        return self.ask("tools/call", name=tool, arguments=arguments)

    def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            return self.process.wait(ANSWER_S)
        finally:
            self.process.kill()


@pytest.mark.system
def test_an_assistant_looks_at_queues_and_changes_nothing(live: Node) -> None:
    assistant = Assistant(live)
    try:
        assert assistant.greeting["protocolVersion"] == "2025-06-18"
        assert assistant.greeting["serverInfo"]["name"] == "corvo" and "tools" in assistant.greeting["capabilities"]
        assert assistant.ask("ping") == {}

        tools = {tool["name"]: tool for tool in assistant.ask("tools/list")["tools"]}
        assert all(tool["annotations"]["readOnlyHint"] for tool in tools.values())
        found = json.loads(assistant.use("queues", consistent=True)["content"][0]["text"])
        assert [queue["name"] for queue in found] == ["mail"]
        jobs = assistant.use("search", queue="mail", state=["pending"], consistent=True)["structuredContent"]["jobs"]
        job = assistant.use("get_job", job_id=jobs[0]["id"])["structuredContent"]
        assert job["payload"] == {"note": PAYLOAD}

        assert assistant.use("pause_queue", name="mail")["code"] == -32602
        refused = assistant.use("get_job", job_id="nope")
        assert refused["isError"] is True and "JOB_NOT_FOUND" in refused["content"][0]["text"]
        with Client(live.url, api_key=PASSWORD) as client:
            assert client.get_queue("mail").paused is False
    finally:
        assert assistant.end() == 0


@pytest.mark.system
def test_an_assistant_that_may_write_operates_a_queue(live: Node) -> None:
    assistant = Assistant(live, "--allow-writes")
    try:
        made = assistant.use("enqueue", queue="letters", payload={"to": "ada"}, priority="high")["structuredContent"]
        assert assistant.use("pause_queue", name="letters")["isError"] is False
        assert assistant.use("hold", job_id=made["job_id"], reason="ask first")["isError"] is False
        wrong = assistant.use("enqueue", queue="letters", pay_load=1)
        assert wrong["isError"] is True and "pay_load" in wrong["content"][0]["text"]
    finally:
        assert assistant.end() == 0

    with Client(live.url, api_key=PASSWORD) as client:
        assert client.get_job(made["job_id"]).state == "held"
        assert client.get_queue("letters").paused is True
