"""A node that is to be one of several: its identity comes from a meeting, here a script that a test wrote."""

import json
import os
import random
import signal
import socket
from pathlib import Path

import pytest

from corvo.cli.supervise.ports import free_row
from corvo.runtime.process import RUN, read_settings
from tests.cli.nodes import dummies, meeting, running, tried

pytestmark = pytest.mark.system

# Tells where it runs and what it finds there, then makes the identity.
AGREES = """
import json, os, pathlib
settings = json.loads(pathlib.Path("run/settings.json").read_text())
pathlib.Path("met").write_text(os.getcwd())
identity = {"cluster_id": "c", "node_id": settings["node_id"], "shards": settings["shards"], "founders": ["node-1"]}
pathlib.Path("identity.json").write_text(json.dumps(identity))
print("the nodes have met", flush=True)
"""
REFUSES = "import sys; print('node-2 has 8 shards, this one 4', file=sys.stderr); sys.exit(2)"
BREAKS = "raise ValueError('a bug')"
WAITS = """
import pathlib, signal, sys
signal.signal(signal.SIGTERM, lambda *_: (pathlib.Path("stopped").touch(), sys.exit(0)))
signal.signal(signal.SIGINT, signal.getsignal(signal.SIGTERM))
pathlib.Path("waiting").touch()
signal.pause()
"""


def clustered() -> dict[str, str]:
    first = free_row("127.0.0.1", 4, random.Random())
    return {"peers": f"node-1=127.0.0.1:{first}", "raft_bind": f"127.0.0.1:{first}"}


def test_the_nodes_meet_before_anything_starts_and_only_once(tmp_path: Path) -> None:
    settings = clustered()
    (tmp_path / "secret").write_text("0123456789abcdef")
    (tmp_path / "secret").chmod(0o600)
    for _ in range(2):
        with running(
            tmp_path,
            dummies(tmp_path),
            meeting(tmp_path, AGREES),
            cluster_secret_file=os.path.relpath(tmp_path / "secret"),
            **settings,
        ) as node:
            node.await_(lambda: len(node.event_log()) == 4)
            assert node.end() == 0
        (tmp_path / "journal").unlink()

    data = tmp_path / "data"
    assert (data / "met").read_text() == str(data)
    assert json.loads((data / "identity.json").read_text())["founders"] == ["node-1"]
    assert read_settings(data / RUN).cluster_secret_file == str(Path(os.path.relpath(tmp_path / "secret")).absolute())
    assert (tmp_path / "output").read_text().count("the nodes have met") == 1


def test_a_meeting_that_refuses_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    ended = tried(tmp_path, dummies(tmp_path), meeting(tmp_path, REFUSES), **clustered())

    assert (ended.returncode, ended.stderr) == (2, "corvo: node-2 has 8 shards, this one 4\n")
    assert not (tmp_path / "journal").exists()


def test_a_meeting_that_breaks_shows_why(tmp_path: Path) -> None:
    ended = tried(tmp_path, dummies(tmp_path), meeting(tmp_path, BREAKS), **clustered())

    assert ended.returncode == 2
    assert "ValueError: a bug" in ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("corvo: the search for the other nodes ended with exit code 1")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_wait_for_others(tmp_path: Path, number: int) -> None:
    with running(tmp_path, dummies(tmp_path), meeting(tmp_path, WAITS), **clustered()) as node:
        node.await_((tmp_path / "data/waiting").exists)

        assert node.end(number) == 0

    assert (tmp_path / "data/stopped").exists()
    assert not (tmp_path / "data/identity.json").exists() and not (tmp_path / "journal").exists()


def test_a_node_alone_meets_nobody(tmp_path: Path) -> None:
    with running(tmp_path, dummies(tmp_path), meeting(tmp_path, REFUSES)) as node:
        node.await_(lambda: len(node.event_log()) == 4)

    assert json.loads((tmp_path / "data/identity.json").read_text())["founders"] is None


def test_a_port_for_other_nodes_in_use_is_one_line_and_no_meeting(tmp_path: Path) -> None:
    settings = clustered()
    with socket.socket() as other:
        other.bind(("127.0.0.1", int(settings["raft_bind"].rpartition(":")[2]) + 3))
        other.listen(1)
        ended = tried(tmp_path, dummies(tmp_path), meeting(tmp_path, AGREES), **settings)

    assert ended.returncode == 2 and len(ended.stderr.splitlines()) == 1
    assert "for shard 3: address already in use; choose another --raft-bind" in ended.stderr
    assert not (tmp_path / "data/met").exists()
