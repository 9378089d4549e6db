"""One queue on the screen."""

from rich.table import Table
from rich.text import Text

from corvo.cli.screen.show import plain, state, when
from corvo.client.answers import QueueCleared, QueueDetail, QueueDraining

_STATUS_STYLES = {"active": "green", "paused": "yellow", "draining": "yellow", "drained": "cyan"}
_STATES = ("pending", "active", "scheduled", "retrying", "held", "dead", "completed", "cancelled")


def said(queue: str, status: str) -> Text:
    return plain(queue).append(f"  {status}")


def drained(queue: str, answer: QueueDraining) -> Text:
    left = f", {answer.active} still active" if answer.active else ""
    return said(queue, answer.status + left)


def cleared(queue: str, answer: QueueCleared) -> Text:
    return said(queue, f"{answer.status}, {answer.deleted} jobs deleted")


def queue(view: QueueDetail) -> Table:
    grid = Table(box=None, show_header=False, pad_edge=False)
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row("name", plain(view.name))
    grid.add_row("status", Text(view.status, _STATUS_STYLES.get(view.status, "")))
    grid.add_row("created", when(view.created_at))
    for name in _STATES:
        grid.add_row(state(name), str(getattr(view, name)))
    rows = {
        "left": str(view.left),
        "oldest pending": _age(view.oldest_pending_age_ms),
        "concurrency": f"{view.active} of {view.max_concurrency}" if view.max_concurrency else "",
        "throttle": _throttle(view),
        "kept": ", ".join(
            f"{name} {_span(getattr(view.retention, f'{name}_ms'))}" for name in ("completed", "dead", "cancelled")
        ),
        "total": f"{view.enqueued} enqueued, {view.completed_total} completed, {view.failed} attempts failed",
    }
    for name, text in rows.items():
        if text:
            grid.add_row(name, text)
    return grid


def _throttle(view: QueueDetail) -> str:
    if view.rate_limit is None or view.rate_window_ms is None:
        return ""
    room = f"{view.rate_room} left now" if view.rate_room else f"none left until {when(view.rate_room_at)}"
    return f"{view.rate_limit} per {_span(view.rate_window_ms)}, {room}"


def _age(age_ms: int | None) -> str:
    return "" if age_ms is None else f"{age_ms / 1000:.1f} s"


def _span(span_ms: int | None) -> str:
    """In the largest unit that gives a whole number."""
    if span_ms is None:
        return "forever"
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)):
        if span_ms % size == 0:
            return f"{span_ms // size}{unit}"
    return f"{span_ms}ms"
