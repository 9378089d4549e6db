"""Schedules on the screen. Text from outside is made harmless, as in `show.py`."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from corvo.cli.screen.show import columns, json_text, plain, when
from corvo.client.answers import DeletedSchedule, ScheduleView


def schedules(views: Sequence[ScheduleView]) -> Table:
    grid = columns("NAME", "CRON", "TIME ZONE", "QUEUE", "NEXT", "LAST", ">FIRED")
    for view in views:
        upcoming = Text("paused", "yellow") if view.paused else Text(when(view.next_at))
        texts = (plain(view.name), plain(view.cron), plain(view.timezone), plain(view.queue))
        grid.add_row(*texts, upcoming, when(view.last_slot), str(view.fired))
    return grid


def schedule(view: ScheduleView) -> Table:
    grid = Table(box=None, show_header=False, pad_edge=False)
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    catch_up = f"all, at most {view.catch_up_max}" if view.catch_up == "all" else view.catch_up
    rows: list[tuple[str, str | Text]] = [
        ("id", view.id),
        ("name", view.name),
        ("cron", view.cron),
        ("time zone", view.timezone),
        ("state", Text("paused", "yellow") if view.paused else Text("running", "green")),
        ("queue", view.queue),
        ("priority", view.priority),
        ("attempts", str(view.max_retries)),
        ("catch-up", catch_up),
        ("unique key", view.unique_key),
        ("payload", json_text(view.payload)),
        ("tags", json_text(view.tags)),
        ("created", when(view.created_at)),
        ("updated", when(view.updated_at)),
        ("fired", str(view.fired)),
        ("last slot", when(view.last_slot)),
        ("next slots", "\n".join(when(slot) for slot in view.next_slots)),
    ]
    for name, value in rows:
        if value:
            grid.add_row(name, value if isinstance(value, Text) else plain(value))
    return grid


def deleted(answer: DeletedSchedule) -> Text:
    return Text.assemble(plain(answer.name), "  ", answer.status)
