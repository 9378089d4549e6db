"""What `corvo top` shows: a pure function of two snapshots of the server.

Counters of the server only grow; a rate is the difference of two snapshots divided by the time between them. After a
restart of the server a counter may be smaller: that is a rate of zero, not a negative one. The first snapshot uses the
server's own rates, of the last minute.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from corvo.cli.screen.show import columns, cut, headline, plain, restarts
from corvo.client.answers import ClusterStatus, QueueView, ShardView, WorkerView
from corvo.model.timestamps import parse_rfc3339

SAMPLES_MAX = 60
WIDTH_MIN, HEIGHT_MIN = 60, 16  # a smaller terminal cuts the screen off
_FIXED_LINES = 12  # headline, three rates, three headings, three blank lines, status line, and one to spare
_RATED = ("enqueued", "completed", "failed")
_BARS = "▁▂▃▄▅▆▇█"


class Look(msgspec.Struct, frozen=True):
    """One snapshot of the server."""

    taken_s: float  # monotonic
    now_ns: int  # since 1970, for ages
    status: ClusterStatus
    queues: list[QueueView]
    workers: list[WorkerView]


class Rates(msgspec.Struct, frozen=True):
    """Per second, over all queues."""

    enqueued: float = 0.0
    completed: float = 0.0
    failed: float = 0.0


class Line(NamedTuple):
    """The status line at the bottom."""

    interval_s: float
    is_frozen: bool = False
    trouble: str = ""  # why the snapshot is stale
    age_s: float = 0.0


def rates(before: Look | None, after: Look) -> Rates:
    if before is None:
        return Rates(*(sum(getattr(queue, f"{name}_per_s") for queue in after.queues) for name in _RATED))
    old = {queue.name: queue for queue in before.queues}
    span = after.taken_s - before.taken_s
    sums = [0.0, 0.0, 0.0]
    for queue in after.queues:
        # A queue that is new in the second snapshot started at zero.
        for place, name in enumerate(("enqueued", "completed_total", "failed")):
            then = getattr(old[queue.name], name) if queue.name in old else 0
            sums[place] += per_second(then, getattr(queue, name), span)
    return Rates(*sums)


def per_second(then: float, now: float, span_s: float) -> float:
    return max(0.0, now - then) / span_s if span_s > 0 else 0.0


def picture(before: Look | None, after: Look, history: Sequence[Rates], line: Line, size: tuple[int, int]) -> Group:
    """The whole screen, within the given width and height."""
    width, height = max(size[0], WIDTH_MIN), max(size[1], HEIGHT_MIN)
    wanted = [len(after.queues), len(after.status.groups), len(after.workers)]
    troubles = _troubles(after)
    spaces = allot(wanted, height - _FIXED_LINES - len(troubles))
    parts: list[RenderableType] = [_headline(after.status, line), *troubles, *_sparklines(history, width)]
    for grid in (
        _queues(before, after, spaces[0]),
        _shards(before, after, spaces[1]),
        _workers(after, spaces[2], width),
    ):
        parts += [Text(), grid]
    parts.append(_bottom(line))
    return Group(*parts)


def allot(wanted: Sequence[int], space: int) -> list[int]:
    """Rows for each section, dealt out one by one, so that a long list cannot push a short one off the screen."""
    given = [0] * len(wanted)
    while space > 0 and given != list(wanted):
        for number, want in enumerate(wanted):
            if given[number] < want and space > 0:
                given[number] += 1
                space -= 1
    return given


def sparkline(values: Sequence[float]) -> str:
    highest = max(values, default=0.0)
    if highest <= 0:
        return _BARS[0] * len(values)
    return "".join(_BARS[min(len(_BARS) - 1, int(value / highest * len(_BARS)))] for value in values)


def short(number: float) -> str:
    """At most five characters: 0, 0.4, 17, 999, 12.3k, 456k, 1.2M."""
    if number < 10 and number != int(number):
        return f"{number:.1f}"
    if number < 1000:
        return f"{number:.0f}"
    for unit in "kMG":
        number /= 1000
        if number < 99.95:
            return f"{number:.1f}{unit}"
        if number < 999.5:
            return f"{number:.0f}{unit}"
    return f"{number / 1000:.0f}T"


def age(moment: str, now_ns: int) -> str:
    try:
        seconds = max(0, now_ns - parse_rfc3339(moment)) // 10**9
    except ValueError:
        return "?"
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def _headline(status: ClusterStatus, line: Line) -> Text:
    text = headline(status)
    if line.trouble:
        text = Text.assemble((f"STALE {line.age_s:.0f} s ", "bold red"), text)
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _troubles(after: Look) -> list[Text]:
    """Restarts and the last incident in one line; none where nothing happened."""
    status = after.status
    if not any(status.restarts.values()) and not status.incidents:
        return []
    text = Text(f"restarts: {restarts(status)}", "yellow", no_wrap=True, overflow="ellipsis")
    if status.incidents:
        last = status.incidents[-1]
        text.append(f" · last {age(last.at, after.now_ns)} ago: {last.process}, ").append_text(plain(last.reason))
    return [text]


def _sparklines(history: Sequence[Rates], width: int) -> list[Text]:
    shown = history[-max(1, min(SAMPLES_MAX, width - 20)) :]
    latest = shown[-1] if shown else Rates()
    return [
        Text.assemble(f"{name + '/s':<12}{short(getattr(latest, name)):>6}  ", (_spark_of(shown, name), style))
        for name, style in (("enqueued", "yellow"), ("completed", "green"), ("failed", "red"))
    ]


def _spark_of(history: Sequence[Rates], name: str) -> str:
    return sparkline([getattr(one, name) for one in history])


def _queues(before: Look | None, after: Look, rows: int) -> Table:
    grid = columns(
        *("QUEUE", ">PEND", ">ACTIVE", ">SCHED", ">RETRY", ">DEAD", ">DONE", ">ENQ/S", ">DONE/S"),
    )
    old = {queue.name: queue for queue in before.queues} if before else {}
    span = after.taken_s - before.taken_s if before else 0.0
    ordered = sorted(after.queues, key=lambda queue: (-_unfinished(queue), queue.name))
    for queue in ordered[: _full_rows(rows, len(ordered))]:
        then = old.get(queue.name)
        counts = (queue.pending, queue.active, queue.scheduled, queue.retrying, queue.dead, queue.completed)
        grid.add_row(
            plain(cut(queue.name, 22)).append("" if queue.status == "active" else " ‖", "yellow"),
            *map(short, counts),
            *map(short, _rates_of(queue, then, span)),
        )
    return _with_rest(grid, rows, len(ordered))


def _rates_of(queue: QueueView, then: QueueView | None, span_s: float) -> tuple[float, float]:
    """Enqueued and completed per second; in the first snapshot the server's own rates."""
    if not span_s:
        return queue.enqueued_per_s, queue.completed_per_s
    return (
        per_second(then.enqueued if then else 0, queue.enqueued, span_s),
        per_second(then.completed_total if then else 0, queue.completed_total, span_s),
    )


def _unfinished(queue: QueueView) -> int:
    return queue.pending + queue.active + queue.scheduled + queue.retrying + queue.held


def _shards(before: Look | None, after: Look, rows: int) -> Table:
    is_cluster = after.status.mode == "cluster"
    grid = columns(
        *("SHARD", "LEADER", ">TERM", ">LOG", ">OPS/S", ">BATCH", ">FSYNC MS", ">WAITING", ">LAG"),
        *(("REPLICAS",) if is_cluster else ()),
    )
    old = {shard.shard: shard for shard in before.status.groups} if before else {}
    span = after.taken_s - before.taken_s if before else 0.0
    shards = after.status.groups
    for shard in shards[: _full_rows(rows, len(shards))]:
        replicas = [_replica_lags(shard)] if is_cluster and not shard.error else []
        grid.add_row(*_shard_cells(shard, old.get(shard.shard), span), *replicas)
    return _with_rest(grid, rows, len(shards))


def _shard_cells(shard: ShardView, then: ShardView | None, span: float) -> list[Text | str]:
    if shard.error:
        return [str(shard.shard), Text.assemble((cut(shard.error, 24), "red"))]
    return [
        str(shard.shard),
        plain(cut(shard.leader_id, 24)) if shard.leader_id else Text("none", "red"),
        str(shard.term),
        short(shard.log_entries),
        short(per_second(then.operations_total if then else shard.operations_total, shard.operations_total, span)),
        f"{shard.batch_size_avg:.1f}",
        f"{shard.sync_ms_avg:.2f}",
        short(shard.waiting),
        short(shard.mirror_lag_entries),
    ]


def _replica_lags(shard: ShardView) -> Text:
    """How many entries each follower is behind, ordered by name; ? does not answer."""
    text = Text()
    for replica in shard.replicas:
        if replica.node_id == shard.leader_id:
            continue
        text.append("/" if text else "")
        text.append("?" if replica.lag is None else short(replica.lag), "" if replica.error is None else "red")
    return text


def _workers(after: Look, rows: int, width: int) -> Table:
    grid = columns("WORKER", "HOST", "QUEUES", ">SEEN", "WAITING", ">ACTIVE")
    cell = max(12, (width - 26) // 3)
    for worker in after.workers[: _full_rows(rows, len(after.workers))]:
        grid.add_row(
            plain(cut(worker.id, cell)),
            plain(cut(worker.hostname, cell)),
            plain(cut(",".join(worker.queues), cell)),
            age(worker.last_heartbeat, after.now_ns),
            "yes" if worker.is_waiting else "",
            str(worker.active_jobs),
        )
    return _with_rest(grid, rows, len(after.workers))


def _full_rows(rows: int, count: int) -> int:
    """One row is reserved for the number of hidden ones."""
    return count if count <= rows else max(0, rows - 1)


def _with_rest(grid: Table, rows: int, count: int) -> Table:
    hidden = count - _full_rows(rows, count)
    if hidden and rows > 0:
        grid.add_row(Text(f"… {hidden} more", "dim"))
    if not count:
        grid.columns[0].header = Text.assemble(str(grid.columns[0].header), (" (none)", "dim"))
    return grid


def _bottom(line: Line) -> Text:
    keys = f"\nq quit · p {'continue' if line.is_frozen else 'freeze'} · +/- every {line.interval_s:g} s"
    if line.trouble:
        return Text.assemble(keys, (f" · {line.trouble}, retrying", "red"), no_wrap=True, overflow="ellipsis")
    return Text.assemble(keys, (" · FROZEN" if line.is_frozen else "", "yellow"), no_wrap=True, overflow="ellipsis")
