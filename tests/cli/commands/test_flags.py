"""Settings from flags, environment and file."""

import json
from pathlib import Path

import pytest

from corvo.cli.commands.flags import Flags, load_settings
from corvo.cli.main import run
from corvo.runtime.settings import BadSettings, names


def test_a_flag_wins_over_a_variable_and_a_variable_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "corvo.toml"
    file.write_text('shards = 2\nnode_id = "from-file"\nlog_level = "debug"\n')

    settings, origins = load_settings(
        {"shards": "8"}, str(file), {"CORVO_SHARDS": "6", "CORVO_NODE_ID": "from-environment"}
    )

    assert (settings.shards, settings.node_id, settings.log_level) == (8, "from-environment", "debug")
    assert [origins[name] for name in ("shards", "node_id", "log_level", "bind")] == [
        "flag",
        "environment",
        "file",
        "default",
    ]


def test_the_file_may_be_named_by_a_variable(tmp_path: Path) -> None:
    file = tmp_path / "corvo.toml"
    file.write_text("shards = 2\n")

    assert load_settings({}, None, {"CORVO_CONFIG": str(file)})[0].shards == 2


def test_a_file_that_cannot_be_read_is_a_fault_like_others(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match=r"missing\.toml cannot be read: No such file"):
        load_settings({}, str(tmp_path / "missing.toml"), {})


def test_every_setting_is_a_flag_of_server_and_of_config(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("server", "config"):
        assert run([command, "--help"]) == 0
        shown = capsys.readouterr().out
        assert all(f"--{name.replace('_', '-')} " in shown for name in (*names(), "config"))
        assert "CORVO_DATA_DIR" in shown


def test_a_switch_is_on_off_or_left_to_the_other_sources() -> None:
    assert load_settings({"bootstrap": True}, None, {})[0].bootstrap
    assert not load_settings({"bootstrap": False}, None, {"CORVO_BOOTSTRAP": "true"})[0].bootstrap
    assert load_settings({"bootstrap": None}, None, {"CORVO_BOOTSTRAP": "true"})[0].bootstrap


def test_shards_have_a_second_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "--raft-shards", "3"]) == 0
    assert ["shards", "3", "flag"] in [line.split() for line in capsys.readouterr().out.splitlines()]


def test_nodes_that_find_each_other_by_dns_are_named_by_their_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.getfqdn", lambda: "corvo-1.corvo-nodes.shop.svc")
    flags: Flags = {"discover": "dns", "cluster_secret_file": "secret"}

    named = load_settings(flags, None, {})[0]
    assert (named.node_id, named.discover_dns_name) == ("corvo-1", "corvo-nodes.shop.svc")
    told = load_settings({**flags, "discover_dns_name": "nodes", "node_id": "node-1"}, None, {})[0]
    assert (told.node_id, told.discover_dns_name) == ("node-1", "nodes")

    monkeypatch.setattr("socket.getfqdn", lambda: "laptop")
    with pytest.raises(BadSettings, match="'laptop', which has no domain"):
        load_settings(flags, None, {})
    assert load_settings({**flags, "discover_dns_name": "nodes"}, None, {})[0].node_id == "node-1"


def test_config_shows_each_value_and_its_origin(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORVO_SHARDS", "6")

    assert run(["config", "--fsync", "off"]) == 0

    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["shards", "6", "environment"] in rows
    assert ["fsync", "off", "flag"] in rows
    assert ["node_id", "node-1", "default"] in rows


def test_every_fault_has_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["server", "--shards", "999", "--fsync", "perhaps", "--node-id", "a b"]) == 2

    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3 and all(line.startswith("corvo: --") for line in lines)


def test_durable_is_fsync_on(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORVO_FSYNC", "off")

    assert run(["config", "--durable", "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["fsync"] == {"value": "on", "from": "flag"}
    assert run(["config", "--durable", "--fsync", "off"]) == 2
    assert "--durable and --fsync off exclude each other" in capsys.readouterr().err
