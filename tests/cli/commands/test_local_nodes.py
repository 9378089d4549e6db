"""`corvo local status`, `kill`, `stop` and `start`: single nodes of a running cluster."""

import json
import os
from pathlib import Path
from typing import Any

import httpx
import pytest

from corvo.cli.main import run
from corvo.cli.supervise.local_control import descendants
from tests.cli.local_clusters import READY_S, Local, dummies, real


def said(capsys: pytest.CaptureFixture[str], folder: Path, *words: str) -> Any:
    assert run(["local", *words, "--data-dir", str(folder / "data"), "--output", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def states(capsys: pytest.CaptureFixture[str], folder: Path) -> list[str]:
    return [node["state"] for node in said(capsys, folder, "status")["nodes"]]


def awaited(local: Local) -> Local:
    local.await_(lambda: local.output.endswith("}\n"), READY_S)
    return local


@pytest.mark.system
def test_a_node_is_killed_and_started_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with dummies(tmp_path, "json") as local:
        awaited(local)
        assert states(capsys, tmp_path) == ["ready", "ready", "ready"]

        assert said(capsys, tmp_path, "kill", "node-2") == {"node_id": "node-2", "status": "killed", "processes": 1}
        local.await_(lambda: "node-2 ended with signal SIGKILL" in local.errors)
        assert states(capsys, tmp_path) == ["ready", "stopped", "ready"]
        assert "stopped node-2" not in local.event_log()  # it was not asked

        assert said(capsys, tmp_path, "start", "node-2") == {"node_id": "node-2", "status": "ready"}
        assert states(capsys, tmp_path) == ["ready", "ready", "ready"]
        assert local.event_log().count("up node-2") == 2
        assert local.end() == 0


@pytest.mark.system
def test_the_cluster_waits_for_nodes_that_are_down_on_purpose(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with dummies(tmp_path, "json", nodes=2) as local:
        awaited(local)
        for name in ("node-1", "node-2"):
            assert said(capsys, tmp_path, "stop", name)["status"] == "stopped"
        assert local.event_log()[2:] == ["stopped node-1", "stopped node-2"]
        local.await_(lambda: len(local.errors.splitlines()) == 2)

        assert said(capsys, tmp_path, "start", "node-1")["status"] == "ready"

        assert states(capsys, tmp_path) == ["ready", "stopped"]
        assert local.end() == 0


@pytest.mark.system
def test_what_cannot_be_done_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with dummies(tmp_path, "json", nodes=2) as local:
        awaited(local)
        data_dir = str(tmp_path / "data")
        for words, told in (
            (["kill", "node-9"], "there is no node-9; the nodes are node-1, node-2"),
            (["start", "node-1"], "node-1 is running already"),
        ):
            assert run(["local", *words, "--data-dir", data_dir]) == 1
            assert capsys.readouterr().err == f"corvo: {told}\n"
        assert run(["local", "--data-dir", data_dir, "stop", "node-1"]) == 0  # the flag may stand in front
        assert run(["local", "stop", "node-1", "--data-dir", data_dir]) == 1
        assert "node-1 is not running; `corvo local start node-1` starts it" in capsys.readouterr().err
        local.end()
    for words in (["status"], ["kill", "node-1"], ["stop", "node-1"], ["start", "node-1"]):
        assert run(["local", *words, "--data-dir", data_dir]) == 1
        assert "no `corvo local` is running in" in capsys.readouterr().err


@pytest.mark.system
def test_a_node_that_ends_at_its_start_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with dummies(tmp_path, "json", nodes=2) as local:
        awaited(local)
        said(capsys, tmp_path, "stop", "node-2")
        (tmp_path / "unready").write_text("node-2")
        (tmp_path / "broken").write_text("node-2")

        assert run(["local", "start", "node-2", "--data-dir", str(tmp_path / "data")]) == 1

        assert "node-2" in capsys.readouterr().err
        local.end()


@pytest.mark.system
def test_no_process_of_a_killed_node_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with real(tmp_path, "--nodes", "3", "--shards", "1") as local:
        report = awaited(local).report()
        url = report["urls"][0]
        family = descendants(report["nodes"][1]["pid"])
        assert len(family) == 3  # mirror, shard, gateway

        assert said(capsys, tmp_path, "kill", "node-2")["processes"] == 4

        assert not any(is_alive(pid) for pid in family)
        local.await_(lambda: httpx.post(f"{url}/api/v1/enqueue", json={"queue": "mail"}).status_code == 201)
        assert said(capsys, tmp_path, "start", "node-2")["status"] == "ready"
        assert local.end() == 0


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_the_processes_below_one_are_found() -> None:
    assert os.getpid() in descendants(os.getppid())
    assert os.getpid() not in descendants(os.getpid())
