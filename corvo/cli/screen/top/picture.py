"""All lines of a screen: header, panes, table or text, and the line at the bottom. Pure.

A screen has the lines that the terminal has: every line is cut to the width, and the table gets what the rest leaves.
"""

from rich.text import Text

from corvo.cli.screen.show import plain
from corvo.cli.screen.top import detail, grid
from corvo.cli.screen.top.actions import possible
from corvo.cli.screen.top.header import Link, connecting, header
from corvo.cli.screen.top.looks import Past
from corvo.cli.screen.top.panes import NUMBERS, PANES, SEARCH, Pane
from corvo.cli.screen.top.session import Session

WIDTH_MIN, HEIGHT_MIN = 40, 10  # a smaller terminal cuts the screen off
MARK = "*"


def picture(session: Session, past: Past | None, link: Link, size: tuple[int, int]) -> list[Text]:
    """The table is drawn for the place of the session; `session.arrange` has been called for this look."""
    width, height = max(size[0], WIDTH_MIN), max(size[1], HEIGHT_MIN)
    if past is None:
        return _filled(connecting(link.trouble, link), height)
    above = header(past, link, width, height)
    # With many alerts on a small screen, the table keeps three rows.
    above = [*above[: height - 7], _tabs(session, width), _trail(session, past, width)]
    room = height - len(above) - 1
    body = _table(session, past, width, room) if session.place.pane else _text(session, past, width, room)
    return [*_filled([*above, *body], height - 1), _bottom(session, width)]


def table_top(session: Session, past: Past, link: Link, size: tuple[int, int]) -> int:
    """The line of the first row, for clicks."""
    width, height = max(size[0], WIDTH_MIN), max(size[1], HEIGHT_MIN)
    return min(len(header(past, link, width, height)), height - 7) + 3


def snapshot(past: Past, link: Link, width: int) -> list[Text]:
    """For a pipe: header and three tables, with all their rows."""
    lines = [*header(past, link, width, 10**6)]
    for name in ("queues", "shards", "workers"):
        pane = PANES[name]
        rows = pane.rows(past)
        placed = grid.layout(pane.columns, rows, width)
        lines += [Text(), grid.heading(pane.columns, placed, None, False)]
        lines += [grid.line(pane.columns, placed, row) for row in rows]
    for line in lines:
        line.rstrip()
    return lines


def _filled(lines: list[Text], height: int) -> list[Text]:
    return [*lines[:height], *(Text() for _ in range(height - len(lines)))]


def _tabs(session: Session, width: int) -> Text:
    first = session.places[0].name
    text = Text()
    for number, name in NUMBERS.items():
        text.append("  " if text else "")
        text.append(f"{number} {name}", "bold reverse" if name == first else "")
    if text.cell_len > width:  # the numbers are enough for those who know them
        text = Text(f"{_number(first)} {first}", "bold reverse").append(f"  1-{len(NUMBERS)} Tab panes")
    return _cut(text, width)


def _number(name: str) -> str:
    return next((number for number, one in NUMBERS.items() if one == name), "")


def _trail(session: Session, past: Past, width: int) -> Text:
    """Where one is at the left, how much of how much at the right."""
    right = _amount(session, past)
    left = Text(session.trail(), "bold")
    left.truncate(max(0, width - len(right) - 1), overflow="ellipsis")
    left.pad_right(max(0, width - left.cell_len - len(right)))
    return left.append(right, "dim")


def _amount(session: Session, past: Past) -> str:
    pane = session.place.pane
    if pane is None:
        return ""
    marked = f"{len(session.marked)} marked · " if session.marked else ""
    shown = len(session.rows)
    row = f"{session.place.index + 1}/{shown}" if shown else "0"
    jobs = past.look.jobs
    if pane.filter_kind == SEARCH and jobs is not None and jobs.total > shown:
        return f"{marked}{row} of {jobs.total}{'' if jobs.total_is_exact else '+'}"
    return f"{marked}{row}"


def _table(session: Session, past: Past, width: int, room: int) -> list[Text]:
    pane, place = session.place.pane, session.place
    assert pane is not None
    indent = 2 if session.marked else 0
    placed = grid.layout(pane.columns, session.rows, width - indent)
    by = next((index for index, column in enumerate(pane.columns) if column.name == place.sort), None)
    head = grid.heading(pane.columns, placed, by, place.is_reversed)
    lines = [_cut(Text(" " * indent).append_text(head), width)]
    if not session.rows:
        return [*lines, _cut(plain(_nothing(session, pane, past)), width)]
    for number in session.window(room - 1, len(session.rows)):
        row = session.rows[number]
        line = Text((MARK if row.key in session.marked else "").ljust(indent))
        line.append_text(grid.line(pane.columns, placed, row))
        line.truncate(width)
        if number == place.index:
            line.pad_right(width - line.cell_len)
            line = Text(line.plain, "reverse")  # one look for the whole row: colours differ too much when reversed
        lines.append(line)
    return lines


def _nothing(session: Session, pane: Pane, past: Past) -> str:
    look = past.look
    if refusal := look.refusals.get(pane.part):
        return refusal
    if getattr(look, pane.part) is None:
        return "asking the server"
    if session.place.filter:
        return "nothing matches the filter; / changes it, Esc removes it"
    return {
        "queues": "no queues yet: corvo enqueue hello '{}' makes one",
        "running": "no job is running",
        "workers": "no worker has asked for a job lately",
        "failures": "no job has failed: nothing is dead, nothing waits to be retried",
        "held": "no job waits for approval",
        "errors": "no errors",
        "jobs": "no jobs",
    }.get(pane.name, "nothing")


def _text(session: Session, past: Past, width: int, room: int) -> list[Text]:
    place = session.place
    if place.name == "help":
        lines = detail.help_lines(width)
    elif place.name == "shard":
        groups = past.look.status.groups if past.look.status else []
        shard = next((group for group in groups if str(group.shard) == place.subject), None)
        lines = detail.shard_lines(shard, width) if shard else [plain(f"there is no shard {place.subject}")]
    elif past.look.job is not None and past.look.job.id != place.subject:
        lines = [Text("asking for the job")]  # of the place before this one
    else:
        lines = detail.job_lines(past.look, width)
    shown = session.window(room, len(lines))
    below = len(lines) - shown.stop
    found = [lines[number] for number in shown]
    if below > 0 and found:
        found[-1] = Text(f"… {below + 1} more lines: ↓", "dim")
    return found


def _bottom(session: Session, width: int) -> Text:
    """The question, else what happened, else the keys that do something here: the most important ones first."""
    if session.question is not None:
        return _cut(plain(session.question.sentence), width, "bold reverse")
    if session.message:
        return _cut(plain(session.message.replace("\n", " ")), width, "bold")
    hints = [] if session.is_read_only else [f"{one.key} {one.name}" for one in possible(session.row)]
    if session.place.pane is not None:
        hints += ["Enter open", "/ filter", "< > sort"]
    hints += ["Esc back"] if len(session.places) > 1 or session.place.filter else []
    hints += ["? help", "q quit", "p freeze", "+ - interval", ": command", "Space mark"]
    text = ""
    for hint in hints:
        longer = f"{text} · {hint}" if text else hint
        if len(longer) > width:
            break
        text = longer
    return Text(text, "dim")


def _cut(text: Text, width: int, style: str = "") -> Text:
    if style:
        text.stylize(style)
    text.truncate(width, overflow="ellipsis")
    return text
