"""PyPI's `corvo-client` and `corvo-worker` 0.3.0, unmodified, against this server.

They are the original project's. They are installed in a folder of their own, and only their process sees it.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.node import Node

pytestmark = pytest.mark.system
DRIVER = Path(__file__).with_name("driver.py")
CHECKS = re.findall(r"^@check\ndef (\w+)", DRIVER.read_text(), re.MULTILINE)
PACKAGES = ("corvo-client==0.3.0", "corvo-worker==0.3.0")
INSTALL_S, RUN_S = 120.0, 120.0
_NO_NETWORK = re.compile(
    "NewConnectionError|NameResolutionError|ConnectTimeoutError|Could not find a version|ProxyError"
)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    for words in (("--no-deps", *PACKAGES), ("requests",)):
        done = subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--retries", "0", "--target", str(folder), *words],
            capture_output=True,
            text=True,
            timeout=INSTALL_S,
            check=False,
        )
        if done.returncode and _NO_NETWORK.search(done.stderr):
            pytest.skip(f"no package index can be reached for {' '.join(words)}")
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def outcomes(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str | None]:
    folder = tmp_path_factory.mktemp("compat")
    node = Node.start(folder / "data")
    try:
        done = subprocess.run(
            [sys.executable, str(DRIVER), node.url],
            env={**os.environ, "PYTHONPATH": str(packages)},
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=RUN_S,
            check=False,
        )
    finally:
        node.stop()
    assert done.returncode == 0, done.stderr
    return dict(json.loads(line) for line in done.stdout.splitlines())


@pytest.mark.parametrize("check", CHECKS)
def test_the_published_client_works(outcomes: dict[str, str | None], check: str) -> None:
    assert outcomes[check] is None, outcomes[check]


def test_all_checks_were_made(outcomes: dict[str, str | None]) -> None:
    assert list(outcomes) == CHECKS
