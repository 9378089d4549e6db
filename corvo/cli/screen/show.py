"""Answers on the screen: tables for people, JSON for programs.

Input is the typed answer; JSON is its encoding. Text from outside (errors, host names, payloads) is made harmless: no
escape sequence in it reaches the terminal.
"""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from corvo.cli import formats
from corvo.client.answers import (
    ClusterStatus,
    Enqueued,
    EventView,
    JobSummary,
    JobView,
    QueueView,
    SearchAnswer,
    WhyView,
    WorkerView,
)
from corvo.model.job import PRIORITY_NAMES
from corvo.model.timestamps import parse_rfc3339

PIPE_WIDTH = 1000  # a pipe has no width: nothing is cut off
CELL_CHARS_MAX = 60  # of a payload or an error in a list

# Colour is optional: the word is always printed.
STATE_STYLES = {
    "pending": "yellow",
    "active": "cyan",
    "completed": "green",
    "retrying": "magenta",
    "dead": "red",
    "cancelled": "dim",
    "scheduled": "blue",
    "held": "dim",
}


def console() -> Console:
    """Colours only on a terminal and without NO_COLOR, which are rich's own rules."""
    return Console(
        width=None if sys.stdout.isatty() else PIPE_WIDTH,
        highlight=False,
        no_color=bool(os.environ.get("NO_COLOR")) or None,
    )


def answer(value: Any, output: str, as_table: Callable[[], RenderableType]) -> None:
    """`output` is what `--output` says."""
    if output == formats.TABLE:
        table(as_table())
    else:
        print(formats.encoded(value, output), flush=True)


def array(values: Iterable[Any], output: str) -> None:
    """A list for programs, printed as the values come."""
    for piece in formats.listed(values, output):
        sys.stdout.write(piece)


def table(content: RenderableType) -> None:
    console().print(content)


def settings_rows(rows: Iterable[tuple[str, str, str]]) -> Table:
    grid = columns("SETTING", "VALUE", "FROM")
    for row in rows:
        grid.add_row(*map(plain, row))
    return grid


def enqueued(job: Enqueued) -> Text:
    return Text.assemble(job.job_id, "  ", state(job.status))


def done(job_id: str, status: str) -> Text:
    return Text.assemble(job_id, "  ", state(status))


def job(view: JobView) -> Table:
    grid = Table(box=None, show_header=False, pad_edge=False)
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    retries = f"{view.retry_backoff}, {view.retry_base_delay_ms} ms, at most {view.retry_max_delay_ms} ms"
    rows: list[tuple[str, str | Text | None]] = [
        ("id", view.id),
        ("queue", view.queue),
        ("state", state(view.state)),
        ("priority", priority(view.priority)),
        ("attempt", f"{view.attempt} of {view.max_retries}"),
        ("backoff", retries),
        ("created", when(view.created_at)),
        ("scheduled", when(view.scheduled_at)),
        ("started", when(view.started_at)),
        ("completed", when(view.completed_at)),
        ("failed", when(view.failed_at)),
        ("claimed", when(view.claimed_at)),
        ("expires", when(view.expire_at)),
        ("lease until", when(view.lease_expires_at)),
        ("cancel", "requested; its worker has not stopped yet" if view.cancel_requested else ""),
        ("held for", view.hold_reason),
        ("waits for", "\n".join(view.waiting_for)),
        ("worker", " on ".join(filter(None, (view.worker_id, view.hostname)))),
        ("parent", view.parent_id),
        ("batch", view.batch_id),
        ("chain", f"{view.chain_id}, {_step(view)}" if view.chain_id else ""),
        ("schedule", view.schedule_id),
        ("unique key", view.unique_key),
        ("idempotency", view.idempotency_key),
        ("payload", json_text(view.payload)),
        ("tags", json_text(view.tags)),
        ("progress", json_text(view.progress)),
        ("checkpoint", json_text(view.checkpoint)),
        ("result", json_text(view.result)),
    ]
    rows += [(f"error {error.attempt}", f"{when(error.created_at)}  {error.error}") for error in view.errors]
    for name, value in rows:
        if value:
            grid.add_row(name, value if isinstance(value, Text) else plain(value))
    return grid


def _step(view: JobView) -> str:
    number, chain = view.chain_step or 0, view.chain_config
    if number < 0:
        return "its end"
    return f"step {number + 1} of {len(chain.steps)}" if chain is not None else f"step {number + 1}"


def found(result: SearchAnswer) -> Group:
    """One page."""
    return Group(jobs_table(result.jobs), end_of_list(len(result.jobs), result, result))


def jobs_table(jobs: Sequence[JobSummary], has_head: bool = True) -> Table:
    grid = columns("ID", "QUEUE", "STATE", "PRIORITY", ">ATTEMPT", "CREATED", "PAYLOAD", "LAST ERROR")
    grid.show_header = has_head
    for one in jobs:
        grid.add_row(
            one.id,
            plain(one.queue),
            state(one.state),
            priority(one.priority),
            f"{one.attempt}/{one.max_retries}",
            when(one.created_at),
            plain(cut(json_text(one.payload))),
            plain(cut(one.last_error or "")),
        )
    return grid


def end_of_list(count: int, first: SearchAnswer, last: SearchAnswer) -> Group:
    """Its first line ends a list of jobs: `corvo bulk` takes a table without it for cut off."""
    total = max(first.total, count)
    more = f"{count} of {'' if first.total_is_exact else 'at least '}{total} jobs"
    notes = [Text(f"{more}, {last.duration_ms:.1f} ms, read.db is {last.lag_ms:.0f} ms behind", "dim")]
    if not last.is_complete:
        notes.append(Text(f"the time limit was reached; continue with --cursor {last.cursor}", "yellow"))
    elif last.cursor is not None:
        notes.append(Text(f"next page: --cursor {last.cursor}", "dim"))
    return Group(*notes)


def priority(number: int) -> str:
    return PRIORITY_NAMES[number] if 0 <= number < len(PRIORITY_NAMES) else str(number)


def queues(rows: Sequence[QueueView]) -> Table:
    states = ("pending", "active", "scheduled", "retrying", "held", "dead", "completed", "cancelled")
    rates = ("enqueued", "completed", "failed")
    grid = columns(
        "QUEUE", *(f">{name.upper()}" for name in states), *(f">{name.upper()}/S" for name in rates), ">OLDEST PENDING"
    )
    for row in rows:
        name = plain(row.name).append("" if row.status == "active" else f" ({row.status})", "yellow")
        counts = (str(getattr(row, one)) for one in states)
        a_second = (f"{getattr(row, f'{one}_per_s'):.1f}" for one in rates)
        grid.add_row(name, *counts, *a_second, span(row.oldest_pending_age_ms))
    return grid


def workers(rows: Sequence[WorkerView]) -> Table:
    grid = columns("WORKER", "HOST", "QUEUES", "LAST SEEN", "SINCE", ">ACTIVE", ">POOL", "VERSION", "WAITING")
    for row in rows:
        grid.add_row(
            plain(row.id),
            plain(row.hostname),
            plain(", ".join(row.queues)),
            when(row.last_heartbeat),
            when(row.started_at),
            str(row.active_jobs),
            str(row.pool_size or ""),
            plain(row.version),
            "yes" if row.is_waiting else "",
        )
    return grid


def shards(view: ClusterStatus) -> Table:
    grid = columns(
        ">SHARD",
        "STATE",
        "LEADER",
        ">TERM",
        ">APPLIED",
        ">LOG",
        ">OPERATIONS",
        ">BATCH",
        ">FSYNC MS",
        ">WAITING",
        ">LAG",
    )
    for shard in view.groups:
        grid.add_row(
            str(shard.shard),
            plain(shard.error or shard.state),
            plain(shard.leader_id or "none"),
            str(shard.term),
            str(shard.applied_index),
            str(shard.log_entries),
            str(shard.operations_total),
            f"{shard.batch_size_avg:.1f}",
            f"{shard.sync_ms_avg:.2f}",
            str(shard.waiting),
            str(shard.mirror_lag_entries),
        )
    return grid


def incidents(view: ClusterStatus) -> list[RenderableType]:
    """Restarts and last incidents of the node that was asked; nothing where there were none."""
    if not any(view.restarts.values()) and not view.incidents:
        return []
    parts: list[RenderableType] = [Text(), plain(f"restarts since {view.node_id} started: {restarts(view)}")]
    if view.incidents:
        grid = columns("INCIDENT", "PROCESS", "REASON")
        for one in view.incidents:
            grid.add_row(when(one.at), plain(one.process), plain(one.reason))
        parts.append(grid)
    return parts


def restarts(view: ClusterStatus) -> str:
    return ", ".join(f"{name} {count}" for name, count in view.restarts.items() if count) or "none"


def headline(view: ClusterStatus) -> Text:
    fsync = "fsync on" if view.fsync else "fsync off: a power cut may lose acknowledged jobs"
    mirror = f"read.db {view.mirror.lag_ms:.0f} ms behind" if view.mirror else "read.db does not answer"
    style = {"healthy": "green", "degraded": "yellow"}.get(view.status, "red")
    health = f"{view.status}: {'; '.join(view.reasons)}" if view.reasons else view.status
    rest = f" · {view.mode} · {view.node_id} · {view.shards} shards · {fsync} · {mirror}"
    return Text.assemble(f"Corvo {view.version} ", (plain(health).plain, style), rest)


EVENT_STYLES = {
    "completed": "green",
    "started": "cyan",
    "failed": "magenta",
    "dead": "red",
    "expired": "red",
    "rejected": "red",
    "cancelled": "dim",
}


def event(one: EventView) -> Text:
    """One line, with the time in milliseconds."""
    moment = datetime.fromtimestamp(one.at_ns // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return Text.assemble(
        (f"{moment}.{one.at_ns // 10**6 % 1000:03d}Z  ", "dim"),
        (f"{one.type:<16}  ", EVENT_STYLES.get(one.type, "")),
        plain(f"{one.job_id:<34}  {one.queue}"),
        plain(f"  {cut(json_text(one.data))}" if one.data is not None else ""),
    )


def why(view: WhyView) -> Group:
    also = f" Then: {', '.join(view.also)}." if view.also else ""
    return Group(
        Text.assemble(state(view.state), "  ", (view.reason, "bold")),
        plain(f"{view.message}.{also}"),
    )


def columns(*headings: str) -> Table:
    """`>` before a heading aligns the column to the right."""
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        grid.add_column(heading.lstrip(">"), justify="right" if heading[0] == ">" else "left", no_wrap=True)
    return grid


def state(name: str) -> Text:
    return Text(name, STATE_STYLES.get(name, ""))


def when(moment: str | None) -> str:
    """In UTC, without fractions; other text is left as it is."""
    if not moment:
        return ""
    try:
        return datetime.fromtimestamp(parse_rfc3339(moment) // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except ValueError:
        return moment


def span(span_ms: int | None) -> str:
    """A span in its two largest units."""
    if span_ms is None:
        return ""
    seconds = span_ms // 1000
    for name, size, smaller, part in (("d", 86_400, "h", 3_600), ("h", 3_600, "m", 60), ("m", 60, "s", 1)):
        if seconds >= size:
            return f"{seconds // size}{name} {seconds % size // part}{smaller}"
    return f"{span_ms / 1000:.1f}s"


def json_text(value: Any) -> str:
    return "" if value is None else msgspec.json.encode(value).decode()


def cut(text: str, chars_max: int = CELL_CHARS_MAX) -> str:
    return text if len(text) <= chars_max else text[: chars_max - 1] + "…"


def plain(text: str) -> Text:
    """Never markup, never an escape sequence."""
    return Text("".join(one if one.isprintable() or one == "\n" else f"\\x{ord(one):02x}" for one in text))
