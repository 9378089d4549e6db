"""The Dockerfile fits the project. Docker itself is not needed: what can go wrong by a rename is seen in the text."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from corvo.runtime.certificate import load_certificate
from docs.generate import PAGE_ROUTES
from tests.client.playback import playing
from tests.k8s.test_manifests import container, pod, variables
from tests.support.authority import Authority

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "Dockerfile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def instruction(name: str) -> str:
    (only,) = re.findall(rf"^{name} (.+)$", TEXT, re.MULTILINE)
    return str(only)


def copied() -> set[str]:
    words = [word for line in re.findall(r"^COPY (?!--from)(.+)$", TEXT, re.MULTILINE) for word in line.split()[:-1]]
    return set(words)


def test_it_starts_a_server_on_the_volume() -> None:
    assert json.loads(instruction("ENTRYPOINT")) == [*PROJECT["project"]["scripts"]]
    assert json.loads(instruction("CMD")) == container()["args"]
    assert instruction("VOLUME") == "/data"
    assert f"CORVO_BIND={variables()['CORVO_BIND']}\n" in TEXT


def test_its_ports_are_those_of_the_pod() -> None:
    http, raft = instruction("EXPOSE").split()
    first, last = map(int, raft.split("-"))

    assert {int(http), *range(first, last + 1)} == {port["containerPort"] for port in container()["ports"]}


def test_it_runs_as_the_user_of_the_pod() -> None:
    user = pod()["securityContext"]

    assert instruction("USER") == f"{user['runAsUser']}:{user['runAsGroup']}"


def test_packages_come_from_the_lock_by_hash() -> None:
    assert "--require-hashes" in TEXT
    assert "-r requirements-image.lock" in TEXT
    assert TEXT.count("pip install") == TEXT.count("--require-hashes") + TEXT.count("--no-index")


def test_what_is_taken_out_again_is_only_what_built_it() -> None:
    (removed,) = re.findall(r"pip uninstall --yes ([a-z ]+?) \\$", TEXT, re.MULTILINE)
    built_with = {re.split(r"[>=]", need)[0] for need in PROJECT["build-system"]["requires"]}

    assert set(removed.split()) == built_with


def test_what_is_copied_exists_and_is_not_ignored() -> None:
    kept = {
        line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")
    }

    assert copied() == kept
    assert all((ROOT / name.removeprefix("./")).exists() for name in copied())
    assert {"corvo", "shards", "gateway"} <= copied()


def test_the_health_check_asks_a_page_that_is_served() -> None:
    (path,) = re.findall(r"://127\.0\.0\.1:8080(/\w+)", TEXT)

    assert path in PAGE_ROUTES


@pytest.mark.parametrize("is_secure", [False, True])
def test_the_health_check_asks_as_the_server_speaks(is_secure: bool, tmp_path: Path) -> None:
    """With the certificate named by its variable, as all settings of a container are."""
    (words,) = re.findall(r"^HEALTHCHECK .* CMD (\[.*\])$", TEXT.replace("\\\n", ""), re.MULTILINE)
    pair = Authority(tmp_path).sign()
    environment = {**os.environ, "CORVO_TLS_CERT": pair.cert} if is_secure else dict(os.environ)
    with playing(load_certificate(*pair) if is_secure else None) as playback:
        command = [word.replace("8080", playback.url.rpartition(":")[2]) for word in json.loads(words)[1:]]
        done = subprocess.run(
            [sys.executable, *command], env=environment, capture_output=True, text=True, timeout=30.0, check=False
        )

    assert [asked.path for asked in playback.asked] == ["/healthz"]
    assert done.returncode == 1 and "HTTP Error 404" in done.stderr, "an answer of no is heard, too"
