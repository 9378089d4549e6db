"""The audit log over real processes: ten kinds of changes are listed, exported and verified, and survive kills."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from chaos.node import Node, wait_until

pytestmark = pytest.mark.system

SECRET = "hunter2"
TERMS = {"name": "nightly", "queue": "audit.mail", "cron": "0 3 * * *", "payload": {"password": SECRET}}
# Method, path, body, route: each changes something that exists by then.
CHANGES: list[tuple[str, str, Any, str]] = [
    ("POST", "/queues/audit.mail/concurrency", {"max": 5}, "set_concurrency"),
    ("POST", "/queues/audit.mail/throttle", {"rate": 10, "window_ms": 1000}, "set_throttle"),
    ("POST", "/queues/audit.mail/retention", {"completed": "1h"}, "set_retention"),
    ("POST", "/queues/audit.mail/pause", None, "pause_queue"),
    ("POST", "/schedules", TERMS, "create_schedule"),
    ("PUT", "/schedules/nightly", {"cron": "0 4 * * *", "payload": {"password": SECRET * 2}}, "update_schedule"),
    ("DELETE", "/schedules/nightly", None, "delete_schedule"),
    ("POST", "/auth/roles", {"name": "looker", "permissions": [{"resource": "jobs", "actions": ["read"]}]}, "put_role"),
    ("POST", "/namespaces", {"name": "acme"}, "create_namespace"),
    ("POST", "/jobs/bulk", {"action": "cancel", "filter": {"queue": "audit.mail"}}, "bulk"),
    ("DELETE", "/queues/audit.mail?confirm=true&force=true", None, "delete_queue"),
]


def api(node: Node) -> httpx.Client:
    return httpx.Client(base_url=f"{node.url}/api/v1", timeout=30.0)


def corvo(node: Node, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environ = {**os.environ, "CORVO_SERVER": node.url}
    command = [sys.executable, "-m", "corvo.cli.main", "audit", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, env=environ, cwd=Path(__file__).parents[2], timeout=60, check=False
    )


def logs(node: Node, **query: Any) -> list[dict[str, Any]]:
    with api(node) as client:
        answer = client.get("/audit-logs", params={"consistent": "true", "limit": 1000, **query})
    answer.raise_for_status()
    found: list[dict[str, Any]] = answer.json()["audit_logs"]
    return found


def test_ten_kinds_of_changes_are_listed_exported_verified_and_a_forgery_shows(node: Node, tmp_path: Path) -> None:
    with api(node) as client:
        client.post("/enqueue", json={"queue": "audit.mail"}).raise_for_status()
        for method, path, body, _ in CHANGES:
            answer = client.request(method, path, json=body)
            assert answer.is_success, (path, answer.text)
        assert client.post("/queues/bad name/pause").status_code == 400

    listed = logs(node)[::-1]
    assert [log["route"] for log in listed] == [*(route for *_, route in CHANGES), "pause_queue"]
    assert [log["outcome"] for log in listed] == ["ok"] * len(CHANGES) + ["refused"]
    assert {log["principal"] for log in listed} == {"anonymous"}
    assert {log["address"] for log in listed} == {"127.0.0.1"}
    by_route = {log["route"]: log for log in listed[:-1]}
    assert by_route["set_throttle"]["before"]["rate_limit"] is None
    assert by_route["set_throttle"]["after"]["rate_limit"] == 10
    assert by_route["update_schedule"]["after"]["payload"] == "(hidden, changed)"
    assert [log["route"] for log in logs(node, method="PUT")] == ["update_schedule"]

    file = tmp_path / "audit.ndjson"
    assert corvo(node, "export", str(file)).returncode == 0
    text = file.read_text()
    assert SECRET not in text
    assert text.count("\n") == 2 * len(listed) + 2
    verified = corvo(node, "verify", str(file), "--output", "json")
    newest = json.loads(verified.stdout)
    assert (newest["status"], newest["records"]) == ("ok", 2 * len(listed))

    forged = tmp_path / "forged.ndjson"
    forged.write_text(text.replace('"change":{"max":5}', '"change":{"max":6}'))
    told = corvo(node, "verify", str(forged))
    assert told.returncode == 1
    assert "line 2, record 1: its hash does not match" in told.stderr
    lines = text.splitlines(keepends=True)
    forged.write_text("".join(lines[:5] + lines[6:]))
    assert "record 5" in corvo(node, "verify", str(forged)).stderr

    anchor = f"{newest['newest']}:{newest['hash']}"
    assert corvo(node, "verify", "--expect", anchor).returncode == 0
    assert corvo(node, "verify", "--expect", anchor[:-1] + ("0" if anchor[-1] != "0" else "1")).returncode == 1


def test_every_change_that_was_made_is_in_the_log_whatever_is_killed(node: Node) -> None:
    """Changes go on while the gateway and shard 0 are killed. No paused queue lacks its record."""
    made: list[str] = []
    stop = threading.Event()

    def change() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            name = f"audit.kill.{number}"
            try:
                answer = httpx.post(f"{node.url}/api/v1/queues/{name}/pause", timeout=20.0)
            except httpx.HTTPError:
                continue
            if answer.status_code == 200:
                made.append(name)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for role in ("gateway", "shard-0", "gateway", "shard-0"):
            reached = len(made) + 20
            wait_until(lambda reached=reached: len(made) >= reached, "more changes", 60.0)
            node.kill(role)
    finally:
        stop.set()
        thread.join()
    wait_until(node.is_healthy, "the node to be healthy", 60.0)

    with api(node) as client:
        wait_until(lambda: client.get("/audit-logs?consistent=true").status_code == 200, "read.db to catch up", 60.0)
        queues = client.get("/queues", params={"consistent": "true"}).json()
    paused = {queue["name"] for queue in queues if queue["paused"] and queue["name"].startswith("audit.kill.")}
    recorded = {log["target"]["queue"]: log["outcome"] for log in logs(node, path_prefix="/api/v1/queues/audit.kill.")}
    assert paused >= set(made)
    assert paused <= recorded.keys(), "a change without its record"
    assert all(recorded[name] in ("ok", "unknown", "refused") for name in paused)
    assert sum(recorded[name] == "ok" for name in made) >= len(made) - 8, "few outcomes are lost with a gateway"
    assert corvo(node, "verify").returncode == 0


def test_the_log_is_there_after_a_restart_and_goes_on(folder: Path) -> None:
    node = Node.start(folder / "data")
    try:
        httpx.post(f"{node.url}/api/v1/queues/audit.again/pause").raise_for_status()
        before = json.loads(corvo(node, "verify", "--output", "json").stdout)
    finally:
        assert node.stop() == 0
    node = Node.start(folder / "data", "--audit-retention", "30d", "--audit-records", "10000")
    try:
        httpx.post(f"{node.url}/api/v1/queues/audit.again/resume").raise_for_status()
        after = corvo(node, "verify", "--expect", f"{before['newest']}:{before['hash']}", "--output", "json")
        assert json.loads(after.stdout)["newest"] == before["newest"] + 2
    finally:
        node.stop()
