"""The terminal of `corvo top`: keys in, lines out. What they mean is in `session`, what is drawn in `picture`.

Lines are drawn by ourselves and only those that changed are sent: over ssh, a second costs as little as it changes.
"""

import asyncio
import os
import signal
import time
from collections.abc import Callable

import msgspec
from rich.segment import Segment
from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input

from corvo.cli.screen.top.actions import Question, perform
from corvo.cli.screen.top.commands import BadCommand, run_command
from corvo.cli.screen.top.filters import BadFilter
from corvo.cli.screen.top.header import Link
from corvo.cli.screen.top.looks import Look, Past
from corvo.cli.screen.top.picture import picture, table_top
from corvo.cli.screen.top.polling import HEADER, Part, Poller
from corvo.cli.screen.top.session import Session, Wants
from corvo.client.calls import ServerRefused
from corvo.client.http import Client, Unreachable

TICK_S = 0.1  # how exactly updates keep to their time
RETRY_S = 1.0  # between attempts while the server is away, at least
_SIGNALS = (signal.SIGTERM, signal.SIGHUP)  # SIGHUP: the ssh connection is gone
WHEEL_LINES = 3
_CAPITALS = frozenset("PRCAXSUG")


class Lines(Widget, can_focus=True):
    """The screen, line by line."""

    DEFAULT_CSS = "Lines { height: 1fr; background: ansi_default; color: ansi_default; }"

    class Resized(Message):
        """The lines are to be drawn for another size."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[Text] = []

    def on_resize(self) -> None:
        self.post_message(self.Resized())

    def show(self, lines: list[Text]) -> None:
        old, self._lines = self._lines, lines
        for number in range(max(len(old), len(lines))):
            if number >= len(old) or number >= len(lines) or not _is_same(old[number], lines[number]):
                self.refresh(Region(0, number, self.size.width, 1))

    def render_line(self, y: int) -> Strip:
        if y >= len(self._lines):
            return Strip.blank(self.size.width)
        line, console = self._lines[y], self.app.console
        # `render` leaves the style of the whole text to the console, which is not asked here.
        segments = Segment.apply_style(line.render(console), console.get_style(line.style))
        return Strip(list(segments)).adjust_cell_length(self.size.width)

    def text(self) -> str:
        return "\n".join(line.plain.rstrip() for line in self._lines)


class Top(App[None]):
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { background: ansi_default; color: ansi_default; }
    Input {
        dock: bottom; height: 1; border: none; padding: 0; display: none;
        background: ansi_default; color: ansi_default;
    }
    Input:focus { border: none; background: ansi_default; }
    """

    def __init__(self, client: Client, session: Session) -> None:
        super().__init__(ansi_color=True)  # the terminal's own sixteen colours, and none with NO_COLOR
        self.session = session
        self.past: Past | None = None
        self.screen_lines = Lines()
        self._line = Input(compact=True, select_on_focus=False)
        self._client = client
        self._poller = Poller(
            client, self._from_thread(self._look), self._from_thread(self._part), self._from_thread(self._fail)
        )
        self._asked: Wants | None = None  # under way
        self._shown_place = id(session.place)
        self._next_s = 0.0
        self._trouble = ""
        self._drawn_at = 0
        self._prompt = ""

    def compose(self) -> ComposeResult:
        yield self.screen_lines
        yield self._line

    def on_mount(self) -> None:
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            try:
                loop.add_signal_handler(number, self._leave, 128 + number)
            except RuntimeError:  # not in the main thread: somebody else holds the terminal
                break
        self.screen_lines.focus()
        self._poller.start()
        self._ask()
        self.set_interval(TICK_S, self._tick)

    def on_unmount(self) -> None:
        self._poller.stop()

    # Keys, the mouse, the typed line

    async def on_event(self, event: events.Event) -> None:
        """Keys are taken here, in the order in which they came: what is typed ahead of a line that opens belongs to
        that line, and is no key of the table."""
        if not isinstance(event, events.Key) or event.is_forwarded:
            await super().on_event(event)
        elif event.key == "ctrl+c":  # wherever the focus is; textual would copy
            self._leave(0)
        elif self._prompt:
            await super().on_event(event)
        elif event.key == "ctrl+z":
            self.action_suspend_process()
        else:
            self.session.press(event.character if event.character in _CAPITALS else event.key)
            self._after_key()

    def on_key(self, event: events.Key) -> None:
        """What the line that is typed left over."""
        if event.key == "escape":
            self._close_prompt()

    def on_click(self, event: events.Click) -> None:
        if self.past is not None and not self._prompt:
            size = (self.screen_lines.size.width, self.screen_lines.size.height)
            line = event.y - table_top(self.session, self.past, self._link(), size)
            if line >= 0:
                self.session.point_at(line)
                self._after_key()

    def on_mouse_scroll_up(self) -> None:
        self.session.scroll(-WHEEL_LINES)
        self._after_key()

    def on_mouse_scroll_down(self) -> None:
        self.session.scroll(WHEEL_LINES)
        self._after_key()

    def on_lines_resized(self) -> None:
        self._draw()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        prompt = self._prompt
        text = event.value.removeprefix(prompt)
        self._close_prompt()
        self.session.message = ""
        try:
            if prompt == "/":
                self.session.set_filter(text)
            else:
                run_command(self.session, text)
        except (BadFilter, BadCommand) as error:
            self.session.message = str(error)
        self._after_key()

    def _open_prompt(self, prompt: str) -> None:
        line = self._line
        self._prompt = prompt
        line.value = prompt + (self.session.place.filter if prompt == "/" else "")
        line.display = True
        self.screen.set_focus(line)  # at once: `focus` would wait for the next turn
        line.cursor_position = len(line.value)

    def _close_prompt(self) -> None:
        line = self._line
        line.display = False
        self._prompt = ""
        self.screen.set_focus(self.screen_lines)

    def _after_key(self) -> None:
        session = self.session
        if session.is_over:
            self._leave(0)
            return
        if session.prompt:
            prompt, session.prompt = session.prompt, ""
            self._open_prompt(prompt)
        if session.confirmed is not None:
            question, session.confirmed = session.confirmed, None
            self._act(question)
        if session.is_due:
            session.is_due = False
            self._ask()
        if self.past is not None:
            session.arrange(self.past)
        self._draw()

    def _act(self, question: Question) -> None:
        self.session.message = f"{question.name} …"
        self.run_worker(lambda: self._perform(question), thread=True, exclusive=False)

    def _perform(self, question: Question) -> None:
        """In a thread of its own."""
        try:
            message = perform(self._client, question)
        except ServerRefused as refused:
            message = f"{question.name}: {refused.message} ({refused.code})"
        except Unreachable as error:
            message = f"{question.name}: {error}; whether it was done is not known"
        self.call_from_thread(self._acted, message)

    def _acted(self, message: str) -> None:
        self.session.message = message
        self.session.marked.clear()
        self._ask()
        self._draw()

    # Looks

    def _ask(self) -> None:
        try:
            self._asked = self.session.wants()
        except BadFilter as error:  # of a flag: what is typed is checked before
            self.session.message = str(error)
            self.session.place.filter = ""
            self._asked = self.session.wants()
        if self.past is not None and id(self.session.place) != self._shown_place:
            nothing = msgspec.structs.replace(self.past.look, jobs=None, errors=None, job=None, why=None)
            self.past = self.past._replace(look=nothing)
        self._shown_place = id(self.session.place)
        self._poller.want(self._asked)

    def _follow_terminal(self) -> None:
        """The signal of a new size can be lost while much is drawn."""
        if self.is_headless:
            return
        try:
            size = Size(*os.get_terminal_size())
        except OSError:  # it is gone
            return
        if size != self.size:
            self.post_message(events.Resize(size, size))

    def _tick(self) -> None:
        self._follow_terminal()
        now = time.monotonic()
        if self._asked is None and now >= self._next_s and (not self.session.is_frozen or self._trouble):
            self._ask()
        if self._trouble and int(now) != self._drawn_at:  # the age of the stale look, the seconds until the next
            self._draw()

    def _from_thread(self, take: Callable[..., None]) -> Callable[..., None]:
        def hand_over(*values: object) -> None:
            try:
                self.call_from_thread(take, *values)
            except RuntimeError:  # the loop ended meanwhile
                if self.is_running:
                    raise

        return hand_over

    def _look(self, wants: Wants, look: Look) -> None:
        if wants is not self._asked:
            return  # of a place that was left meanwhile; the next one is under way
        self._asked, self._trouble = None, ""
        self._next_s = look.taken_s + self.session.interval_s
        self.past = Past(None, look) if self.past is None else self.past.then(look)
        self.session.arrange(self.past)
        self._draw()

    def _part(self, wants: Wants, part: Part) -> None:
        """The place's own answers, which came before those of the header."""
        if wants is self._asked and self.past is not None:
            old = self.past.look
            refusals = {name: why for name, why in old.refusals.items() if name in HEADER} | part.refusals
            look = msgspec.structs.replace(
                old, jobs=part.jobs, errors=part.errors, job=part.job, why=part.why, refusals=refusals
            )
            self.past = self.past._replace(look=look)
            self.session.arrange(self.past)
            self._draw()

    def _fail(self, sentence: str) -> None:
        self._asked, self._trouble = None, sentence
        self._next_s = time.monotonic() + max(RETRY_S, self.session.interval_s)
        self._draw()

    def _link(self) -> Link:
        now = time.monotonic()
        age_s = now - self.past.look.taken_s if self.past else 0.0
        session = self.session
        return Link(
            session.interval_s, session.is_frozen, session.is_read_only, self._trouble, age_s, self._next_s - now
        )

    def _draw(self) -> None:
        if not self.is_running:  # an answer that came after the end
            return
        self._drawn_at = int(time.monotonic())
        lines = self.screen_lines
        size = (lines.size.width, lines.size.height)
        if size != Size(0, 0):
            lines.show(picture(self.session, self.past, self._link(), size))

    def _leave(self, code: int) -> None:
        self.exit(return_code=code)


def _is_same(one: Text, other: Text) -> bool:
    return one == other and one.style == other.style  # rich compares no style of the whole text
