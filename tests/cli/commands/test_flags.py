"""Settings from flags, environment and file."""

from pathlib import Path

import pytest

from corvo.cli.commands.flags import load_settings
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
