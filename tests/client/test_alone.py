"""The client stands alone: as `corvo_client` it is installed without a server, and loads nothing of one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SDK = Path(__file__).parents[2] / "sdk" / "python"
# What httpx brings, and httpx[cli] if it is there; rich and click are then imported by it, not by us.
WITH_HTTPX = {
    "anyio",
    "certifi",
    "click",
    "h11",
    "httpcore",
    "httpx",
    "idna",
    "pygments",
    "rich",
    "sniffio",
    "typing_extensions",
}
_LOADED = """
import json, sys
from corvo_client import *
import corvo_client.answers, corvo_client.bodies, corvo_client.calls, corvo_client.http, corvo_client.listening
import corvo_client.methods, corvo_client.trust, corvo_client.worker
print(json.dumps(sorted({name.split(".")[0] for name in sys.modules})))
"""


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", _LOADED],
        env={**os.environ, "PYTHONPATH": str(SDK)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def test_it_loads_nothing_of_the_server(loaded: set[str]) -> None:
    assert loaded & {"corvo", "shards", "gateway"} == set()
    assert "corvo_client" in loaded


def test_it_loads_two_packages_and_what_these_need(loaded: set[str]) -> None:
    others = {name for name in loaded if name not in sys.stdlib_module_names and not name.startswith(("_", "corvo"))}

    assert others - WITH_HTTPX == {"msgspec"}
