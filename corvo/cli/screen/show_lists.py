"""Lists over all shards on the screen."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from corvo.cli.screen.figures import short, sparkline
from corvo.cli.screen.show import columns, cut, json_text, plain, when, workers
from corvo.client.answers import ErrorGroupsAnswer, ThroughputPoint, WorkerDetail

BARS_MAX = 60
MESSAGE_CHARS_MAX = 100
_KINDS = (("enqueued", "yellow"), ("completed", "green"), ("failed", "red"), ("dead", "red"))


def throughput(points: Sequence[ThroughputPoint]) -> Group:
    """A line per figure. Each bar covers as many minutes as are needed to fit the width."""
    each = -(-len(points) // BARS_MAX)
    grid = columns("WHAT", ">TOTAL", ">PER MINUTE", ">PEAK", "HISTORY")
    for name, style in _KINDS:
        amounts = [getattr(point, name) for point in points]
        ends = range(len(amounts), 0, -each)  # the newest bar is a full one
        bars = [sum(amounts[max(0, end - each) : end]) for end in ends][::-1]
        average = sum(amounts) / len(amounts)
        grid.add_row(name, str(sum(amounts)), short(average), short(max(amounts)), Text(sparkline(bars), style))
    bar = "1 minute per bar" if each == 1 else f"{each} minutes per bar"
    return Group(grid, Text(f"{when(points[0].minute)} until now, {bar}", "dim"))


def error_groups(answer: ErrorGroupsAnswer) -> Group:
    grid = columns(">COUNT", "QUEUE", "FIRST", "LAST", "JOB", "ERROR")
    for group in answer.groups:
        grid.add_row(
            str(group.count),
            plain(group.queue),
            when(group.first_at),
            when(group.last_at),
            plain(group.sample_job_id),
            plain(cut(group.message, MESSAGE_CHARS_MAX)),
        )
    more = ", and there are more" if answer.has_more else ""
    return Group(grid, Text(f"{len(answer.groups)} groups{more}, read.db is {answer.lag_ms:.0f} ms behind", "dim"))


def worker(view: WorkerDetail) -> Group:
    grid = columns("JOB", "QUEUE", ">ATTEMPT", "STARTED", "LEASE UNTIL", "PROGRESS")
    for job in view.jobs:
        grid.add_row(
            plain(job.id),
            plain(job.queue),
            str(job.attempt),
            when(job.started_at),
            when(job.lease_expires_at),
            plain(cut(json_text(job.progress))),
        )
    rest = view.active_jobs - len(view.jobs)
    parts: list[RenderableType] = [workers([view]), Text(), grid]
    return Group(*parts, *([Text(f"and {rest} more", "dim")] if rest > 0 else []))
