"""`python -m sdk.conformance [LANGUAGE …]`: every scenario for every library whose toolchain is here.

Writes the table of docs/reference/sdks.md with `--write`. Exit code 1 if a library differs, 2 for wrong usage.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from chaos.node import Node
from gateway.app import ENDPOINTS
from gateway.openapi import describe
from sdk.conformance.faults import FaultProxy
from sdk.conformance.harness import Harness, HarnessFailed
from sdk.conformance.languages import LANGUAGES, Language
from sdk.conformance.play import Differs, Play
from sdk.conformance.scenario import Scenario, scenarios

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "sdks.md"
BUILD_S = 600.0
MARKS = ("<!-- results: begin; written by python -m sdk.conformance --write -->", "<!-- results: end -->")


class Result(msgspec.Struct):
    scenario: str
    verdict: str  # `passed`, or a sentence


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("languages", nargs="*", metavar="LANGUAGE", help="[default: all whose toolchain is here]")
    parser.add_argument("--only", action="append", metavar="SCENARIO", help="may be given several times")
    parser.add_argument("--no-build", action="store_true", help="the libraries are built already")
    parser.add_argument("--write", action="store_true", help="write the table of docs/reference/sdks.md")
    asked = parser.parse_args()
    if unknown := set(asked.languages) - {language.name for language in LANGUAGES}:
        parser.error(f"unknown language {', '.join(sorted(unknown))}")
    known = scenarios()
    if unknown := set(asked.only or ()) - set(known):
        parser.error(f"unknown scenario {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    wanted = {name: known[name] for name in asked.only or known}
    results: dict[str, list[Result]] = {}
    with tempfile.TemporaryDirectory(prefix="corvo-sdk-") as folder:
        node = Node.start(Path(folder) / "data")
        try:
            for language in LANGUAGES:
                if asked.languages and language.name not in asked.languages:
                    continue
                if language.missing:
                    print(f"{language.name}: skipped, {' and '.join(language.missing)} not found", flush=True)
                    continue
                if not asked.no_build:
                    build(language)
                results[language.name] = _try(language, wanted, node, Path(folder))
        finally:
            node.stop()
    if asked.write and not asked.only:
        write(results, known)
    failed = sum(result.verdict != "passed" for found in results.values() for result in found)
    passed = sum(len(found) for found in results.values()) - failed
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not results else 0


def build(language: Language) -> None:
    if language.build:
        write_openapi(language.folder / "openapi.json")
    for command in language.build:
        subprocess.run(command, cwd=language.folder, check=True, timeout=BUILD_S)


def write_openapi(path: Path) -> None:
    """From which a library derives its types."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(describe(ENDPOINTS)), indent=1))


def routes() -> dict[str, tuple[str, str]]:
    return {each.name: (each.method, each.path) for each in ENDPOINTS}


def _try(language: Language, wanted: dict[str, Scenario], node: Node, folder: Path) -> list[Result]:
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    cwd = ROOT if not language.build else language.folder
    found = []
    with FaultProxy(int(node.url.rpartition(":")[2])) as proxy:
        for name, scenario in wanted.items():
            if not language.has(scenario):
                continue
            began = time.monotonic()
            harness = Harness(language.harness, cwd, environ, folder / f"{language.name}.log")
            try:
                Play(harness, node, proxy, routes()).run(scenario)
                verdict = "passed"
            except (Differs, HarnessFailed) as error:
                verdict = str(error)
            finally:
                harness.end()
            found.append(Result(name, verdict))
            print(f"{language.name} {name}: {verdict} ({time.monotonic() - began:.1f} s)", flush=True)
    if any(result.verdict != "passed" for result in found):
        sys.stdout.write((folder / f"{language.name}.log").read_text()[-2_000:])
    return found


def write(results: dict[str, list[Result]], known: dict[str, Scenario]) -> None:
    names = list(results)
    verdicts = {name: {result.scenario: result.verdict for result in results[name]} for name in names}
    lines = [f"| scenario | {' | '.join(names)} |", f"| --- |{' --- |' * len(names)}"]
    for scenario, text in known.items():
        cells = (verdicts[name].get(scenario, "not in this library") for name in names)
        lines.append(f"| `{scenario}`: {text.title} | {' | '.join(cells)} |")
    before, _, rest = PAGE.read_text().partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    PAGE.write_text(f"{before}{MARKS[0]}\n\n" + "\n".join(lines) + f"\n\n{MARKS[1]}{after}")
