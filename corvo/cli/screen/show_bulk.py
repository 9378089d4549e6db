"""Bulk actions on the screen. Text from outside is made harmless, as in `show.py`."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from corvo.cli.screen.show import columns, plain, priority, state, when
from corvo.client.answers import BulkDone, BulkStarted, BulkView, FailureView

SAMPLES_SHOWN = 10
_STYLES = {"queued": "yellow", "running": "cyan", "completed": "green", "failed": "red", "cancelled": "dim"}


def preview(answer: BulkDone) -> RenderableType:
    grid = columns("ID", "QUEUE", "STATE", "PRIORITY", ">ATTEMPT", "CREATED")
    for job in answer.sample:
        grid.add_row(
            job.id,
            plain(job.queue),
            state(job.state),
            priority(job.priority),
            str(job.attempt),
            when(job.created_at),
        )
    more = "" if answer.matched_is_exact else "at least "
    return Group(grid, Text(f"{more}{answer.matched} jobs match; nothing was changed", "dim"))


def done(answer: BulkDone) -> RenderableType:
    told = plain(f"{answer.affected} of {answer.matched} jobs changed, {answer.errors} refused")
    return Group(told, *_failures(answer.error_samples, answer.errors))


def started(answer: BulkStarted) -> Text:
    return plain(f"{answer.bulk_operation_id}  {answer.status}")


def operation(view: BulkView) -> RenderableType:
    grid = Table(box=None, show_header=False, pad_edge=False)
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    total = f"{'' if view.total_is_exact else 'at least '}{view.total}"
    rows: list[tuple[str, str | Text | None]] = [
        ("id", view.id),
        ("status", Text(view.status, _STYLES.get(view.status, ""))),
        ("action", " ".join(filter(None, (view.action, view.move_to_queue, view.priority)))),
        ("processed", f"{view.processed} of {total}"),
        ("changed", str(view.affected)),
        ("refused", str(view.errors)),
        ("rate", f"{view.rate:.0f} jobs/s" if view.rate else ""),
        ("time left", f"{view.eta_s:.0f} s" if view.eta_s is not None else ""),
        ("cancel", "requested" if view.cancel_requested and view.finished_at is None else ""),
        ("error", view.error),
        ("created", when(view.created_at)),
        ("finished", when(view.finished_at)),
    ]
    for name, value in rows:
        if value:
            grid.add_row(name, value if isinstance(value, Text) else plain(value))
    return Group(grid, *_failures(view.error_samples, view.errors))


def operations(views: Sequence[BulkView]) -> Table:
    grid = columns("ID", "STATUS", "ACTION", ">PROCESSED", ">TOTAL", ">CHANGED", ">REFUSED", "CREATED")
    for view in views:
        grid.add_row(
            plain(view.id),
            Text(view.status, _STYLES.get(view.status, "")),
            plain(view.action),
            str(view.processed),
            f"{'' if view.total_is_exact else '≥ '}{view.total}",
            str(view.affected),
            str(view.errors),
            when(view.created_at),
        )
    return grid


def _failures(samples: Sequence[FailureView], count: int) -> list[RenderableType]:
    if not samples:
        return []
    grid = columns("REFUSED", "CODE", "WHY")
    for one in samples[:SAMPLES_SHOWN]:
        grid.add_row(plain(one.job_id), plain(one.code), plain(one.error))
    more = count - min(len(samples), SAMPLES_SHOWN)
    return [grid, Text(f"and {more} more", "dim")] if more > 0 else [grid]


@contextmanager
def bar(answer: BulkStarted) -> Iterator[Callable[[BulkView], None]]:
    """On standard error and only at a terminal; standard output is for the result."""
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    total = answer.estimated_total if answer.total_is_exact else None
    with progress:
        task = progress.add_task(answer.bulk_operation_id, total=total, rate="")

        def tell(view: BulkView) -> None:
            rate = f"{view.rate:.0f}/s" if view.rate else ""
            progress.update(task, completed=view.processed, rate=rate)

        yield tell
