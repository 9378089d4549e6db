"""Search piped into bulk, by a real shell against a real server: all matching jobs are changed, not one page.

The pipelines of the seeds themselves are run by tests/docs/test_seeds.py; here are more jobs than a page has.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from chaos.node import Node, wait_until
from tests.docs.pages import ROOT

pytestmark = pytest.mark.system

JOBS = 120  # more than the 50 of a page on a terminal
LINE_S = 60.0


@pytest.fixture(scope="module")
def server() -> Iterator[Node]:
    with tempfile.TemporaryDirectory(prefix="corvo-pipes-") as path:
        node = Node.start(Path(path) / "data", "--shards", "2", "--fsync", "off")
        wait_until(lambda: httpx.get(f"{node.url}/readyz").status_code == 200, "the server to be ready", 30.0)
        yield node
        node.stop()


def typed(server: Node, line: str) -> "subprocess.CompletedProcess[str]":
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "corvo")
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m corvo.cli.main "$@"\n')
        program.chmod(0o755)
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LINE_S,
            check=False,
            env={
                **os.environ,
                "PATH": f"{folder}:{os.environ['PATH']}",
                "PYTHONPATH": str(ROOT),
                "CORVO_SERVER": server.url,
            },
        )


def filled(server: Node, queue: str, *, held: bool = False) -> None:
    jobs = [{"queue": queue, "payload": {"legacy": True}}] * JOBS
    api = f"{server.url}/api/v1"
    ids = httpx.post(f"{api}/enqueue/batch", json={"jobs": jobs}).raise_for_status().json()["job_ids"]
    if held:
        httpx.post(f"{api}/jobs/bulk", json={"action": "hold", "job_ids": ids}).raise_for_status()


def count(server: Node, queue: str) -> dict[str, int]:
    answer = httpx.get(f"{server.url}/api/v1/queues/{queue}")
    return {name: amount for name, amount in answer.json().items() if amount and name in ("pending", "held", "dead")}


@pytest.mark.parametrize("flags", ["--all --output json", "--output-json", "--all", ""])
def test_approve_reaches_every_job(server: Node, flags: str) -> None:
    queue = f"approve{flags.replace(' ', '.')}"
    filled(server, queue, held=True)

    done = typed(server, f"corvo search --queue {queue} --state held {flags} | corvo bulk approve")

    assert (done.returncode, f"{JOBS} of {JOBS} jobs changed" in done.stdout) == (0, True), done
    assert count(server, queue) == {"pending": JOBS}


@pytest.mark.parametrize("form", ["--output json", "--output json | jq -c '.[]'", "--output json | jq -r '.[].id'"])
def test_delete_reaches_every_job_in_any_form(server: Node, form: str) -> None:
    queue = f"delete.{len(form)}"
    filled(server, queue)

    done = typed(server, f"corvo search --queue {queue} {form} | corvo bulk delete")

    assert done.returncode == 0, done
    assert count(server, queue) == {}


def test_jobs_that_are_all_refused_are_an_error(server: Node) -> None:
    filled(server, "refused")

    done = typed(server, "corvo search --queue refused | corvo bulk approve --output json")

    assert done.returncode == 1
    assert json.loads(done.stdout)["errors"] == JOBS
    assert count(server, "refused") == {"pending": JOBS}


def test_without_a_terminal_nothing_is_deleted_by_accident(server: Node) -> None:
    filled(server, "kept")

    for line in ("corvo bulk delete --queue kept", "corvo clear kept", "corvo destroy kept"):
        done = typed(server, line)
        assert (done.returncode, done.stdout) == (2, "")
        assert len(done.stderr.splitlines()) == 1 and "--yes" in done.stderr
    assert count(server, "kept") == {"pending": JOBS}
    assert typed(server, "corvo destroy kept --confirm").returncode == 0


def test_the_demo_has_jobs_in_all_states(server: Node) -> None:
    done = typed(server, "corvo seed demo --count 24 --output json")

    assert json.loads(done.stdout)["jobs"] == {
        "completed": 4,
        "dead": 2,
        "retrying": 2,
        "held": 2,
        "cancelled": 2,
        "scheduled": 2,
        "pending": 10,
    }
    found = json.loads(typed(server, "corvo search --tag source=demo --output json").stdout)
    assert len(found) == 24
    assert {job["state"] for job in found} == {
        "completed",
        "dead",
        "retrying",
        "held",
        "cancelled",
        "scheduled",
        "pending",
    }
