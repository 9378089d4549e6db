"""`python -m benchmarks.run`: runs every scenario and writes one table and one JSON file.

The exit code is 0 whatever the figures are: they are figures, not tests. It is 1 if a scenario failed to run, 2 for
wrong usage.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from benchmarks.figures import Result
from benchmarks.load import LoadFailed
from benchmarks.machine import cpu_ticks, durability, machine, noise
from benchmarks.processes import ROOT, NotReady
from benchmarks.prototype import find
from benchmarks.rivals.rival import Tools
from benchmarks.scenario import Scenario, Setup
from benchmarks.scenarios import SCENARIOS
from benchmarks.table import Run, table
from corvo.runtime.settings import BadSettings, load

RESULTS = ROOT / "benchmarks" / "results"
PROTOTYPE = Path("../shared/prototype")
ROUNDS, ROUNDS_QUICK = 5, 2
ROUND_S, ROUND_S_QUICK = 3.0, 1.0
BACKLOG, BACKLOG_QUICK = 100_000, 20_000
REFRESHES_PER_S = 2  # drawing takes time from the process that measures latency

console = Console(stderr=True)


def main() -> int:
    options = _options()
    try:
        server, _ = load(dict(options.set), os.environ)
    except BadSettings as error:
        console.print(*error.faults, sep="\n", markup=False)
        return 2
    flags = tuple(word for name, value in options.set for word in ("--" + name.replace("_", "-"), value))
    path = options.prototype if options.prototype.is_absolute() else ROOT / options.prototype
    prototype = find(path)
    if prototype is None:
        console.print(f"prototype: not found at {path}; ratios to it are skipped (--prototype PATH)")
    pythons = [each.absolute() for each in options.rivals_python or [Path(sys.executable)]]
    chosen = [each for each in SCENARIOS if (each.name in options.only if options.only else not each.is_long)]
    results: list[Result] = []
    failures: dict[str, str] = {}
    load_before, ticks = os.getloadavg()[0], cpu_ticks()
    started = datetime.now(UTC)
    with _watching() as watch:
        for scenario in chosen:
            folder = Path(tempfile.mkdtemp(prefix=f"corvo-bench-{scenario.name}-"))
            setup = Setup(
                folder,
                watch,
                options.rounds,
                options.round_seconds,
                options.quick,
                options.backlog,
                prototype,
                flags,
                Tools(tuple(pythons), options.rivals_node_modules.absolute()),
                options.rivals_durable,
                options.huge,
            )
            try:
                results.append(_run(scenario, setup))
            except (NotReady, LoadFailed, subprocess.SubprocessError, OSError, msgspec.MsgspecError) as error:
                failures[scenario.name] = f"{type(error).__name__}: {error}"
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="corvo-bench-") as folder_name:
        durable = durability(server.fsync, Path(folder_name))
    run = Run(
        started.isoformat(timespec="seconds"),
        machine(),
        durable,
        noise(load_before, ticks),
        options.quick,
        {
            "rounds": options.rounds,
            "round_s": options.round_seconds,
            "backlog": options.backlog,
        },
        server,
        str(prototype or ""),
        results,
        failures,
    )
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_bytes(msgspec.json.format(msgspec.json.encode(run)))
    Console().print(table(run))
    for scenario_name, why in failures.items():
        console.print(f"{scenario_name} failed to run: {why}", markup=False)
    console.print(f"{options.json}: all numbers, the machine and the settings", markup=False)
    return 1 if failures else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short rounds: check that it runs, ignore the figures")
    parser.add_argument(
        "--only", action="append", metavar="NAME", choices=[scenario.name for scenario in SCENARIOS],
        help="one scenario; may be given several times: " + ", ".join(scenario.name for scenario in SCENARIOS)
        + "; long ones run only when named",
    )  # fmt: skip
    parser.add_argument("--prototype", type=Path, default=PROTOTYPE, help="relative to the repository's root")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="where all numbers go  [default: benchmarks/results/latest.json, or a"
        " file with the name of the scenarios]",
    )  # fmt: skip
    parser.add_argument("--rounds", type=_positive(int), help=f"of each comparison (default {ROUNDS})")
    parser.add_argument("--round-seconds", type=_positive(float), help=f"of load in a round (default {ROUND_S:g})")
    parser.add_argument("--backlog", type=_positive(int), help=f"jobs in the long queue (default {BACKLOG:,})")
    parser.add_argument("--huge", action="store_true", help="slope: continue to five million jobs")
    parser.add_argument(
        "--rivals-python",
        type=Path,
        action="append",
        metavar="PATH",
        help="Python with the libraries of other job servers; may be given several times  [default: this one]",
    )
    parser.add_argument(
        "--rivals-node-modules",
        type=Path,
        default=ROOT / "node_modules",
        metavar="PATH",
        help="node_modules with bullmq and pg-boss",
    )
    parser.add_argument("--rivals-durable", action="store_true", help="make others sync each job, if they can")
    parser.add_argument(
        "--set",
        type=_setting,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="server setting, such as shards=1 or fsync=off; may be given several times",
    )
    options = parser.parse_args()
    options.json = options.json or RESULTS / f"{'-'.join(options.only or ['latest'])}.json"
    options.rounds = options.rounds or (ROUNDS_QUICK if options.quick else ROUNDS)
    options.round_seconds = options.round_seconds or (ROUND_S_QUICK if options.quick else ROUND_S)
    options.backlog = options.backlog or (BACKLOG_QUICK if options.quick else BACKLOG)
    return options


def _positive(kind: type[int] | type[float]) -> Callable[[str], float]:
    def parse(text: str) -> float:
        number = kind(text)
        if number <= 0:
            raise argparse.ArgumentTypeError(f"{text} is not above zero")
        return number

    return parse


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text} is not NAME=VALUE")
    return name, value


def _run(scenario: Scenario, setup: Setup) -> Result:
    started = time.monotonic()
    findings = scenario.run(setup)
    seconds = round(time.monotonic() - started, 1)
    return Result(scenario.name, scenario.title, seconds, findings.figures, findings.details, findings.notes)


class _Bars:
    """Shows stages as bars on a terminal, as one line each elsewhere."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def stage(self, label: str, total: float) -> Callable[[float], None]:
        if not console.is_terminal:
            console.print(label, markup=False)
            return lambda amount: None
        for task in self._progress.task_ids:
            self._progress.update(task, visible=False)
        task = self._progress.add_task(label, total=total)
        return lambda amount: self._progress.advance(task, amount)


@contextmanager
def _watching() -> Iterator[_Bars]:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True, refresh_per_second=REFRESHES_PER_S) as progress:
        yield _Bars(progress)


if __name__ == "__main__":
    sys.exit(main())
