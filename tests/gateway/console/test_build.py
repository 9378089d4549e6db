"""The build of the console: what it is made from, and what it says where it cannot be made."""

import json
import subprocess
from pathlib import Path

import pytest

from corvo.model.lifecycle import STATE_NAMES
from gateway.console import build
from gateway.console.assets import BUILT, Console

FIRST_LOAD_MAX = 250_000
needs_build = pytest.mark.skipif(not Console().is_built, reason="the console is not built here (make setup)")


def test_the_console_knows_the_tables_of_the_server() -> None:
    derived = build.derive()

    facts = json.loads(derived["facts.ts"].decode().removeprefix("export default ").removesuffix(" as const;\n"))
    assert facts["states"] == list(STATE_NAMES)
    assert facts["access"]["pause_queue"] == "queues:pause"
    assert {"verb": "claim", "from": ["pending"], "to": "active", "by": "fetch", "told": ["started"]} in facts["rules"]
    assert json.loads(derived["openapi.json"])["openapi"] == "3.1.0"


def test_another_source_or_another_api_is_another_build() -> None:
    files, derived = build.sources(), build.derive()
    one = build.digest(files, derived)

    assert build.digest(files, derived) == one
    assert build.digest(files[1:], derived) != one
    assert build.digest(files, derived | {"openapi.json": b"{}"}) != one


def test_the_lock_names_no_registry_and_has_a_hash_for_each_package() -> None:
    lock = json.loads((build.WEB / "package-lock.json").read_bytes())

    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert len(packages) > 20
    assert [name for name, entry in packages.items() if "resolved" in entry] == []
    assert [name for name, entry in packages.items() if not entry.get("integrity")] == []


def test_an_old_node_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("node", "npm"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\necho v18.19.0\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(build, "node_of_pypi", lambda: build.Toolchain("of PyPI", ("npm",)))

    assert build.major_of(str(tmp_path / "node")) == 18
    assert build.find_node().node == "of PyPI"
    assert build.major_of(str(tmp_path / "absent")) == 0


def test_without_a_registry_a_line_says_so_and_setup_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def refuse(*_: object) -> None:
        raise build.NoRegistry("the registry cannot be reached")

    monkeypatch.setattr(build, "BUILT", tmp_path / "built")
    monkeypatch.setattr(build, "build", refuse)
    monkeypatch.setattr("sys.argv", ["build"])
    assert build.main() == 0
    assert "was not built, and the server will run without it" in capsys.readouterr().out

    monkeypatch.setattr("sys.argv", ["build", "--required"])
    assert build.main() == 1


def test_a_build_that_fails_leaves_the_one_in_use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    built = tmp_path / "built"
    built.mkdir()
    (built / "index.html").write_text("in use")
    failing = build.Toolchain("/bin/false", ("/bin/false",))
    monkeypatch.setattr(build, "BUILT", built)
    monkeypatch.setattr(build, "find_node", lambda: failing)
    monkeypatch.setattr(build, "install", lambda node: None)
    monkeypatch.setattr(build, "write_derived", lambda derived: None)

    with pytest.raises(build.Broken):
        build.build({}, "x")
    assert (built / "index.html").read_text() == "in use"


@needs_build
def test_the_first_load_is_small() -> None:
    """What a browser must have before it shows a page, compressed as it is sent."""
    loaded = [BUILT / "index.html", *BUILT.glob("*.js.br"), *BUILT.glob("assets/*.br")]

    assert len(loaded) >= 3
    assert sum(path.stat().st_size for path in loaded) < FIRST_LOAD_MAX


@needs_build
def test_nothing_is_loaded_from_elsewhere_and_nothing_is_inline() -> None:
    index = (BUILT / "index.html").read_text()

    assert "://" not in index and "//" not in index.replace("<!doctype", "")
    assert "<style" not in index and "style=" not in index
    assert all(' src="./' in line for line in index.splitlines() if "<script" in line)


@needs_build
def test_the_logic_of_the_pages() -> None:
    """Vitest, in the folder of the sources: it needs no browser."""
    node = build.find_node()
    if build.stamp_of(build.MODULES) == "":
        pytest.skip("the packages for its tests are not installed")
    done = subprocess.run(
        [*node.npm, "test", "--silent"], cwd=build.WEB, capture_output=True, text=True, timeout=120.0, check=False
    )
    assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-2_000:]
