"""The page and its charts come from measured JSON alone."""

import xml.etree.ElementTree as ElementTree

import pytest

from benchmarks.figures import Figure, Result, compared, value
from benchmarks.machine import Durability, Machine, Noise
from benchmarks.plot import Bar, bars
from benchmarks.report import BEGIN, END, NoMarks, newest, with_tables, written
from benchmarks.table import Run
from corvo.runtime.settings import Settings

SVG = "{http://www.w3.org/2000/svg}"


def a_run(at: str, *results: Result, is_quick: bool = False) -> Run:
    return Run(
        at,
        Machine(2, "a processor", 8.0, "6.0", "3.11", {}),
        Durability("on", "ext4", 0.5),
        Noise(0.1, 0.0),
        is_quick,
        {},
        Settings(),
        "",
        list(results),
        {},
    )


def a_result(scenario: str, *figures: Figure) -> Result:
    return Result(scenario, f"about {scenario}", 1.0, list(figures), {}, [f"a note on {scenario}"])


RIVALS = a_result(
    "rivals",
    value("Corvo, stream: whole lives", [4321.0], "jobs/s"),
    value("Corvo, stream: drain", [9876.0], "jobs/s"),
    value("Snail & Co: whole lives", [12.0], "jobs/s"),
    compared("whole lives, our fastest", [4321.0], "jobs/s", [12.0], "Snail & Co"),
)
SLOPE = a_result(
    "slope",
    compared("whole lives, 1,000 stored", [110.0, 90.0], "jobs/s", [100.0, 100.0], "that with 10,000"),
    compared("whole lives, 1,000,000 stored", [95.0, 97.0], "jobs/s", [100.0, 100.0], "that with 10,000"),
)


def test_of_each_scenario_the_newest_run_counts_and_a_quick_one_only_alone() -> None:
    old, new = value("speed", [1.0], "x"), value("speed", [2.0], "x")
    runs = [
        a_run("2026-01-02", a_result("drain", new)),
        a_run("2026-01-01", a_result("drain", old), a_result("idle", old)),
        a_run("2026-01-03", a_result("drain", old), a_result("slope"), is_quick=True),
    ]

    found = {result.scenario: run.started_at for run in newest(runs) for result in run.results}

    assert found == {"drain": "2026-01-02", "idle": "2026-01-01", "slope": "2026-01-03"}


def test_rivals_are_one_row_each() -> None:
    text = written([a_run("2026-01-01", RIVALS)]).text

    assert "| | whole lives | drain |" in text
    assert "| Corvo, stream | 4,320 jobs/s | 9,880 jobs/s |" in text
    assert "| Snail & Co | 12 jobs/s |  |" in text
    assert "360.08 of Snail & Co" in text
    assert "- a note on rivals" in text


def test_charts_are_drawn_of_what_was_measured_and_of_nothing_else() -> None:
    found = written([a_run("2026-01-01", RIVALS, SLOPE, a_result("drain", value("speed", [1.0], "x")))])

    assert set(found.charts) == {"benchmarks-rivals.svg", "benchmarks-slope.svg"}
    assert all(f"]({name})" in found.text for name in found.charts)
    rivals = ElementTree.fromstring(found.charts["benchmarks-rivals.svg"])
    assert len(rivals.findall(f"{SVG}rect")) == 2
    slope = ElementTree.fromstring(found.charts["benchmarks-slope.svg"])
    assert len(slope.findall(f"{SVG}circle")) == 2
    assert {"1,000", "1,000,000"} <= {text.text for text in slope.findall(f"{SVG}text")}


def test_bars_are_as_long_as_their_figures() -> None:
    chart = ElementTree.fromstring(bars("a < b", [Bar("half", 5.0, "5", False), Bar("all", 10.0, "10", True)]))

    long, short = (float(bar.attrib["width"]) for bar in chart.findall(f"{SVG}rect"))
    assert long == pytest.approx(2 * short, abs=0.1)


def test_the_page_around_the_tables_stays() -> None:
    page = f"before\n{BEGIN}\nold\n{END}\nafter"

    assert with_tables(page, "new") == f"before\n{BEGIN}\n\nnew\n\n{END}\nafter"
    with pytest.raises(NoMarks):
        with_tables("no marks", "new")
