"""Rows of jobs, as a search answers them. Pure.

A column whose `by` names an order of the API is sorted by the server, over all jobs; another one only sorts the jobs
that are on the screen.
"""

from collections.abc import Mapping
from typing import NamedTuple

from corvo.cli.screen.figures import age, seconds_since
from corvo.cli.screen.show import STATE_STYLES, json_text, priority
from corvo.cli.screen.top.grid import Cell, Column, Row
from corvo.cli.screen.top.looks import Past
from corvo.client.answers import JobSummary

ID_WIDTH = 34
GLYPHS = {
    "pending": "·",
    "active": "▶",
    "completed": "✓",
    "retrying": "↻",
    "dead": "✖",
    "cancelled": "-",
    "scheduled": "◷",
    "held": "‖",
}


class Asked(NamedTuple):
    """What a pane of jobs asks for when nothing else is given."""

    states: tuple[str, ...]
    sort: str
    order: str


ASKED: Mapping[str, Asked] = {
    "running": Asked(("active",), "started_at", "asc"),  # the longest running first
    "failures": Asked(("dead", "retrying"), "started_at", "desc"),
    "held": Asked(("held",), "created_at", "asc"),
    "jobs": Asked((), "created_at", "desc"),
}
# Headings of columns whose order is the server's.
SERVER_SORTS: Mapping[str, str] = {
    "AGE": "created_at",
    "FOR": "started_at",
    "TRIED": "started_at",
    "PRIO": "priority",
    "TRY": "attempt",
}


def running_rows(past: Past) -> list[Row]:
    return [
        _row(
            job,
            Cell(job.queue),
            Cell(job.worker_id or ""),
            _tries(job),
            _ago(job.started_at, past),
            Cell(job.id),
            Cell(json_text(job.payload)),
        )
        for job in _found(past)
    ]


def failure_rows(past: Past) -> list[Row]:
    return [
        _row(
            job,
            state(job.state),
            Cell(job.queue),
            _tries(job),
            _ago(job.started_at, past),
            Cell(job.last_error or "", "red"),
            Cell(job.id),
        )
        for job in _found(past)
    ]


def held_rows(past: Past) -> list[Row]:
    return [
        _row(
            job,
            Cell(job.queue),
            _ago(job.created_at, past),
            Cell(job.hold_reason or "", "yellow"),
            Cell(job.id),
            Cell(json_text(job.payload)),
        )
        for job in _found(past)
    ]


def job_rows(past: Past) -> list[Row]:
    return [
        _row(
            job,
            state(job.state),
            Cell(job.queue),
            Cell(priority(job.priority), value=job.priority),
            _tries(job),
            _ago(job.created_at, past),
            Cell(job.id),
            Cell(job.last_error or json_text(job.payload), "red" if job.last_error else ""),
        )
        for job in _found(past)
    ]


def state(name: str) -> Cell:
    """With a glyph: states are told apart without colours, at a glance."""
    return Cell(f"{GLYPHS.get(name, '?')} {name}", STATE_STYLES.get(name, ""))


def _found(past: Past) -> list[JobSummary]:
    return past.look.jobs.jobs if past.look.jobs else []


def _row(job: JobSummary, *cells: Cell) -> Row:
    return Row(job.id, cells, "job", job.state)


def _tries(job: JobSummary) -> Cell:
    return Cell(f"{job.attempt}/{job.max_retries}", value=job.attempt)


def _ago(moment: str | None, past: Past) -> Cell:
    return Cell(age(moment, past.look.now_ns), value=seconds_since(moment, past.look.now_ns) or 0.0)


RUNNING_COLUMNS = (
    Column("QUEUE", width_min=10, width_max=32),
    Column("WORKER", width_min=8, width_max=32),
    Column("TRY", True, rank=2),
    Column("FOR", True),
    Column("JOB", width_min=ID_WIDTH),
    Column("PAYLOAD", rank=3, width_min=12, width_max=120),
)
FAILURE_COLUMNS = (
    Column("STATE", width_min=11),
    Column("QUEUE", width_min=10, width_max=32),
    Column("TRY", True, rank=1),
    Column("TRIED", True),
    Column("ERROR", width_min=24, width_max=120),
    Column("JOB", rank=2, width_min=ID_WIDTH),
)
HELD_COLUMNS = (
    Column("QUEUE", width_min=10, width_max=32),
    Column("AGE", True),
    Column("REASON", width_min=16, width_max=80),
    Column("JOB", rank=1, width_min=ID_WIDTH),
    Column("PAYLOAD", rank=2, width_min=12, width_max=80),
)
JOBS_COLUMNS = (
    Column("STATE", width_min=11),
    Column("QUEUE", width_min=10, width_max=32),
    Column("PRIO", rank=3),
    Column("TRY", True, rank=2),
    Column("AGE", True),
    Column("JOB", rank=1, width_min=ID_WIDTH),
    Column("ABOUT", width_min=12, width_max=120),
)
