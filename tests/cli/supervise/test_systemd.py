"""What `corvo server` tells the service manager that started it, and the unit that `corvo systemd-unit` prints."""

import configparser
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.node import Node
from corvo.cli.main import run
from corvo.cli.supervise.systemd import BadProgram, notify, take_address, unit
from corvo.runtime.settings import Settings

PROGRAM = "/opt/corvo/bin/corvo"
ANALYZE = shutil.which("systemd-analyze")
EXPOSURE_MAX = 25  # of 100; it has 17


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    """The socket of a service manager."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(40.0)
        yield manager


def sections(text: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their capitals
    parser.read_string(text)
    return parser


# Notifications


def test_a_word_reaches_the_manager(manager: socket.socket) -> None:
    notify(manager.getsockname(), "READY=1", "STATUS=running")

    assert manager.recv(4096) == b"READY=1\nSTATUS=running"


def test_a_manager_in_the_abstract_namespace_is_reached() -> None:
    name = f"corvo-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{name}")
        manager.settimeout(10.0)

        notify(f"@{name}", "READY=1")

        assert manager.recv(4096) == b"READY=1"


def test_no_manager_and_a_lost_one_are_no_trouble(tmp_path: Path) -> None:
    notify("", "READY=1")
    notify(str(tmp_path / "nobody"), "READY=1")


def test_the_address_is_for_us_and_not_for_our_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", "/run/systemd/notify")

    assert take_address() == "/run/systemd/notify"

    assert "NOTIFY_SOCKET" not in os.environ
    assert take_address() == ""


@pytest.mark.system
def test_a_server_says_that_it_is_up_and_that_it_stops(
    manager: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", manager.getsockname())
    node = Node.launch(tmp_path / "data", "--shards", "1")
    try:
        assert manager.recv(4096).splitlines()[0] == b"READY=1"
        node.await_healthy(40.0)
        for process in node.processes():
            environment = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
            assert not [variable for variable in environment if variable.startswith(b"NOTIFY_SOCKET=")]
    finally:
        code = node.stop()

    assert code == 0
    assert manager.recv(4096).splitlines()[0] == b"STOPPING=1"


@pytest.mark.system
def test_a_server_that_cannot_start_never_says_that_it_is_up(
    manager: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", manager.getsockname())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        command = [
            sys.executable,
            "-m",
            "corvo.cli.main",
            "server",
            "--data-dir",
            str(tmp_path / "d"),
            "--bind",
            address,
        ]
        assert subprocess.run(command, capture_output=True, check=False, timeout=60.0).returncode == 2

    manager.setblocking(False)
    with pytest.raises(BlockingIOError):
        manager.recv(4096)


# The unit


def test_the_unit_starts_the_program_that_printed_it() -> None:
    service = sections(unit(PROGRAM, "jobs"))["Service"]

    assert service["ExecStart"] == f"{PROGRAM} server"
    assert (service["User"], service["Group"]) == ("jobs", "jobs")
    assert re.findall(r"@[A-Z_]+@", unit(PROGRAM, "jobs")) == []


def test_it_fits_what_the_server_does() -> None:
    service = sections(unit(PROGRAM, "corvo"))["Service"]

    assert service["Type"] == "notify"
    assert service["KillMode"] == "mixed", "the supervisor stops the others, in order"
    assert service["OOMPolicy"] == "continue", "a process that is killed is restarted by the supervisor"
    assert float(service["TimeoutStopSec"]) > 3 * Settings().shutdown_timeout, "three drains, one after another"
    assert service["StateDirectory"] == "corvo"
    assert service["Environment"] == "CORVO_DATA_DIR=/var/lib/corvo"


@pytest.mark.parametrize(
    ("program", "written"),
    [
        ("/opt/my jobs/bin/corvo", '"/opt/my jobs/bin/corvo" server'),
        ("/opt/50%/bin/corvo", "/opt/50%%/bin/corvo server"),
        ("/opt/a$b/bin/corvo", "/opt/a$$b/bin/corvo server"),
    ],
)
def test_a_path_with_signs_that_mean_something_is_quoted(program: str, written: str) -> None:
    assert sections(unit(program, "corvo"))["Service"]["ExecStart"] == written


@pytest.mark.parametrize("program", ["corvo", "bin/corvo", '/opt/"/corvo', "/opt/a\nb", "/opt/a\\b", ""])
def test_a_path_that_no_unit_can_hold_is_refused(program: str) -> None:
    with pytest.raises(BadProgram):
        unit(program, "corvo")


@pytest.mark.parametrize(
    ("program", "mode"), [(PROGRAM, "yes"), ("/home/ada/corvo/.venv/bin/corvo", "read-only"), ("/root/c", "read-only")]
)
def test_a_program_in_a_home_can_be_read_there(program: str, mode: str) -> None:
    assert sections(unit(program, "corvo"))["Service"]["ProtectHome"] == mode


def test_the_command_prints_a_unit_for_this_installation(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["systemd-unit", "--user", "jobs"]) == 0

    service = sections(capsys.readouterr().out)["Service"]
    assert service["ExecStart"] == f"{Path(sys.executable).parent / 'corvo'} server"
    assert service["User"] == "jobs"


@pytest.mark.parametrize(("option", "value"), [("--program", "corvo"), ("--user", "ada lovelace"), ("--user", "")])
def test_what_no_unit_can_hold_is_one_line(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["systemd-unit", option, value]) == 2

    assert capsys.readouterr().err.startswith("corvo: ")


@pytest.mark.skipif(ANALYZE is None, reason="needs systemd-analyze")
def test_systemd_accepts_it(tmp_path: Path) -> None:
    program = tmp_path / "corvo"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    path = tmp_path / "corvo.service"
    path.write_text(unit(str(program), "root"))

    checked = subprocess.run([str(ANALYZE), "verify", str(path)], capture_output=True, text=True, check=False)

    about_it = [line for line in checked.stderr.splitlines() if "corvo" in line]
    assert (checked.returncode, about_it) == (0, []), checked.stderr


@pytest.mark.skipif(ANALYZE is None, reason="needs systemd-analyze")
def test_systemd_finds_it_well_confined(tmp_path: Path) -> None:
    path = tmp_path / "corvo.service"
    path.write_text(unit(PROGRAM, "corvo"))
    command = [str(ANALYZE), "security", "--offline=true", f"--threshold={EXPOSURE_MAX}", "--no-pager", str(path)]

    checked = subprocess.run(command, capture_output=True, text=True, check=False)

    if "unrecognized option" in checked.stderr or "Unknown option" in checked.stderr:
        pytest.skip("this systemd cannot look at files")
    assert checked.returncode == 0, checked.stdout + checked.stderr
