"""`corvo bench` against a real server."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from chaos.node import Node, wait_until
from corvo.cli.main import run

pytestmark = pytest.mark.system

PATIENCE_S = 30.0


def bench(node: Node, capsys: pytest.CaptureFixture[str], *flags: str) -> tuple[int, Any]:
    """Exit code and report."""
    code = run(["bench", "--server", node.url, "--connections", "2", "--queues", "2", "--output", "json", *flags])
    return code, json.loads(capsys.readouterr().out)


def queues_left(node: Node) -> list[str]:
    listed = httpx.get(f"{node.url}/api/v1/queues?consistent=true").json()
    return [queue["name"] for queue in listed if queue["name"].startswith("bench.")]


@pytest.mark.parametrize("protocol", ["stream", "http"])
@pytest.mark.parametrize("flags", [("--jobs", "300", "--batch", "20"), ("--jobs", "30", "--batch", "1")])
def test_whole_lives(
    shared_node: Node, capsys: pytest.CaptureFixture[str], protocol: str, flags: tuple[str, ...]
) -> None:
    code, report = bench(shared_node, capsys, "--protocol", protocol, *flags)

    assert (code, report["errors"], report["overloads"], report["is_whole"]) == (0, {}, 0, True)
    assert report["enqueued"] == report["claimed"] == report["completed"] == int(flags[1])
    assert report["rates_per_s"]["jobs completed"] > 0 and report["turn_ms"]["count"] > 0
    assert (report["server"]["shards"], report["server"]["is_fsynced"]) == (4, True)
    assert report["machine"]["cores"] == os.cpu_count()
    assert queues_left(shared_node) == []


@pytest.mark.parametrize("protocol", ["stream", "http"])
def test_a_burst_goes_in_and_out_again(shared_node: Node, capsys: pytest.CaptureFixture[str], protocol: str) -> None:
    code, report = bench(shared_node, capsys, "--mode", "burst", "--jobs", "210", "--protocol", protocol)

    assert (code, report["enqueued"], report["completed"]) == (0, 210, 210)
    assert set(report["rates_per_s"]) == {"jobs enqueued", "jobs drained"}


@pytest.mark.parametrize("protocol", ["stream", "http"])
def test_latency_is_that_of_every_job(shared_node: Node, capsys: pytest.CaptureFixture[str], protocol: str) -> None:
    code, report = bench(
        shared_node, capsys, "--mode", "latency", "--rate", "100", "--jobs", "40", "--protocol", protocol
    )

    assert (code, report["errors"]) == (0, {})
    latency = report["latency_ms"]
    assert latency["count"] == 40
    assert 0 < latency["p50"] <= latency["p90"] <= latency["p99"] <= latency["max"]


def test_time_ends_it_and_a_table_and_a_file_tell(
    shared_node: Node, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    saved = tmp_path / "result.json"
    assert run(["bench", "--server", shared_node.url, "--seconds", "0.3", "--keep", "--save", str(saved)]) == 0

    shown = capsys.readouterr().out
    report = json.loads(saved.read_bytes())
    assert "jobs completed per second" in shown and "errors" in shown
    assert report["seconds"] >= 0.3 and report["plan"]["jobs"] is None
    assert len(queues_left(shared_node)) == 8
    for name in queues_left(shared_node):
        httpx.delete(f"{shared_node.url}/api/v1/queues/{name}?confirm=true&force=true").raise_for_status()


@pytest.mark.parametrize("protocol", ["stream", "http"])
def test_refusals_are_counted_and_seen_in_the_exit_code(
    shared_node: Node, capsys: pytest.CaptureFixture[str], protocol: str
) -> None:
    flags = ["--payload-bytes", "300000", "--batch", "2", "--seconds", "0.3", "--protocol", protocol]
    code, report = bench(shared_node, capsys, *flags)

    assert (code, report["enqueued"]) == (1, 0)
    assert sum(report["errors"].values()) > 0


def test_ctrl_c_shows_what_was_measured(shared_node: Node) -> None:
    command = [sys.executable, "-m", "corvo.cli.main", "bench", "--server", shared_node.url, "--seconds", "60"]
    handle = subprocess.Popen([*command, "--output", "json"], stdout=subprocess.PIPE, text=True)
    wait_until(lambda: bool(queues_of(shared_node)), "the load to begin", PATIENCE_S)
    handle.send_signal(signal.SIGINT)
    out, _ = handle.communicate(timeout=PATIENCE_S)
    report = json.loads(out)

    assert (handle.returncode, report["is_whole"]) == (1, False)
    assert report["enqueued"] > 0 and report["seconds"] < 60
    assert queues_left(shared_node) == []


def test_a_connection_that_breaks_is_counted_and_opened_again(shared_node: Node) -> None:
    command = [
        sys.executable,
        "-m",
        "corvo.cli.main",
        "bench",
        "--server",
        shared_node.url,
        "--seconds",
        "4",
        "--output",
        "json",
    ]
    handle = subprocess.Popen([*command, "--queues", "2"], stdout=subprocess.PIPE, text=True)
    wait_until(lambda: bool(queues_of(shared_node)), "the load to begin", PATIENCE_S)
    shared_node.kill("gateway-0")
    out, _ = handle.communicate(timeout=PATIENCE_S)
    report = json.loads(out)

    assert handle.returncode == 1
    assert sum(report["errors"].values()) > 0
    assert report["completed"] > 0 and report["is_whole"]


def queues_of(node: Node) -> list[str]:
    try:
        listed = httpx.get(f"{node.url}/api/v1/queues", timeout=5.0).json()
    except httpx.HTTPError:
        return []
    return [queue["name"] for queue in listed if queue["name"].startswith("bench.") and queue["enqueued"]]
