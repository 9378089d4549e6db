"""A whole run as a struct, and its table for a terminal and for the docs."""

from typing import NamedTuple

import msgspec
from rich.table import Table

from benchmarks.figures import Figure, Result
from benchmarks.machine import Durability, Machine, Noise
from corvo.runtime.settings import Settings

COLUMNS = ("scenario", "figure", "measured", "ratio", "goal", "verdict")


class Run(msgspec.Struct, frozen=True):
    started_at: str
    machine: Machine
    durability: Durability
    noise: Noise
    is_quick: bool
    settings: dict[str, float]  # of the run
    server: Settings
    prototype: str  # its path; empty if it was missing
    results: list[Result]
    failures: dict[str, str]  # scenario → why it did not run


class Row(NamedTuple):
    scenario: str
    figure: str
    measured: str
    ratio: str
    goal: str
    verdict: str


def rows(run: Run) -> list[Row]:
    found = [row(result.scenario, figure) for result in run.results for figure in result.figures]
    found += [Row(scenario, "failed to run", "", "", "", "no figure") for scenario in run.failures]
    return found


def table(run: Run) -> Table:
    shown = Table(title=heading(run), title_justify="left", caption="\n".join(caption(run)), caption_justify="left")
    for name in COLUMNS:
        shown.add_column(name, justify="right" if name == "measured" else "left")
    last = ""
    for each in rows(run):
        if last and each.scenario != last:
            shown.add_section()
        style = {"met": "green", "not met": "yellow", "no figure": "red"}.get(each.verdict, "")
        verdict = f"[{style}]{each.verdict}[/{style}]" if style else each.verdict
        shown.add_row(each.scenario if each.scenario != last else "", *each[1:5], verdict)
        last = each.scenario
    return shown


def markdown(run: Run) -> str:
    lines = [f"{heading(run)}.", "", _line(COLUMNS), _line(["---"] * len(COLUMNS))]
    lines += [_line(each) for each in rows(run)]
    return "\n".join([*lines, "", *(f"- {line}" for line in caption(run))])


def heading(run: Run) -> str:
    return f"Measured on a {run.machine.cores}-core machine on {run.started_at[:10]}"


def caption(run: Run) -> list[str]:
    machine, durable = run.machine, run.durability
    lines = [
        f"{machine.cpu}, {machine.memory_gb:g} GB, Linux {machine.kernel}, Python {machine.python};"
        f" the load generator runs on the same cores",
        f"shards: {run.server.shards}; fsync {durable.fsync}; {durable.filesystem},"
        f" where a small write and its fsync take {durable.fsync_ms:g} ms",
        f"load of the machine before the run: {run.noise.load_before:g}; CPU time stolen by other guests of the host:"
        f" {run.noise.stolen_share:.1%}",
        "in brackets: the lowest and the highest round",
    ]
    if run.is_quick:
        lines.append("a quick run: too short to be believed")
    notes = dict.fromkeys(note for result in run.results for note in result.notes)
    return [*lines, *notes]


def row(scenario: str, figure: Figure) -> Row:
    measured = f"{number(figure.value)} {figure.unit}"
    ratio = ""
    if figure.ratio is not None:
        ratio = f"{figure.ratio:.2f} of {figure.ratio_to} ({figure.low:.2f}–{figure.high:.2f})"
    elif figure.low is not None and figure.high is not None:
        measured += f" ({number(figure.low)}–{number(figure.high)})"
    verdict = {True: "met", False: "not met", None: ""}[figure.is_met]
    return Row(scenario, figure.name, measured, ratio, figure.goal.text if figure.goal else "", verdict)


def number(value: float) -> str:
    """Rounds to three digits; a shared machine is not even that exact."""
    if value >= 1000:
        digits = len(str(int(value)))
        return f"{round(value, 3 - digits):,.0f}"
    return f"{value:.3g}"


def _line(cells: "list[str] | tuple[str, ...]") -> str:
    return f"| {' | '.join(cells)} |"
