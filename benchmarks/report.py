"""`python -m benchmarks.report`: the table of the last run, written into docs/reference/benchmarks.md.

It stands between two marks. Nobody writes it by hand: figures and page come from one file.
"""

import argparse
import sys
from pathlib import Path

import msgspec

from benchmarks.processes import ROOT
from benchmarks.run import LATEST
from benchmarks.table import Run, markdown

PAGE = ROOT / "docs" / "reference" / "benchmarks.md"
BEGIN = "<!-- benchmarks: begin; written by python -m benchmarks.report -->"
END = "<!-- benchmarks: end -->"


class NoMarks(Exception):
    """The page has lost the place where the table stands."""


def with_table(page: str, written: str) -> str:
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise NoMarks(f"the page needs the lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{written}\n\n{END}{after}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("--json", type=Path, default=LATEST, metavar="FILE", help="numbers of a run")
    parser.add_argument("--page", type=Path, default=PAGE, metavar="FILE")
    options = parser.parse_args()
    try:
        run = msgspec.json.decode(options.json.read_bytes(), type=Run)
        options.page.write_text(with_table(options.page.read_text(), markdown(run)))
    except FileNotFoundError as error:
        print(f"{error.filename} is not there; python -m benchmarks.run writes the numbers", file=sys.stderr)
        return 1
    except (msgspec.MsgspecError, NoMarks) as error:
        print(f"nothing written: {error}", file=sys.stderr)
        return 1
    print(f"{options.page}: table of {run.started_at}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
