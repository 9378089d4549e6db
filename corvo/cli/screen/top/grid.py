"""Tables that fit a width: columns that do not fit are left out, the least important ones first. Pure.

Text from outside is made harmless here, once for all tables: no control character reaches the terminal.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from corvo.cli.screen.show import plain

GAP = 2


class Column(NamedTuple):
    name: str
    is_right: bool = False
    rank: int = 0  # columns with the highest rank are left out first
    width_min: int = 0  # narrower, it is left out; its heading is the least in any case
    width_max: int = 40
    is_optional: bool = False  # left out when all its cells are empty


class Cell(NamedTuple):
    text: str
    style: str = ""
    value: float | str | None = None  # what it is sorted by; None: its text


class Row(NamedTuple):
    key: str  # the row's identity from one look to the next
    cells: tuple[Cell, ...]
    kind: str = ""  # what the key names: queue, job, worker, shard
    state: str = ""  # of a job or a queue: what can be done with it


class Placed(NamedTuple):
    """A column on the screen."""

    column: int  # its number
    width: int


def sorted_rows(rows: Iterable[Row], column: int | None, is_reversed: bool) -> list[Row]:
    """Without a column they keep their order. Equal rows are in the order of their keys, in both directions."""
    if column is None:
        return list(rows)
    by_key = sorted(rows, key=lambda row: row.key)
    return sorted(by_key, key=lambda row: _sort_key(row.cells[column]), reverse=is_reversed)


def matching(rows: Iterable[Row], words: str) -> list[Row]:
    """Rows in which every word occurs somewhere; case is ignored."""
    wanted = words.lower().split()
    return [row for row in rows if all(any(word in cell.text.lower() for cell in row.cells) for word in wanted)]


def layout(columns: Sequence[Column], rows: Sequence[Row], width: int) -> list[Placed]:
    """Which columns are shown, and how wide. Every column gets what its text needs; what is missing is taken from the
    widest, down to its least."""
    texts = [_widest(column, index, rows) for index, column in enumerate(columns)]
    # One more than the name: room for the arrow of the sorted column, so that sorting moves nothing.
    needs = [max(text, cell_len(column.name) + 1) for text, column in zip(texts, columns, strict=True)]
    leasts = [_least(column, text) for text, column in zip(texts, columns, strict=True)]
    shown = [
        index
        for index, column in enumerate(columns)
        if not column.is_optional or any(row.cells[index].text for row in rows)
    ]
    while len(shown) > 1 and sum(leasts[index] for index in shown) + GAP * (len(shown) - 1) > width:
        shown.remove(max(shown, key=lambda index: (columns[index].rank, index)))
    widths = {index: needs[index] for index in shown}
    excess = sum(widths.values()) + GAP * (len(shown) - 1) - width
    while excess > 0:
        widest = max(shown, key=lambda index: widths[index] - leasts[index])
        if widths[widest] <= leasts[widest]:
            widths[widest] = max(1, widths[widest] - excess)  # a single column, wider than the screen
            break
        widths[widest] -= 1
        excess -= 1
    return [Placed(index, widths[index]) for index in shown]


def heading(columns: Sequence[Column], placed: Sequence[Placed], sorted_by: int | None, is_reversed: bool) -> Text:
    """The column that sorts is underlined and has an arrow, where there is room for one."""
    text = Text()
    for place, (number, width) in enumerate(placed):
        column = columns[number]
        name = column.name
        if number == sorted_by:
            arrow = "↓" if is_reversed else "↑"
            name = name + arrow if cell_len(name) < width else name
        style = "bold underline" if number == sorted_by else "bold"
        padding = " " * (width - cell_len(name))
        text.append(" " * GAP if place else "")
        text.append(padding if column.is_right else "").append(name, style).append("" if column.is_right else padding)
    return text


def line(columns: Sequence[Column], placed: Sequence[Placed], row: Row) -> Text:
    text = Text()
    for place, (number, width) in enumerate(placed):
        text.append(" " * GAP if place else "")
        text.append(_fitted(row.cells[number].text, width, columns[number].is_right), row.cells[number].style)
    return text


def _sort_key(cell: Cell) -> tuple[int, float, str]:
    """Numbers before words; a cell without a value is its text."""
    value = cell.text if cell.value is None else cell.value
    return (1, 0.0, value.lower()) if isinstance(value, str) else (0, float(value), "")


def _widest(column: Column, index: int, rows: Sequence[Row]) -> int:
    return min(max((cell_len(_harmless(row.cells[index].text)) for row in rows), default=0), column.width_max)


def _least(column: Column, text: int) -> int:
    """A number is shown whole or not at all; words may be cut."""
    name = cell_len(column.name)
    return max(name, text) if column.is_right else max(name, min(text, column.width_min))


def _fitted(text: str, width: int, is_right: bool) -> str:
    text = _harmless(text)
    length = cell_len(text)
    if length > width:
        return set_cell_size(text, width - 1) + "…"
    padding = " " * (width - length)
    return padding + text if is_right else text + padding


def _harmless(text: str) -> str:
    return plain(text.replace("\n", " ")).plain
