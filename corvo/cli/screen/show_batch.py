"""Batches on the screen. Text from outside is made harmless, as in `show.py`."""

from rich.table import Table
from rich.text import Text

from corvo.cli.screen.show import json_text, plain, when
from corvo.client.answers import BatchMade, BatchView, CallbackView, Sealed

_STYLES = {"open": "yellow", "sealed": "cyan", "completed": "green"}


def made(answer: BatchMade) -> Text:
    return plain(answer.batch_id)


def sealed(batch_id: str, answer: Sealed) -> Text:
    return plain(f"{batch_id}  {answer.status}")


def batch(view: BatchView) -> Table:
    grid = Table(box=None, show_header=False, pad_edge=False)
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    rows: list[tuple[str, str | Text]] = [
        ("id", view.id),
        ("state", Text(view.state, _STYLES.get(view.state, ""))),
        ("description", view.description),
        ("jobs", str(view.total)),
        *((name, str(getattr(view, name))) for name in ("pending", "completed", "dead", "cancelled", "deleted")),
        ("created", when(view.created_at)),
        ("finished", when(view.finished_at)),
        ("on complete", _callback(view.on_complete)),
        ("on success", _callback(view.on_success)),
        ("on failure", _callback(view.on_failure)),
    ]
    for name, value in rows:
        if value:
            grid.add_row(name, value if isinstance(value, Text) else plain(value))
    return grid


def _callback(view: CallbackView | None) -> str:
    if view is None:
        return ""
    return "  ".join(filter(None, (view.queue, json_text(view.payload), view.job_id)))
