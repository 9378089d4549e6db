"""`corvo node reset`: what it removes, what it leaves behind, and when it refuses."""

import io
import sys
import time
from pathlib import Path

import pytest

from corvo.cli.main import run
from corvo.cli.supervise import node_reset
from corvo.runtime.process import RUN, Identity, take_lock, write_identity
from tests.cli.answers import Terminal

CLUSTER = Identity("c", "node-2", 4, founders=("node-1", "node-2", "node-3"))
REST = ["01.made", "01.reset", "02", "02.made"]


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A stopped node with the shards 1 and 2, of which 1 was receiving a state."""
    write_identity(tmp_path, CLUSTER)
    (tmp_path / RUN).mkdir()
    shards = tmp_path / "shards"
    for name in ("01", "01.incoming", "01.incoming.new", "01.new", "01.old", "02"):
        (shards / name).mkdir(parents=True)
        (shards / name / "CURRENT").write_text("data")
    for name in ("01.made", "01.install", "02.made"):
        (shards / name).touch()
    return tmp_path


def names(data_dir: Path) -> list[str]:
    return sorted(path.name for path in (data_dir / "shards").iterdir())


def reset(data_dir: Path, *options: str, shard: int = 1) -> int:
    return run(["node", "reset", "--shard", str(shard), "--data-dir", str(data_dir), *options])


def test_one_replica_is_removed_and_the_next_start_is_told(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = int(time.time())

    assert reset(data_dir, "--yes") == 0

    assert names(data_dir) == REST
    assert before <= int((data_dir / "shards" / "01.reset").read_text()) <= time.time()
    assert "start the node" in capsys.readouterr().out


def test_a_reset_can_be_repeated(data_dir: Path) -> None:
    assert reset(data_dir, "--yes") == 0
    assert reset(data_dir, "--yes") == 0

    assert names(data_dir) == REST


def test_a_replica_that_never_started_can_be_reset(data_dir: Path) -> None:
    assert reset(data_dir, "--yes", shard=3) == 0

    assert "03.reset" in names(data_dir)


def test_without_a_terminal_it_needs_yes(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = names(data_dir)
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))

    assert reset(data_dir) == 2

    assert names(data_dir) == before
    (line,) = capsys.readouterr().err.splitlines()
    assert "no terminal" in line and "--yes" in line


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("", 1)])
def test_without_yes_it_asks(data_dir: Path, monkeypatch: pytest.MonkeyPatch, answer: str, code: int) -> None:
    before = names(data_dir)
    monkeypatch.setattr(sys, "stdin", Terminal(answer))

    assert reset(data_dir) == code

    assert names(data_dir) == (REST if code == 0 else before)


@pytest.mark.parametrize("lock", ["lock", f"{RUN}/shard-1.lock"])
def test_a_node_that_runs_is_left_alone(data_dir: Path, lock: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = names(data_dir)

    with take_lock(data_dir / lock):
        assert reset(data_dir, "--yes") == 2

    (line,) = capsys.readouterr().err.splitlines()
    assert "stop it first" in line and names(data_dir) == before
    assert reset(data_dir, "--yes") == 0


def test_a_directory_of_no_node_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert reset(tmp_path, "--yes") == 2
    assert reset(tmp_path / "missing", "--yes") == 2

    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and all("has no identity.json" in line for line in lines)
    assert list(tmp_path.iterdir()) == []


def test_an_identity_that_cannot_be_read_is_refused(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (data_dir / "identity.json").write_text("{")

    assert reset(data_dir, "--yes") == 2

    (line,) = capsys.readouterr().err.splitlines()
    assert "identity.json cannot be read" in line


def test_a_shard_that_does_not_exist_is_refused(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert reset(data_dir, "--yes", shard=4) == 2

    (line,) = capsys.readouterr().err.splitlines()
    assert "no shard 4" in line and "0 to 3" in line


@pytest.mark.parametrize(
    ("founders", "nodes", "code"),
    [
        (None, {}, 2),
        (("node-2",), {}, 2),
        (None, {"node-2": "here:9400"}, 2),
        (None, {"node-2": "here:9400", "node-1": "there:9400"}, 0),
        (("node-1", "node-2"), {}, 0),
        ((), {"node-1": "there:9400"}, 0),
    ],
)
def test_the_only_node_of_a_cluster_is_sent_to_its_backup(
    data_dir: Path,
    founders: tuple[str, ...] | None,
    nodes: dict[str, str],
    code: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_identity(data_dir, Identity("c", "node-2", 4, founders=founders, nodes=nodes))

    assert reset(data_dir, "--yes") == code

    assert ("restore the data directory from a backup" in capsys.readouterr().err) == (code == 2)
    assert ("01" in names(data_dir)) == (code == 2)


def test_the_mark_is_on_disk_before_anything_is_removed(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def power_cut(directory: Path, old: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(node_reset, "_move_away", power_cut)
    with pytest.raises(KeyboardInterrupt):
        node_reset.reset(str(data_dir), 1, lambda question: None)

    assert {"01", "01.reset"} <= set(names(data_dir))
    assert (data_dir / "shards" / "01" / "CURRENT").exists()


def test_it_explains_itself_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["node", "reset", "--help"]) == 0

    shown = capsys.readouterr().out
    assert "Example" in shown and "  corvo node reset" in shown
