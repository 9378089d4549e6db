"""Which processes run, and the configuration that says so, read back by supervisord's own parser."""

import sys
from pathlib import Path
from typing import Any

import pytest

from corvo.cli.supervise.programs import GATEWAYS, NUMBER, Program, Unwritable, programs, render
from corvo.cli.supervise.supervisor import NodeOptions
from corvo.runtime.settings import Settings


def parsed(tmp_path: Path, text: str) -> dict[str, Any]:
    """Processes by name, as supervisord understands the text."""
    (tmp_path / "run").mkdir(exist_ok=True)
    file = tmp_path / "run" / "supervisord.conf"
    file.write_text(text)
    options = NodeOptions(file.parent)
    options.realize(["--configuration", str(file)])
    options.poller.close()
    return {process.name: process for group in options.process_group_configs for process in group.process_configs}


def test_a_node_is_a_mirror_its_shards_and_a_gateway() -> None:
    parts = programs(Settings(shards=3))

    assert [(part.name, part.count) for part in parts] == [("mirror", 1), ("shards", 3), ("gateways", 1)]
    assert parts[1].command == (sys.executable, "-m", "shards", "--run-dir", "run", "--shard", NUMBER)


def test_the_gateway_stops_before_the_shards_and_they_before_the_mirror() -> None:
    priority = {part.name: part.priority for part in programs(Settings())}

    assert priority["gateways"] > priority["shards"] > priority["mirror"]


@pytest.mark.parametrize("shards", [1, 4])
def test_every_shard_has_its_number(tmp_path: Path, shards: int) -> None:
    processes = parsed(tmp_path, render(programs(Settings(shards=shards)), str(tmp_path), 20))

    assert list(processes) == ["mirror", *(f"shard-{number}" for number in range(shards)), "gateway-0"]
    assert processes["shard-0"].command.endswith("-m shards --run-dir run --shard 0")
    assert all(process.directory == str(tmp_path) for process in processes.values())


def test_every_gateway_has_its_number_and_all_stop_together(tmp_path: Path) -> None:
    parts = programs(Settings(shards=1, gateways=3))
    processes = parsed(tmp_path, render(parts, str(tmp_path), 20))

    assert [name for name in processes if "gateway" in name] == ["gateway-0", "gateway-1", "gateway-2"]
    assert processes["gateway-2"].command.endswith("-m gateway --run-dir run --gateway 2 --listener stdin")
    assert [part.priority for part in parts if part.name == GATEWAYS] == [max(part.priority for part in parts)]


def test_a_process_is_killed_only_after_the_drain_is_over(tmp_path: Path) -> None:
    process = parsed(tmp_path, render(programs(Settings()), str(tmp_path), 7.5))["gateway-0"]

    assert process.stopwaitsecs == 13
    assert process.stopasgroup and process.killasgroup


def test_signs_that_supervisord_would_expand_stay_what_they_are(tmp_path: Path) -> None:
    directory = tmp_path / "100% %(here)s"
    directory.mkdir()
    part = Program(name="odd", command=("/bin/echo", "50% off", "it's", "%(x)s"), priority=1)

    process = parsed(directory, render([part], str(directory), 1))["odd"]

    assert process.directory == str(directory)
    assert process.command == """/bin/echo '50% off' 'it'"'"'s' '%(x)s'"""


@pytest.mark.parametrize("path", ["/data ;x", "/data #x", "/da\nta"])
def test_a_path_that_supervisord_cannot_hold_is_refused(path: str) -> None:
    with pytest.raises(Unwritable, match="supervisord"):
        render(programs(Settings()), path, 1)


def test_nobody_can_give_orders_over_a_socket() -> None:
    assert "http_server" not in render(programs(Settings()), "/data", 1)
