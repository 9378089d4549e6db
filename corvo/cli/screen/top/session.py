"""Where the person is: the pane, the row, the filter, the sort, what is marked and what is asked. Pure.

`press` takes keys by the names that textual gives them. What a key wants from outside (a request, a line to be typed,
an action) is left in a field, from where `app` takes it.
"""

import time
from collections.abc import Callable

import msgspec

from corvo.cli.screen.show import plain
from corvo.cli.screen.top.actions import KEYS, MARKS_MAX, Impossible, Question, question_of
from corvo.cli.screen.top.filters import BadFilter, parse_filter, search_of, word
from corvo.cli.screen.top.grid import Row, matching, sorted_rows
from corvo.cli.screen.top.jobs import SERVER_SORTS
from corvo.cli.screen.top.looks import Past
from corvo.cli.screen.top.panes import NAMES, NUMBERS, PANES, SEARCH, Pane
from corvo.client.bodies import SearchBody

INTERVALS_S = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
INTERVAL_S_MIN, INTERVAL_S_MAX = INTERVALS_S[0], INTERVALS_S[-1]
TEXTS = ("job", "shard", "help")  # places that are no tables


class Place(msgspec.Struct):
    """A step of the way that Esc goes back."""

    name: str  # of a pane, or one of TEXTS
    filter: str = ""
    subject: str = ""  # a job's id, a shard's number
    sort: str | None = None  # heading of a column; None: the pane's own order
    is_reversed: bool = False
    cursor: str = ""  # key of the row, which it follows when the order changes; empty: it stays at the top
    index: int = 0  # of that row; where the cursor stays when the row is gone
    offset: int = 0  # first row or line on the screen

    @property
    def pane(self) -> Pane | None:
        return PANES.get(self.name)


class Wants(msgspec.Struct, frozen=True):
    """What the place needs beside the header's answers."""

    place: str
    search: SearchBody | None = None
    job: str = ""
    errors: bool = False


class Session:
    def __init__(
        self, interval_s: float = 1.0, is_read_only: bool = False, clock_ns: Callable[[], int] = time.time_ns
    ) -> None:
        self.interval_s = interval_s
        self.is_read_only = is_read_only
        self.is_frozen = False
        self.is_over = False
        self.places = [Place("queues")]
        self.rows: list[Row] = []
        self.marked: dict[str, None] = {}  # ids of jobs, in the order in which they were marked
        self.message = ""
        self.question: Question | None = None
        # For the one who drives it, who takes them and sets them back.
        self.prompt = ""  # "/" or ":": a line is to be typed
        self.confirmed: Question | None = None
        self.is_due = False  # the answers on the screen are those of another place
        self.page = 10  # rows of the screen, as they were drawn last
        self._clock_ns = clock_ns

    @property
    def place(self) -> Place:
        return self.places[-1]

    @property
    def row(self) -> Row | None:
        """The row that keys act on. A job's own page has one too."""
        if self.place.name in TEXTS:
            return self.rows[0] if self.rows else None
        return self.rows[self.place.index] if self.place.index < len(self.rows) else None

    def wants(self) -> Wants:
        place = self.place
        if place.pane is not None and place.pane.filter_kind == SEARCH:
            sort = SERVER_SORTS.get(place.sort or "")
            body = search_of(place.name, place.filter, sort, place.is_reversed, self._clock_ns())
            return Wants(place.name, search=body)
        return Wants(place.name, job=place.subject if place.name == "job" else "", errors=place.name == "errors")

    def arrange(self, past: Past) -> None:
        """Rows of the place, from the newest look. The cursor stays on its row."""
        place, pane = self.place, self.place.pane
        if pane is None:
            job = past.look.job
            is_here = place.name == "job" and job is not None and job.id == place.subject
            self.rows = [Row(job.id, (), "job", job.state)] if job is not None and is_here else []
            return
        rows = pane.rows(past)
        if pane.filter_kind == NAMES:
            rows = matching(rows, place.filter)
        if place.sort is not None and not (pane.filter_kind == SEARCH and place.sort in SERVER_SORTS):
            rows = sorted_rows(rows, _column(pane, place.sort), place.is_reversed)
        self.rows = rows
        if place.cursor:
            found = next((number for number, row in enumerate(rows) if row.key == place.cursor), None)
            self._put_cursor(place.index if found is None else found)
        else:
            place.index = 0

    def press(self, key: str) -> None:
        if self.question is not None:
            self._answer(key)
            return
        self.message = ""
        if key in NUMBERS:
            self.go(NUMBERS[key])
        elif key in KEYS:
            self._ask(key)
        elif (act := self._keys().get(key)) is not None:
            act()

    def go(self, name: str, filter: str = "", subject: str = "") -> None:
        """A pane of its own: the way back to where one was ends."""
        self.places = [Place(name, filter, subject)]
        self._moved()

    def enter(self, place: Place) -> None:
        self.places.append(place)
        self._moved()

    def set_filter(self, text: str) -> None:
        """Of the line that was typed. BadFilter with a sentence changes nothing."""
        pane = self.place.pane
        if pane is None:
            raise BadFilter("there is nothing to filter here")
        if pane.filter_kind == SEARCH:
            parse_filter(text, self._clock_ns())
        self.place.filter = text.strip()
        self.place.index = self.place.offset = 0
        self.place.cursor = ""
        self.is_due = True

    def set_sort(self, heading: str) -> None:
        pane = self.place.pane
        names = [column.name for column in pane.columns] if pane else []
        if heading.upper() not in names:
            raise BadFilter(
                f"there is no column {heading!r} here" + (f"; columns are {', '.join(names)}" if names else "")
            )
        self.place.sort = heading.upper()
        self.is_due = True

    def set_interval(self, seconds: float) -> None:
        self.interval_s = min(INTERVAL_S_MAX, max(INTERVAL_S_MIN, seconds))

    def ask(self, question: Question) -> None:
        if self.is_read_only:
            self.message = "read-only: start corvo top without --read-only to act"
        else:
            self.question = question

    def scroll(self, lines: int) -> None:
        """By the wheel, or by keys on a page of text."""
        if self.place.name in TEXTS:
            self.place.offset = max(0, self.place.offset + lines)
        else:
            self._put_cursor(self.place.index + lines)

    def point_at(self, line: int) -> None:
        """A click on a line of the table."""
        if self.place.name not in TEXTS and self.place.offset + line < len(self.rows):
            self._put_cursor(self.place.offset + line)

    def window(self, lines: int, count: int) -> range:
        """What is on a screen of so many lines, of so many rows: scrolled just so far that the cursor is among them."""
        self.page = max(1, lines)
        place = self.place
        if place.name not in TEXTS:
            place.offset = min(place.offset, place.index)
            place.offset = max(place.offset, place.index - self.page + 1)
        place.offset = max(0, min(place.offset, count - self.page))
        return range(place.offset, min(count, place.offset + self.page))

    def open(self) -> None:
        row = self.row
        if row is None or self.place.name in TEXTS:
            return
        if row.kind == "queue":
            self.enter(Place("jobs", word("queue", row.key)))
        elif row.kind == "worker":
            self.enter(Place("running", word("worker_id", row.key)))
        elif row.kind == "shard":
            self.enter(Place("shard", subject=row.key))
        else:
            self.enter(Place("job", subject=row.key))

    def back(self) -> None:
        if len(self.places) > 1:
            self.places.pop()
            self._moved()
        elif self.place.filter:
            self.set_filter("")
        elif self.place.name in TEXTS:
            self.go("queues")

    def trail(self) -> str:
        """queues > jobs queue=mail > job s01…"""
        steps = [" ".join(part for part in (place.name, place.filter, place.subject) if part) for place in self.places]
        return plain(" > ".join(steps)).plain

    def _keys(self) -> dict[str, Callable[[], None]]:
        return {
            "q": self._leave,
            "ctrl+c": self._leave,
            "question_mark": self._help,
            "enter": self.open,
            "escape": self.back,
            "backspace": self.back,
            "tab": lambda: self._next_pane(1),
            "shift+tab": lambda: self._next_pane(-1),
            "up": lambda: self.scroll(-1),
            "k": lambda: self.scroll(-1),
            "down": lambda: self.scroll(1),
            "j": lambda: self.scroll(1),
            "pageup": lambda: self.scroll(-self.page),
            "pagedown": lambda: self.scroll(self.page),
            "home": lambda: self.scroll(-(10**9)),
            "g": lambda: self.scroll(-(10**9)),
            "end": lambda: self.scroll(10**9),
            "G": lambda: self.scroll(10**9),
            "slash": lambda: self._type("/"),
            "colon": lambda: self._type(":"),
            "less_than_sign": lambda: self._sort_by_next(-1),
            "greater_than_sign": lambda: self._sort_by_next(1),
            "s": self._turn_around,
            "S": self._sort_as_the_pane,
            "space": self._mark,
            "U": self.marked.clear,
            "p": self._freeze,
            "r": self._refresh,
            "plus": lambda: self._next_interval(1),
            "equals_sign": lambda: self._next_interval(1),
            "minus": lambda: self._next_interval(-1),
            "underscore": lambda: self._next_interval(-1),
        }

    def _answer(self, key: str) -> None:
        question, self.question = self.question, None
        if key in ("y", "Y"):
            self.confirmed = question
        else:
            self.message = "nothing was changed"

    def _ask(self, key: str) -> None:
        try:
            self.ask(question_of(key, self.row, tuple(self.marked)))
        except Impossible as error:
            self.message = str(error)

    def _help(self) -> None:
        if self.place.name != "help":
            self.enter(Place("help"))

    def _leave(self) -> None:
        self.is_over = True

    def _refresh(self) -> None:
        self.is_due = True

    def _freeze(self) -> None:
        self.is_frozen = not self.is_frozen
        self.is_due = not self.is_frozen

    def _moved(self) -> None:
        self.rows = []
        self.is_due = True

    def _type(self, prompt: str) -> None:
        if prompt == "/" and self.place.pane is None:
            self.message = "there is nothing to filter here"
        else:
            self.prompt = prompt

    def _next_pane(self, step: int) -> None:
        names = list(PANES)
        here = names.index(self.place.name) if self.place.name in names else -1
        self.go(names[(here + step) % len(names)])

    def _next_interval(self, step: int) -> None:
        longer = [one for one in INTERVALS_S if one > self.interval_s]
        shorter = [one for one in INTERVALS_S if one < self.interval_s]
        self.interval_s = (longer or [INTERVALS_S[-1]])[0] if step > 0 else (shorter or [INTERVALS_S[0]])[-1]

    def _sort_by_next(self, step: int) -> None:
        if (pane := self.place.pane) is None:
            return
        names = [column.name for column in pane.columns]
        here = names.index(self.place.sort) if self.place.sort in names else (-1 if step > 0 else 0)
        self.set_sort(names[(here + step) % len(names)])

    def _turn_around(self) -> None:
        if self.place.sort is None:
            self.message = "choose a column to sort by first: < or >"
            return
        self.place.is_reversed = not self.place.is_reversed
        self.is_due = True

    def _sort_as_the_pane(self) -> None:
        self.place.sort, self.place.is_reversed = None, False
        self.is_due = True

    def _mark(self) -> None:
        row = self.row
        if row is None or row.kind != "job":
            self.message = "only jobs are marked"
        elif row.key in self.marked:
            del self.marked[row.key]
        elif len(self.marked) >= MARKS_MAX:
            self.message = f"{MARKS_MAX} jobs are marked, and more cannot be; `corvo bulk` takes a filter"
        else:
            self.marked[row.key] = None
        if self.place.name not in TEXTS:
            self.scroll(1)

    def _put_cursor(self, index: int) -> None:
        place = self.place
        place.index = max(0, min(index, len(self.rows) - 1))
        place.cursor = self.rows[place.index].key if place.index else ""


def _column(pane: Pane, heading: str) -> int:
    return next(index for index, column in enumerate(pane.columns) if column.name == heading)
