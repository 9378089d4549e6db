"""Lists of jobs, page by page: how many are asked for, and how they are printed.

A terminal gets one page. A pipe or a file gets every job that matches, because a program that reads the list takes it
for the whole. What fails half-way is recognisably cut off: a JSON array without its end, a table without its last line.
"""

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from corvo.cli.commands.requests import MISUSED, TABLE, stop

if TYPE_CHECKING:
    from corvo.client.answers import SearchAnswer

PAGE_MAX = 1_000  # jobs in one answer of the server
PAGE_DEFAULT = 50  # on a terminal

Limit = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="at most N jobs  [default: 50 on a terminal, else all]", show_default=False),
]
Every = Annotated[bool, typer.Option("--all", help="all matching jobs; the default if the output is not a terminal")]
OnePage = Annotated[
    bool, typer.Option("--page", help="one page; with --output json an object with jobs, total and cursor")
]
Cursor = Annotated[str | None, typer.Option(metavar="CURSOR", help="continue after the page that printed this cursor")]

AskPage = Callable[[str | None, int], "SearchAnswer"]  # cursor and limit of a page


class Amount(NamedTuple):
    """How many jobs are wanted; None: all."""

    jobs_max: int | None
    is_page: bool = False

    @property
    def page_size(self) -> int:
        return PAGE_MAX if self.jobs_max is None else min(self.jobs_max, PAGE_MAX)


def amount(limit: int | None, every: bool, one_page: bool, cursor: str | None) -> Amount:
    if every and (limit is not None or one_page):
        stop(MISUSED, f"--all and {'--page' if one_page else '--limit'} exclude each other")
    if one_page:
        if limit is not None and limit > PAGE_MAX:
            stop(MISUSED, f"--limit {limit}: a page has at most {PAGE_MAX} jobs")
        return Amount(limit or PAGE_DEFAULT, is_page=True)
    if every or (limit is None and cursor is None and not is_terminal()):
        return Amount(None)
    return Amount(limit or PAGE_DEFAULT)


def print_jobs(ask: AskPage, wanted: Amount, cursor: str | None, output: str) -> None:
    from corvo.cli.screen import show  # lazy: rich

    if wanted.is_page:
        page = ask(cursor, wanted.page_size)
        show.answer(page, output, lambda: show.found(page))
        return
    pages = _pages(ask, wanted, cursor)
    if output == TABLE:
        _print_table(pages)
    else:
        show.array((job for page in pages for job in page.jobs), output)


def _pages(ask: AskPage, wanted: Amount, cursor: str | None) -> "Iterator[SearchAnswer]":
    """Until enough jobs came or there are no more. Pages are short, or empty, where the server's time was up; a person
    at a terminal is not kept waiting for the next one."""
    left = wanted.jobs_max
    while True:
        page = ask(cursor, PAGE_MAX if left is None else min(left, PAGE_MAX))
        yield page
        cursor = page.cursor
        left = None if left is None else left - len(page.jobs)
        if cursor is None or left == 0 or (left is not None and not page.is_complete and is_terminal()):
            return


def _print_table(pages: "Iterator[SearchAnswer]") -> None:
    from corvo.cli.screen import show  # lazy: rich

    count = 0
    first = page = None
    for page in pages:
        first = first or page
        if page.jobs or page is first:
            show.table(show.jobs_table(page.jobs, has_head=page is first))
        count += len(page.jobs)
    assert first is not None and page is not None
    show.table(show.end_of_list(count, first, page))


def is_terminal() -> bool:
    return sys.stdout.isatty()
