"""The guide to backing up, followed to the letter: stop, copy, restore elsewhere, start."""

import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from chaos.node import Node, wait_until
from tests.docs.pages import ROOT

pytestmark = pytest.mark.system

GUIDE = (ROOT / "docs" / "how-to" / "back-up-and-restore.md").read_text()


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="corvo-") as path:
        yield Path(path)


def test_a_restored_copy_has_every_job(folder: Path) -> None:
    (pack,) = re.findall(r"^ +(tar .*-czf.*)$", GUIDE, re.MULTILINE)
    (unpack,) = re.findall(r"`(tar -xzf [^`]+)`", GUIDE)
    old = Node.start(folder / "data", "--shards", "2", log=folder / "old.log")
    try:
        jobs = [{"queue": f"kept.{number}", "payload": {"number": number}} for number in range(8)]
        job_ids = httpx.post(f"{old.url}/api/v1/enqueue/batch", json={"jobs": jobs}).json()["job_ids"]
    finally:
        old.stop()

    subprocess.run(["bash", "-euc", pack], cwd=folder, check=True)
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    (folder / "corvo-backup.tar.gz").rename(elsewhere / "corvo-backup.tar.gz")
    subprocess.run(["bash", "-euc", unpack], cwd=elsewhere, check=True)
    assert not (elsewhere / "data" / "read.db").exists()
    new = Node.start(elsewhere / "data", "--shards", "2", log=folder / "new.log")

    try:
        wait_until(lambda: httpx.get(f"{new.url}/readyz").status_code == 200, "read.db to be rebuilt", 30.0)
        found = httpx.post(f"{new.url}/api/v1/jobs/search", json={"consistent": True, "order": "asc"}, timeout=20.0)
        assert sorted(job["id"] for job in found.json()["jobs"]) == sorted(job_ids)
        assert httpx.get(f"{new.url}/api/v1/jobs/{job_ids[0]}").json()["payload"] == {"number": 0}
    finally:
        new.stop()
