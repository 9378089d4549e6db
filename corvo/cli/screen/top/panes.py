"""The panes: which rows stand in them, from two looks. Pure. Panes of jobs are in `jobs`."""

from collections.abc import Callable
from typing import NamedTuple

from corvo.cli.screen.figures import age, per_second, seconds_since, short
from corvo.cli.screen.top.grid import Cell, Column, Row
from corvo.cli.screen.top.jobs import (
    FAILURE_COLUMNS,
    HELD_COLUMNS,
    JOBS_COLUMNS,
    RUNNING_COLUMNS,
    failure_rows,
    held_rows,
    job_rows,
    running_rows,
)
from corvo.cli.screen.top.looks import Past
from corvo.client.answers import QueueView, ShardView

SEARCH, NAMES = "search", "names"  # what `/` does: the server searches, or rows are matched here


class Pane(NamedTuple):
    name: str
    columns: tuple[Column, ...]
    rows: Callable[[Past], list[Row]]
    part: str  # of a look, which it shows
    filter_kind: str


def queue_rows(past: Past) -> list[Row]:
    """Those with the most unfinished jobs first."""
    old = {queue.name: queue for queue in (past.before and past.before.queues) or []}
    busiest = sorted(past.look.queues or [], key=lambda queue: (-unfinished(queue), queue.name))
    return [_queue_row(queue, old.get(queue.name), past) for queue in busiest]


def worker_rows(past: Past) -> list[Row]:
    now = past.look.now_ns
    return [
        Row(
            worker.id,
            (
                Cell(worker.id),
                Cell(worker.hostname),
                Cell(",".join(worker.queues)),
                Cell(f"{worker.active_jobs}", "cyan" if worker.active_jobs else "", worker.active_jobs),
                Cell(str(worker.pool_size or ""), value=worker.pool_size),
                Cell("waiting" if worker.is_waiting else ""),
                Cell(age(worker.last_heartbeat, now), value=seconds_since(worker.last_heartbeat, now) or 0.0),
                Cell(age(worker.started_at, now), value=seconds_since(worker.started_at, now) or 0.0),
                Cell(worker.version),
            ),
            "worker",
        )
        for worker in past.look.workers or []
    ]


def shard_rows(past: Past) -> list[Row]:
    status = past.look.status
    old = {shard.shard: shard for shard in past.before.status.groups} if past.before and past.before.status else {}
    return [_shard_row(shard, old.get(shard.shard), past.span_s) for shard in (status.groups if status else [])]


def error_rows(past: Past) -> list[Row]:
    now = past.look.now_ns
    groups = past.look.errors.groups if past.look.errors else []
    return [
        Row(
            group.sample_job_id,
            (
                Cell(short(group.count), value=group.count),
                Cell(group.queue),
                Cell(age(group.last_at, now), value=seconds_since(group.last_at, now) or 0.0),
                Cell(age(group.first_at, now), value=seconds_since(group.first_at, now) or 0.0),
                Cell(group.message, "red"),
                Cell(group.sample_job_id),
            ),
            "error",
        )
        for group in groups
    ]


def _count(number: int, style: str = "") -> Cell:
    return Cell(short(number), style if number else "", number)


def _rate(number: float) -> Cell:
    return Cell(short(number), value=number)


def _queue_row(queue: QueueView, then: QueueView | None, past: Past) -> Row:
    rates = (queue.enqueued_per_s, queue.completed_per_s, queue.failed_per_s)
    if past.before is not None and past.before.queues is not None:
        rates = (
            per_second(then.enqueued if then else 0, queue.enqueued, past.span_s),
            per_second(then.completed_total if then else 0, queue.completed_total, past.span_s),
            per_second(then.failed if then else 0, queue.failed, past.span_s),
        )
    oldest_ms = queue.oldest_pending_age_ms or 0
    cells = (
        Cell(queue.name),
        Cell(queue.status, "" if queue.status == "active" else "yellow"),
        _count(queue.pending),
        _count(queue.active, "cyan"),
        _count(queue.scheduled),
        _count(queue.retrying, "magenta"),
        _count(queue.held, "yellow"),
        _count(queue.dead, "red"),
        _count(queue.completed),
        *map(_rate, rates),
        Cell(age(queue.oldest_pending_at, past.look.now_ns), value=oldest_ms),
        Cell(limits(queue)),
    )
    return Row(queue.name, cells, "queue", queue.status)


def limits(queue: QueueView) -> str:
    """`8 at once, 100/60s`; nothing where a queue has no limits."""
    found = [] if queue.max_concurrency is None else [f"{queue.max_concurrency} at once"]
    if queue.rate_limit is not None and queue.rate_window_ms:
        found.append(f"{queue.rate_limit}/{queue.rate_window_ms / 1000:g}s")
    return ", ".join(found)


def unfinished(queue: QueueView) -> int:
    return queue.pending + queue.active + queue.scheduled + queue.retrying + queue.held


def _shard_row(shard: ShardView, then: ShardView | None, span_s: float) -> Row:
    number = Cell(str(shard.shard), value=shard.shard)
    if shard.error:
        blanks = (Cell(""),) * 10
        return Row(str(shard.shard), (number, Cell("✖ away", "bold red"), *blanks, Cell(shard.error, "red")), "shard")
    done = per_second(then.operations_total if then else shard.operations_total, shard.operations_total, span_s)
    lag = shard.commit_index - shard.applied_index
    cells = (
        number,
        Cell(shard.state),
        Cell(shard.leader_id or "✖ none", "" if shard.leader_id else "bold red"),
        Cell(str(shard.term), value=shard.term),
        _rate(done),
        Cell(f"{shard.batch_size_avg:.1f}", value=shard.batch_size_avg),
        Cell(f"{shard.sync_ms_avg:.2f}", value=shard.sync_ms_avg),
        _count(shard.waiting),
        Cell(followers(shard)),
        Cell(short(lag), value=lag),
        _count(shard.mirror_lag_entries),
        _count(shard.log_entries),
        Cell(""),
    )
    return Row(str(shard.shard), cells, "shard")


def followers(shard: ShardView) -> str:
    """How many entries each follower is behind, ordered by name; ? does not answer."""
    others = [replica for replica in shard.replicas if replica.node_id != shard.leader_id]
    return "/".join("?" if one.lag is None else short(one.lag) for one in others)


QUEUE_COLUMNS = (
    Column("QUEUE", width_min=20, width_max=60),
    Column("STATUS", rank=1),
    Column("PEND", True),
    Column("ACTIVE", True),
    Column("SCHED", True, rank=6),
    Column("RETRY", True, rank=2),
    Column("HELD", True, rank=5),
    Column("DEAD", True, rank=1),
    Column("DONE", True, rank=7),
    Column("ENQ/S", True),
    Column("DONE/S", True),
    Column("FAIL/S", True, rank=4),
    Column("OLDEST", True, rank=3),
    Column("LIMITS", rank=8, is_optional=True),
)
WORKER_COLUMNS = (
    Column("WORKER", width_min=12, width_max=48),
    Column("HOST", rank=2, width_min=8),
    Column("QUEUES", width_min=12, width_max=60),
    Column("ACTIVE", True),
    Column("POOL", True, rank=4, is_optional=True),
    Column("FETCH", rank=1, is_optional=True),
    Column("SEEN", True),
    Column("UP", True, rank=3),
    Column("VERSION", rank=5, width_max=20, is_optional=True),
)
SHARD_COLUMNS = (
    Column("SHARD"),
    Column("HERE", width_min=8),
    Column("LEADER", width_min=8, width_max=24),
    Column("TERM", True),
    Column("OPS/S", True),
    Column("BATCH", True, rank=4),
    Column("FSYNC MS", True, rank=2),
    Column("WAITING", True, rank=5),
    Column("FOLLOWERS", True, rank=1, is_optional=True),
    Column("APPLY", True, rank=3),
    Column("READ.DB", True),
    Column("LOG", True, rank=6),
    Column("TROUBLE", width_min=8, width_max=60, is_optional=True),
)
ERROR_COLUMNS = (
    Column("COUNT", True),
    Column("QUEUE", width_min=10, width_max=32),
    Column("LAST", True),
    Column("FIRST", True, rank=2),
    Column("ERROR", width_min=20, width_max=160),
    Column("LAST JOB", rank=3, width_min=34),
)

PANES = {
    pane.name: pane
    for pane in (
        Pane("queues", QUEUE_COLUMNS, queue_rows, "queues", NAMES),
        Pane("running", RUNNING_COLUMNS, running_rows, "jobs", SEARCH),
        Pane("workers", WORKER_COLUMNS, worker_rows, "workers", NAMES),
        Pane("failures", FAILURE_COLUMNS, failure_rows, "jobs", SEARCH),
        Pane("held", HELD_COLUMNS, held_rows, "jobs", SEARCH),
        Pane("shards", SHARD_COLUMNS, shard_rows, "status", NAMES),
        Pane("errors", ERROR_COLUMNS, error_rows, "errors", NAMES),
        Pane("jobs", JOBS_COLUMNS, job_rows, "jobs", SEARCH),
    )
}
NUMBERS = {str(number): name for number, name in enumerate(PANES, 1)}
