"""Processes that die, and how they come back: real processes, real signals."""

import os
import re
import signal
import sys
import time
from datetime import datetime
from pathlib import Path

import pytest

from corvo.cli.supervise.programs import DEATHS_MAX, Program
from corvo.cli.supervise.supervisor import restart_pause_s
from corvo.runtime.heartbeat import ProcessHeartbeat, read_heartbeats
from corvo.runtime.process import read_record
from tests.cli.nodes import dummies, running, tried

pytestmark = pytest.mark.system


def test_the_first_restart_comes_at_once_and_none_takes_a_second() -> None:
    pauses = [restart_pause_s(deaths) for deaths in range(1, 20)]

    assert pauses[:5] == [0.0, 0.1, 0.2, 0.4, 0.8]
    assert max(pauses) < 1


def test_a_killed_process_is_back_within_a_fraction_of_a_second(tmp_path: Path) -> None:
    with running(tmp_path, dummies(tmp_path)) as node:
        node.await_(lambda: node.said("up", "shard-1") and node.said("up", "gateway"))

        killed_at = time.time()
        os.kill(node.said("up", "shard-1")[0], signal.SIGKILL)
        node.await_(lambda: len(node.said("up", "shard-1")) == 2)

        restarted = next(event for event in node.events() if event["event"] == "process restarted")
        assert restarted["name"] == "shard-1"
        assert datetime.fromisoformat(restarted["timestamp"]).timestamp() - killed_at < 0.4
        assert len(node.said("up", "gateway")) == len(node.said("up", "shard-0")) == 1
        record = read_record(tmp_path / "data/run")
        assert record.restarts == {"gateway": 0, "mirror": 0, "shard-0": 0, "shard-1": 1}
        assert [(one.process, one.reason) for one in record.incidents] == [("shard-1", "terminated by SIGKILL")]


def test_the_output_of_processes_is_passed_on_as_it_is(tmp_path: Path) -> None:
    with running(tmp_path, dummies(tmp_path)) as node:
        node.await_(lambda: node.said("up", "gateway"))
        node.await_(lambda: "gateway speaks\n" in node.output())
        node.await_(lambda: [event for event in node.events() if event["event"] == "starting"])


def test_the_gateway_stops_first_the_shards_together_the_mirror_last(tmp_path: Path) -> None:
    with running(tmp_path, dummies(tmp_path, stop_s=0.2)) as node:
        node.await_(lambda: len(node.event_log()) == 4)

        assert node.end(signal.SIGTERM) == 0

    order = [(word, name.partition("-")[0]) for word, name, _ in node.event_log()[4:]]
    assert order == [
        ("stopping", "gateway"),
        ("stopped", "gateway"),
        ("stopping", "shard"),
        ("stopping", "shard"),
        ("stopped", "shard"),
        ("stopped", "shard"),
        ("stopping", "mirror"),
        ("stopped", "mirror"),
    ]
    assert [event["event"] for event in node.events()][-1] == "stopped"


def test_an_interrupt_stops_the_node_in_order_too(tmp_path: Path) -> None:
    with running(tmp_path, dummies(tmp_path)) as node:
        node.await_(lambda: len(node.event_log()) == 4)

        assert node.end(signal.SIGINT) == 0
    assert [name for word, name, _ in node.event_log() if word == "stopped"][-1] == "mirror"


def test_a_second_interrupt_does_not_wait_for_the_drain(tmp_path: Path) -> None:
    with running(tmp_path, dummies(tmp_path, stop_s=60), shutdown_timeout=120) as node:
        node.await_(lambda: len(node.event_log()) == 4)
        node.handle.send_signal(signal.SIGINT)
        node.await_(lambda: node.said("stopping", "gateway"))

        assert node.end(signal.SIGINT) == 0
    assert not [word for word, _, _ in node.event_log() if word == "stopped"]


def test_a_process_that_does_not_stop_is_killed_when_its_time_is_over(tmp_path: Path) -> None:
    script = "trap '' TERM; echo deaf; while :; do sleep 1; done"
    stubborn = Program(name="gateway", command=("/bin/sh", "-c", script), priority=9)
    with running(tmp_path, [stubborn], shutdown_timeout=0) as node:
        node.await_(lambda: "deaf\n" in node.output())

        assert node.end(signal.SIGTERM) == 0
    assert node.events()[-2]["why"] == "terminated by SIGKILL"


def test_a_process_that_cannot_be_kept_alive_ends_the_node_with_one_line(tmp_path: Path) -> None:
    broken = Program(name="gateway", command=("/bin/sh", "-c", "echo broken; exit 3"), priority=30)

    ended = tried(tmp_path, [*dummies(tmp_path)[:2], broken])

    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"corvo: gateway ended {DEATHS_MAX + 1} times") and "exit status 3" in line
    assert ended.stdout.count("broken\n") == DEATHS_MAX + 1
    assert '"stopped"' in ended.stdout  # the others were stopped in order


def test_a_command_that_does_not_exist_ends_the_node_too(tmp_path: Path) -> None:
    ended = tried(tmp_path, [Program(name="gateway", command=("/no/such/program",), priority=30)])

    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert "gateway cannot be started" in line and "/no/such/program" in line


# Writes one heartbeat and then no more, as a process does whose loop hangs.
_HANGING = """
import signal, sys
from pathlib import Path
from corvo.runtime.heartbeat import ProcessHeartbeat
ProcessHeartbeat(Path("run"), "shard-0", 3.0).beat()
print("hangs", flush=True)
while True:
    signal.pause()
"""


def test_a_process_that_hangs_is_killed_and_the_log_says_why(tmp_path: Path) -> None:
    (tmp_path / "hanging.py").write_text(_HANGING)
    hanging = Program(name="shard-0", command=(sys.executable, str(tmp_path / "hanging.py")), priority=20)
    with running(tmp_path, [hanging], hang_timeout=3) as node:
        node.await_(lambda: node.output().count("hangs\n") >= 2)

        events = [event for event in node.events() if event["event"].startswith("process")][:4]
        assert [event["event"] for event in events] == [
            "process started",
            "process hangs: killing it",
            "process exited",
            "process restarted",
        ]
        assert (events[1]["name"], events[1]["level"]) == ("shard-0", "warning")
        assert events[1]["silent_s"] >= 3
        assert events[2]["why"] == "terminated by SIGKILL"
        incident = read_record(tmp_path / "data/run").incidents[0]
        assert incident.process == "shard-0"
        assert re.fullmatch(r"no heartbeat for \d+ s, killed", incident.reason)


def test_without_a_limit_a_process_may_be_silent(tmp_path: Path) -> None:
    (tmp_path / "hanging.py").write_text(_HANGING)
    hanging = Program(name="shard-0", command=(sys.executable, str(tmp_path / "hanging.py")), priority=20)
    with running(tmp_path, [hanging, *dummies(tmp_path)[:1]], hang_timeout=0) as node:
        node.await_(lambda: "hangs\n" in node.output() and node.said("up", "mirror"))
        # A death of another process makes the supervisor look around.
        os.kill(node.said("up", "mirror")[0], signal.SIGKILL)
        node.await_(lambda: len(node.said("up", "mirror")) == 2)

        assert not [event for event in node.events() if "hangs" in event["event"]]


def test_heartbeats_of_an_earlier_run_are_nobodys(tmp_path: Path) -> None:
    (tmp_path / "data/run").mkdir(parents=True)
    ProcessHeartbeat(tmp_path / "data/run", "shard-0", 3.0).beat()
    with running(tmp_path, dummies(tmp_path), hang_timeout=3) as node:
        node.await_(lambda: len(node.event_log()) == 4)

        assert read_heartbeats(tmp_path / "data/run") == {}


def test_an_idle_supervisor_uses_no_processor(tmp_path: Path) -> None:
    def ticks() -> int:
        fields = Path(f"/proc/{node.handle.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    def switches() -> int:
        status = Path(f"/proc/{node.handle.pid}/status").read_text()
        return int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])

    with running(tmp_path, dummies(tmp_path), hang_timeout=0) as node:
        # When the last process counts as started, nothing is left to wait for but signals.
        log = tmp_path / "data/run/supervisord.log"
        node.await_(lambda: log.exists() and log.read_text().count("entered RUNNING state") == 4)
        before, woken = ticks(), switches()
        time.sleep(2)  # a span on purpose: this test measures what happens in it
        assert ticks() - before == 0
        assert switches() - woken == 0
