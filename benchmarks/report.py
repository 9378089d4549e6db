"""`python -m benchmarks.report`: writes the measured figures and their charts into docs/reference/benchmarks.md.

It reads every file of `benchmarks/results` (or those given by `--json`). The newest run of each scenario counts; a
quick run counts only if there is no other. The tables are between two marks. Page and charts come from the measured
JSON only, never from hand-written figures.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from benchmarks.figures import Figure, Result
from benchmarks.plot import Bar, Point, bars, line
from benchmarks.processes import ROOT
from benchmarks.run import RESULTS
from benchmarks.table import Run, caption, heading, markdown, number
from benchmarks.table import row as table_row

PAGE = ROOT / "docs" / "reference" / "benchmarks.md"
BEGIN = "<!-- benchmarks: begin; written by python -m benchmarks.report -->"
END = "<!-- benchmarks: end -->"
PIVOTED = "rivals"
STORED = " stored"


class NoMarks(Exception):
    """The page has lost the marks around the tables."""


class Written(NamedTuple):
    text: str
    charts: dict[str, str]  # name of the file → SVG


def newest(runs: Iterable[Run]) -> list[Run]:
    """The runs, each reduced to the results that no newer run has replaced."""
    chosen: dict[str, Run] = {}
    for run in sorted(runs, key=lambda run: (not run.is_quick, run.started_at)):
        for result in run.results:
            chosen[result.scenario] = run
    by_start = {run.started_at: run for run in chosen.values()}
    return [
        msgspec.structs.replace(
            run, results=[result for result in run.results if chosen[result.scenario] is run], failures={}
        )
        for _, run in sorted(by_start.items(), reverse=True)
    ]


def written(runs: Sequence[Run]) -> Written:
    sections: list[str] = []
    charts: dict[str, str] = {}
    for run in newest(runs):
        plain = [result for result in run.results if result.scenario != PIVOTED]
        if plain:
            sections.append(markdown(msgspec.structs.replace(run, results=plain)))
        for result in run.results:
            if result.scenario == PIVOTED:
                alone = msgspec.structs.replace(run, results=[result])
                sections.append("\n".join([f"{heading(run)}.", "", *pivot(result), "", *_list(caption(alone))]))
            for name, chart in charts_of(result).items():
                charts[name] = chart
                sections.append(f"![{result.title}]({name})")
    return Written("\n\n".join(sections), charts)


def pivot(result: Result) -> list[str]:
    """A row for each measured server, a column for each kind of figure; figures with a ratio come below."""
    kinds: dict[str, None] = {}
    table: dict[str, dict[str, str]] = {}
    for figure in result.figures:
        name, separator, kind = figure.name.partition(": ")
        if separator and figure.ratio is None:
            kinds[kind] = None
            table.setdefault(name, {})[kind] = f"{number(figure.value)} {figure.unit}"
    lines = [f"| | {' | '.join(kinds)} |", "|" + "---|" * (len(kinds) + 1)]
    lines += [f"| {name} | {' | '.join(cells.get(kind, '') for kind in kinds)} |" for name, cells in table.items()]
    for figure in result.figures:
        if figure.ratio is not None:
            shown = table_row(result.scenario, figure)
            goal = f"; goal: {shown.goal}, {shown.verdict}" if shown.goal else ""
            lines += ["", f"{shown.figure}: {shown.measured}, {shown.ratio}{goal}."]
    return lines


def charts_of(result: Result) -> dict[str, str]:
    if result.scenario == PIVOTED:
        return {"benchmarks-rivals.svg": _rivals_chart(result)}
    if result.scenario == "slope":
        return {"benchmarks-slope.svg": _slope_chart(result)}
    return {}


def _rivals_chart(result: Result) -> str:
    rows = []
    for figure in result.figures:
        name, _, kind = figure.name.partition(": ")
        if kind == "whole lives":
            rows.append(Bar(name, figure.value, number(figure.value), name.startswith("Corvo")))
    return bars("Jobs per second, each enqueued, fetched and acked", rows)


def _slope_chart(result: Result) -> str:
    points = [_point(figure) for figure in result.figures if figure.name.startswith("whole lives, ")]
    return line("Throughput by number of stored jobs, relative to 10,000", points, 0.9)


def _point(figure: Figure) -> Point:
    stored = figure.name.removeprefix("whole lives, ").removesuffix(STORED)
    ratio = figure.ratio or 0.0
    return Point(float(stored.replace(",", "")), ratio, figure.low or ratio, figure.high or ratio, stored)


def with_tables(page: str, text: str) -> str:
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise NoMarks(f"the page needs the lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def _list(lines: Iterable[str]) -> list[str]:
    return [f"- {line}" for line in lines]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("--json", type=Path, action="append", metavar="FILE", help="a run; may be given several times")
    parser.add_argument("--page", type=Path, default=PAGE, metavar="FILE", help="charts are written beside it")
    options = parser.parse_args()
    files = options.json or sorted(RESULTS.glob("*.json"))
    try:
        found = written([msgspec.json.decode(file.read_bytes(), type=Run) for file in files])
        if not found.text:
            print(f"nothing in {RESULTS}; python -m benchmarks.run measures", file=sys.stderr)
            return 1
        options.page.write_text(with_tables(options.page.read_text(), found.text))
        for name, chart in found.charts.items():
            options.page.with_name(name).write_text(chart)
    except FileNotFoundError as error:
        print(f"{error.filename} is not there; python -m benchmarks.run writes the numbers", file=sys.stderr)
        return 1
    except (msgspec.MsgspecError, NoMarks) as error:
        print(f"nothing written: {error}", file=sys.stderr)
        return 1
    print(f"{options.page}: {len(files)} runs, charts: {', '.join(found.charts) or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
