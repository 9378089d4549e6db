"""A library whose insides we touch has one version in `pyproject.toml`: an update is a choice, with its tests."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.tidy.house import ROOT

# Library → the module that touches its insides, and what it names there.
TOUCHED = {
    "granian": ("gateway/http/servers/granian.py", "_init_shared_socket"),
    "h11": ("gateway/http/hypercorn_connection.py", "connection._receive_buffer"),
    "h2": ("gateway/http/http2.py", "incoming_buffer._data"),
    "hpack": ("gateway/http/http2.py", "decoder.max_header_list_size"),
    "httptools": ("gateway/http/fast_path.py", "HttpRequestParser"),  # what it accepts decides what we serve
    "hypercorn": ("gateway/http/hypercorn_connection.py", "hypercorn.asyncio.run.TCPServer = "),
    "supervisor": ("corvo/cli/supervise/supervisor.py", "from supervisor.options import ProcessConfig, ServerOptions"),
    "websockets": ("gateway/http/websocket.py", "Frame.parse"),
}
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*(.*)")
_PINNED = re.compile(r"==\d+(\.\d+)*")


def requirements(project: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The name and the versions of each, of the extras too."""
    extras = project.get("optional-dependencies", {}).values()
    for text in [*project["dependencies"], *(text for extra in extras for text in extra)]:
        match = _REQUIREMENT.fullmatch(text)
        assert match is not None, text
        yield match[1].lower(), match[2]


def not_pinned(project: dict[str, Any]) -> list[str]:
    found = list(requirements(project))
    missing = TOUCHED.keys() - {name for name, _ in found}
    loose = {name for name, versions in found if name in TOUCHED and not _PINNED.fullmatch(versions)}
    return [
        f"{name}: {TOUCHED[name][0]} touches its insides; give it one version in pyproject.toml, with =="
        for name in sorted(missing | loose)
    ]


def _project() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return project


def test_a_library_whose_insides_we_touch_has_one_version() -> None:
    assert not_pinned(_project()) == []


@pytest.mark.parametrize("library", TOUCHED)
def test_its_insides_are_still_touched(library: str) -> None:
    path, name = TOUCHED[library]
    assert name in (ROOT / path).read_text(), f"{path} no longer has {name}: change or remove the row of {library}"


@pytest.mark.parametrize("library", TOUCHED)
@pytest.mark.parametrize("versions", [">=1.0", "", "==1.*", "==1.0,!=1.1", "~=1.0", None])
def test_a_breach_is_caught(library: str, versions: str | None) -> None:
    pins = {name: f"{name}==1.0" for name in TOUCHED}
    good = [pins[name] for name in TOUCHED if name != library]
    breach = [] if versions is None else [library + versions]

    assert not_pinned({"dependencies": list(pins.values())}) == []
    assert [line.split(":")[0] for line in not_pinned({"dependencies": good + breach})] == [library]
    if versions is not None:
        extra = {"dependencies": list(pins.values()), "optional-dependencies": {"more": breach}}
        assert [line.split(":")[0] for line in not_pinned(extra)] == [library]
