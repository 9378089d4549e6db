"""`corvo local`: what the parent does, with nodes that are scripts; and whole clusters of real nodes."""

import json
import os
import signal
import sys
from pathlib import Path

import httpx
import pytest

from corvo.cli.commands.local import _environment, server_command
from corvo.cli.main import run
from corvo.cli.supervise.local_layout import Layout, LayoutOptions, NodePlace
from tests.cli.local_clusters import READY_S, dummies, real, started
from tests.cli.nodes import PATIENCE_S
from tests.support.authority import Authority


def test_a_node_is_told_everything_that_makes_it_one_of_several() -> None:
    layout = Layout(2, [NodePlace("node-1", 8080, 9400), NodePlace("node-2", 8081, 9402)])

    command = server_command(
        layout.nodes[1], layout, Path("/d"), LayoutOptions("/d", fsync="off", tls_cert="c", tls_key="k")
    )

    assert command[1:4] == ["-m", "corvo.cli.main", "server"]
    options = dict(zip(command[4::2], command[5::2], strict=True))
    assert options == {
        "--data-dir": "/d/node-2",
        "--node-id": "node-2",
        "--bind": "127.0.0.1:8081",
        "--raft-bind": "127.0.0.1:9402",
        "--peers": "node-1=127.0.0.1:9400,node-2=127.0.0.1:9402",
        "--shards": "2",
        "--fsync": "off",
        "--tls-cert": "c",
        "--tls-key": "k",
    }


def test_a_node_inherits_no_other_cluster_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORVO_JOIN", "db-1:9400")
    monkeypatch.setenv("CORVO_CONFIG", "corvo.toml")
    monkeypatch.setenv("CORVO_LOG_LEVEL", "debug")

    environment = _environment()

    assert "CORVO_JOIN" not in environment and "CORVO_CONFIG" not in environment
    assert environment["CORVO_LOG_LEVEL"] == "debug"


@pytest.mark.system
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_nodes_are_listed_awaited_and_stopped_in_order(tmp_path: Path, number: int) -> None:
    with dummies(tmp_path) as local:
        local.await_(lambda: "ready\n" in local.output)
        up = local.event_log()
        assert local.end(number) == 0

    assert sorted(up) == ["up node-1", "up node-2", "up node-3"]
    assert local.event_log()[3:] == ["stopped node-3", "stopped node-2", "stopped node-1"]
    lines = local.output.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["NODE", "node-1", "node-2", "node-3"]
    assert all("http://127.0.0.1:" in line and str(tmp_path / "data") in line for line in lines[1:4])
    assert local.errors == ""


@pytest.mark.system
def test_nobody_says_ready_before_all_are(tmp_path: Path) -> None:
    (tmp_path / "unready").write_text("node-2")
    with dummies(tmp_path, "json") as local:
        local.await_(lambda: len(local.event_log()) == 3)
        assert local.output == ""
        (tmp_path / "unready").unlink()
        local.await_(lambda: local.output.endswith("}\n"))

        report = local.report()

        assert [node["node_id"] for node in report["nodes"]] == ["node-1", "node-2", "node-3"]
        assert report["urls"] == [node["url"] for node in report["nodes"]]
        assert all(httpx.get(f"{url}/readyz").status_code == 200 for url in report["urls"])
        assert all(Path(node["log"]).exists() and node["is_running"] for node in report["nodes"])
        for node in report["nodes"]:
            os.kill(node["pid"], 0)


@pytest.mark.system
def test_a_wait_can_be_ended(tmp_path: Path) -> None:
    (tmp_path / "unready").write_text("node-1 node-2 node-3")
    with dummies(tmp_path) as local:
        local.await_(lambda: len(local.event_log()) == 3)

        assert local.end(signal.SIGINT) == 0

    assert "ready" not in local.output and len(local.event_log()) == 6


@pytest.mark.system
def test_a_node_that_cannot_start_is_one_line_and_the_rest_goes_on(tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("node-2")
    with dummies(tmp_path) as local:
        local.await_(lambda: "ready, but for node-2\n" in local.output)

        assert local.errors == "corvo: node-2 ended with exit code 2: cannot use this directory\n"
        assert local.end() == 0


@pytest.mark.system
def test_a_node_that_is_killed_is_one_line_and_the_rest_goes_on(tmp_path: Path) -> None:
    with dummies(tmp_path, "json") as local:
        local.await_(lambda: local.output.endswith("}\n"))
        os.kill(local.report()["nodes"][0]["pid"], signal.SIGKILL)
        local.await_(lambda: local.errors)

        log = tmp_path / "data/node-1.log"
        assert local.errors == f"corvo: node-1 ended with signal SIGKILL; {log} says why\n"
        assert local.handle.poll() is None
        assert local.end() == 0


@pytest.mark.system
def test_when_every_node_has_ended_there_is_nothing_to_wait_for(tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("node-1 node-2")
    with dummies(tmp_path, nodes=2) as local:
        assert local.handle.wait(PATIENCE_S) == 1

    assert local.errors.splitlines()[-1].startswith("corvo: every node has ended")
    assert "ready" not in local.output


@pytest.mark.system
def test_a_second_cluster_in_the_same_directory_is_refused(tmp_path: Path) -> None:
    with dummies(tmp_path) as local:
        local.await_(lambda: "ready\n" in local.output)
        (tmp_path / "second").mkdir()
        wishes = json.dumps({"data_dir": str(tmp_path / "data")})
        program = str(Path(__file__).parents[1] / "dummy_local.py")
        with started(tmp_path / "second", [sys.executable, program, wishes, "none", "table"]) as second:
            assert second.handle.wait(PATIENCE_S) == 2

        assert f"(pid {local.handle.pid}) is using" in second.errors and len(second.errors.splitlines()) == 1


@pytest.mark.system
def test_the_nodes_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    with dummies(tmp_path) as local:
        local.await_(lambda: "ready\n" in local.output)
        local.handle.kill()
        local.handle.wait()

        local.await_(lambda: len(local.event_log()) == 6)


# Real nodes


@pytest.mark.system
def test_a_cluster_of_one_founder_serves_jobs_and_comes_back_at_the_same_address(tmp_path: Path) -> None:
    urls = []
    for turn in range(2):
        with real(tmp_path, "--nodes", "1", "--shards", "2") as local:
            local.await_(lambda: local.output.endswith("}\n"), READY_S)
            (url,) = local.report()["urls"]
            urls.append(url)
            enqueued = httpx.post(f"{url}/api/v1/enqueue", json={"queue": "mail"})
            assert enqueued.status_code == 201
            status = httpx.get(f"{url}/api/v1/cluster/status").json()
            assert (status["mode"], status["status"]) == ("cluster", "healthy"), turn
            assert local.end() == 0

    assert urls[0] == urls[1]
    assert json.loads((tmp_path / "data/node-1/identity.json").read_text())["founders"] == ["node-1"]


@pytest.mark.system
def test_nodes_with_a_certificate_speak_tls_only(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with real(tmp_path, "--nodes", "1", "--shards", "1", *authority.sign().flags) as local:
        local.await_(lambda: local.output.endswith("}\n"), READY_S)
        (url,) = local.report()["urls"]
        assert url.startswith("https://")
        enqueued = httpx.post(f"{url}/api/v1/enqueue", json={"queue": "mail"}, verify=authority.context())
        assert enqueued.status_code == 201
        assert local.end() == 0


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--tls-cert", "c.pem"], "--tls-cert is there without --tls-key: give both for TLS, or neither"),
        (["--tls-cert", "/nowhere", "--tls-key", "/nowhere"], "the certificate /nowhere cannot be read"),
    ],
)
def test_a_certificate_that_is_none_starts_no_node(
    tmp_path: Path, flags: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["local", "--data-dir", str(tmp_path / "data"), *flags]) == 2

    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"corvo: {words}") and not (tmp_path / "data").exists()


@pytest.mark.system
def test_three_nodes_hold_every_shard_and_go_on_without_one(tmp_path: Path) -> None:
    with real(tmp_path, "--nodes", "3", "--shards", "1") as local:
        local.await_(lambda: local.output.endswith("}\n"), READY_S)
        report = local.report()
        url = report["urls"][0]
        (group,) = httpx.get(f"{url}/api/v1/cluster/status").json()["groups"]
        assert sorted(group["members"]["voters"]) == ["node-1", "node-2", "node-3"]
        assert [replica["error"] for replica in group["replicas"]] == [None, None, None]

        os.kill(report["nodes"][2]["pid"], signal.SIGKILL)
        local.await_(lambda: "node-3 ended with signal SIGKILL" in local.errors)

        def is_taken() -> bool:
            return httpx.post(f"{url}/api/v1/enqueue", json={"queue": "mail"}).status_code == 201

        def is_degraded() -> bool:
            return bool(httpx.get(f"{url}/api/v1/cluster/status").json()["status"] == "degraded")

        local.await_(is_taken)
        local.await_(is_degraded)
        assert local.end() == 0
