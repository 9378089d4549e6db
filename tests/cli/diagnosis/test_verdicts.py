"""What a measurement means: each bound of `corvo doctor`, from both sides."""

from pathlib import Path
from typing import Any

import pytest

from corvo.cli.diagnosis import machine, verdicts
from corvo.cli.diagnosis.verdicts import Directory, Free
from corvo.queries.cluster import MirrorView
from tests.cli.answers import a_cluster, a_replica, a_shard, a_status

GIB = 1 << 30


def a_directory(**values: Any) -> Directory:
    there = {"path": "/d", "exists": True, "is_directory": True, "mode": 0o700, "is_ours": True, "is_writable": True}
    return Directory(**{**there, "parent": "/", **values})


@pytest.mark.parametrize(
    ("check", "verdict"),
    [
        (verdicts.directory(a_directory()), "ok"),
        (verdicts.directory(a_directory(mode=0o750)), "ok"),
        (verdicts.directory(a_directory(mode=0o755)), "warn"),
        (verdicts.directory(a_directory(mode=0o770)), "warn"),
        (verdicts.directory(a_directory(is_ours=False)), "warn"),
        (verdicts.directory(a_directory(is_writable=False)), "fail"),
        (verdicts.directory(a_directory(is_directory=False)), "fail"),
        (verdicts.directory(a_directory(exists=False)), "ok"),
        (verdicts.directory(a_directory(exists=False, is_writable=False)), "fail"),
        (verdicts.space(Free(GIB - 1, 100 * GIB)), "fail"),
        (verdicts.space(Free(5 * GIB, 100 * GIB)), "warn"),
        (verdicts.space(Free(5 * GIB, 20 * GIB)), "ok"),
        (verdicts.space(Free(20 * GIB, 1000 * GIB)), "ok"),
        (verdicts.filesystem("ext4"), "ok"),
        (verdicts.filesystem("tmpfs"), "warn"),
        (verdicts.filesystem("nfs4"), "fail"),
        (verdicts.sync_time([1.0, 2.0, 500.0]), "ok"),
        (verdicts.sync_time([11.0, 12.0, 13.0]), "warn"),
        (verdicts.sync_time([101.0]), "fail"),
        (verdicts.sync_time([0.001] * 9), "warn"),
        (verdicts.open_files(1_023, 4_096), "fail"),
        (verdicts.open_files(1_024, 4_096), "warn"),
        (verdicts.open_files(65_536, 65_536), "ok"),
        (verdicts.sqlite((3, 33, 0)), "fail"),
        (verdicts.sqlite((3, 40, 1)), "ok"),
        (verdicts.clock_discipline(True), "ok"),
        (verdicts.clock_discipline(None), "ok"),
        (verdicts.clock_discipline(False), "warn"),
        (verdicts.clock_difference(-1.5), "ok"),
        (verdicts.clock_difference(-3.0), "warn"),
        (verdicts.clock_difference(3600.0), "fail"),
        (verdicts.versions("1", "1"), "ok"),
        (verdicts.versions("1", "2"), "warn"),
        (verdicts.health(a_status()), "ok"),
        (verdicts.health(a_status(status="degraded", reasons=["node-2 is away"])), "warn"),
        (verdicts.health(a_status(status="unavailable", reasons=["shard 1"])), "fail"),
        (verdicts.leaders(a_status()), "ok"),
        (verdicts.leaders(a_status(groups=[a_shard(), a_shard(1, leader_id="")])), "fail"),
        (verdicts.leaders(a_cluster(a_replica(lag=20_000))), "warn"),
        (verdicts.durability(a_status()), "ok"),
        (verdicts.durability(a_status(fsync=False)), "warn"),
        (verdicts.lists(a_status()), "ok"),
        (verdicts.lists(a_status(mirror=MirrorView(3_000.0, "g", 1))), "warn"),
        (verdicts.lists(a_status(mirror=MirrorView(60_000.0, "g", 1))), "fail"),
        (verdicts.lists(a_status(mirror=None)), "fail"),
        (verdicts.restarts(a_status()), "ok"),
        (verdicts.restarts(a_status(restarts={"shard-0": 2})), "warn"),
    ],
)
def test_a_measurement_has_a_verdict_and_a_remedy_unless_it_is_good(check: verdicts.Check, verdict: str) -> None:
    assert check.verdict == verdict
    assert check.found and bool(check.remedy) is (verdict != "ok")


@pytest.mark.parametrize(
    ("place", "kind"), [("/", "ext4"), ("/data/corvo", "xfs"), ("/data two/x", "nfs4"), ("/database", "ext4")]
)
def test_the_file_system_is_that_of_the_nearest_mount(place: str, kind: str) -> None:
    mounts = "/dev/a / ext4 rw 0 0\ntmpfs /data tmpfs rw 0 0\n/dev/b /data xfs rw 0 0\nn:/x /data\\040two nfs4 rw 0 0\n"

    assert machine.filesystem_of(Path(place), mounts) == kind


def test_a_missing_directory_is_not_made(tmp_path: Path) -> None:
    checks = {check.name: check for check in machine.directory_checks(tmp_path / "a" / "b")}

    assert checks["data directory"].verdict == "ok" and "made by the first start" in checks["data directory"].found
    assert {"disk", "file system", "fsync"} <= set(checks)
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_place_of_the_directory_is_said(tmp_path: Path) -> None:
    (tmp_path / "data").touch()

    first, *rest = machine.directory_checks(tmp_path / "data")

    assert first.verdict == "fail" and "no directory" in first.found
    assert "fsync" not in {check.name for check in rest}


def test_the_machine_has_a_check_of_each_kind() -> None:
    assert [check.name for check in machine.machine_checks()] == ["open files", "SQLite", "clock"]
