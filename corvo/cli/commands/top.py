"""`corvo top`: fetch, draw, wait for a key or the next update. `dashboard.py` does the drawing.

`watch` owns the terminal and continues when the server is away: the last snapshot is marked as stale. `write` is for
scripts: a number of snapshots or JSON lines, and an error if the server does not answer.
"""

import signal
import sys
import time
from collections import deque
from types import FrameType

import msgspec
from rich.console import RenderableType
from rich.live import Live
from rich.text import Text

from corvo.cli.screen.dashboard import SAMPLES_MAX, Line, Look, Rates, picture, rates
from corvo.cli.screen.keyboard import Keyboard
from corvo.cli.screen.show import console
from corvo.client.answers import ClusterStatus, QueueView, WorkerView
from corvo.client.calls import ServerRefused
from corvo.client.http import Client, Unreachable

INTERVALS_S = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
PLAIN_HEIGHT = 10_000  # a pipe has no height: nothing is left out
PLAIN_WIDTH = 120


class Report(msgspec.Struct):
    """One line of `corvo top --json`."""

    at_ns: int
    rates: Rates
    status: ClusterStatus
    queues: list[QueueView]
    workers: list[WorkerView]


class View:
    """The snapshots so far. `look` does not raise when the server is away; it remembers the error."""

    def __init__(self, client: Client, interval_s: float) -> None:
        self.interval_s = interval_s
        self.is_frozen = False
        self.is_over = False
        self._client = client
        self._before: Look | None = None
        self._after: Look | None = None
        self._trouble = ""
        self._history: deque[Rates] = deque(maxlen=SAMPLES_MAX)

    def look(self) -> None:
        try:
            look = take_look(self._client)
        except ServerRefused as refused:
            self._trouble = refused.message
        except Unreachable as error:
            self._trouble = str(error)
        else:
            if self._after is not None:
                self._history.append(rates(self._after, look))
            self._before, self._after, self._trouble = self._after, look, ""

    def press(self, key: str) -> None:
        if key in ("q", "Q"):
            self.is_over = True
        elif key == "p":
            self.is_frozen = not self.is_frozen
        elif key in ("+", "="):
            self.interval_s = next((one for one in INTERVALS_S if one > self.interval_s), INTERVALS_S[-1])
        elif key in ("-", "_"):
            self.interval_s = next((one for one in reversed(INTERVALS_S) if one < self.interval_s), INTERVALS_S[0])

    def draw(self, size: tuple[int, int]) -> RenderableType:
        if self._after is None:
            return Text(f"{self._trouble or 'connecting'}\n\nq quit · trying again every {self.interval_s:g} s")
        line = Line(self.interval_s, self.is_frozen, self._trouble, time.monotonic() - self._after.taken_s)
        return picture(self._before, self._after, list(self._history), line, size)


def take_look(client: Client) -> Look:
    return Look(
        taken_s=time.monotonic(),
        now_ns=time.time_ns(),
        status=client.cluster_status(),
        queues=client.queues(),
        workers=client.workers(),
    )


def watch(client: Client, interval_s: float) -> None:
    """Until q or Ctrl-C."""
    view = View(client, interval_s)
    screen = console()
    signal.signal(signal.SIGTERM, _leave)  # restores the terminal
    try:
        with Keyboard() as keyboard, Live(console=screen, screen=True, auto_refresh=False) as live:
            while not view.is_over:
                if not view.is_frozen:
                    view.look()
                next_look = time.monotonic() + view.interval_s
                while not view.is_over and (left := next_look - time.monotonic()) > 0:
                    live.update(view.draw(screen.size), refresh=True)
                    for key in keyboard.wait(left):
                        view.press(key)
                        # A key may have changed the interval, which then counts from now.
                        next_look = min(next_look, time.monotonic() + view.interval_s)
    except KeyboardInterrupt:
        return


def write(client: Client, interval_s: float, count: int, is_json: bool) -> None:
    """Plain snapshots. Rates need two of them, so the first one is printed after one interval."""
    screen = console()
    history: deque[Rates] = deque(maxlen=SAMPLES_MAX)
    before = take_look(client)
    for number in range(count):
        time.sleep(interval_s)
        after = take_look(client)
        history.append(rates(before, after))
        if is_json:
            report = Report(after.now_ns, history[-1], after.status, after.queues, after.workers)
            print(msgspec.json.encode(report).decode(), flush=True)
        else:
            size = screen.size if sys.stdout.isatty() else (PLAIN_WIDTH, PLAIN_HEIGHT)
            group = picture(before, after, list(history), Line(interval_s), (size[0], PLAIN_HEIGHT))
            for part in group.renderables[:-1]:  # without the line about keys
                screen.print(part)
            if number + 1 < count:
                screen.print()
        before = after


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)
