"""The rows as a page: `docs/reference/seeds.md`. Pure; `docs/generate.py` writes it."""

from collections import Counter
from collections.abc import Iterator

from docs.seeds import SEEDS
from docs.seeds.rows import Row, Seed

STATUSES = ("works", "differs", "not yet")


def seeds() -> str:
    return "\n".join(
        [
            "# The seeds, line by line",
            "",
            "Corvo grew from five documents, its seeds. This page lists every feature, request, field, command, table,",
            "index and key in them, and says where it is, why ours differs, or that it does not exist yet. *Differs*",
            "means that Corvo serves the purpose in another form. *Run* marks the rows that a test runs against a real",
            "server, with the seed's own request or command line. A row that says *not yet* fails the test once it",
            "works.",
            "",
            *_summary(),
            *(line for seed in SEEDS for line in _document(seed)),
        ]
    )


def _summary() -> Iterator[str]:
    yield "| document | works | differs | not yet | run |"
    yield "|---|---|---|---|---|"
    everything: list[Row] = []
    for seed in SEEDS:
        rows = _rows(seed)
        everything += rows
        yield _counts(f"[{seed.file}](#{_anchor(seed.file)})", rows)
    yield _counts("all", everything)
    yield ""


def _counts(name: str, rows: list[Row]) -> str:
    by_status = Counter[str](row.status for row in rows)
    figures = [*(by_status[status] for status in STATUSES), sum(bool(row.run) for row in rows)]
    return f"| {name} | {' | '.join(map(str, figures))} |"


def _rows(seed: Seed) -> list[Row]:
    return [row for section in seed.sections for row in section.rows]


def _anchor(heading: str) -> str:
    return heading.lower().replace(".", "").replace(" ", "-")


def _document(seed: Seed) -> Iterator[str]:
    yield f"## {seed.file}"
    for section in seed.sections:
        yield from ("", f"### {section.title}", "", "| in the seed | status | run | in Corvo |", "|---|---|---|---|")
        for row in section.rows:
            yield f"| {_cell(row.seed)} | {_status(row)} | {'yes' if row.run else ''} | {_cell(row.where)} |"
    yield ""


def _status(row: Row) -> str:
    return f"{row.status}: {row.area}" if row.area else row.status


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
