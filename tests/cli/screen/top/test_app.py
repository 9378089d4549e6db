"""The view against a server that plays prepared answers: keys, typed lines, loss and return of the server."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from textual import events
from textual.pilot import Pilot

from corvo.cli.screen.top.app import Top
from corvo.cli.screen.top.session import Session
from corvo.client.answers import WhyView
from corvo.client.http import Client
from tests.cli.answers import ID, a_queue, a_search_answer, a_summary, prepare
from tests.client.playback import Playback

PATIENCE_S = 30.0


class View:
    """The app, and what stands on its screen."""

    def __init__(self, app: Top, pilot: Pilot[None]) -> None:
        self.app = app
        self._pilot = pilot

    @property
    def text(self) -> str:
        return self.app.screen_lines.text()

    async def press(self, *keys: str) -> None:
        await self._pilot.press(*keys)

    async def sees(self, words: str, is_there: bool = True) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while (words in self.text) != is_there:
            assert time.monotonic() < deadline, f"waited for {words!r} in vain:\n{self.text}"
            await self._pilot.pause(0.01)

    async def resize(self, width: int, height: int) -> None:
        await self._pilot.resize_terminal(width, height)


def watched(playback: Playback, play: Callable[[View], Awaitable[None]], **flags: Any) -> None:
    async def run() -> None:
        with Client(playback.url, timeout_s=30, deadline_s=30) as client:
            app = Top(client, Session(0.2, **flags))
            async with app.run_test(size=(80, 24)) as pilot:
                await play(View(app, pilot))

    asyncio.run(run())


def test_panes_filters_and_the_way_to_a_job_and_back(playback: Playback) -> None:
    prepare(playback)
    playback.answer("GET", f"/jobs/{ID}/why", WhyView(ID, "mail", "dead", "DEAD", "it died yesterday"))

    async def play(view: View) -> None:
        await view.sees("mail")
        await view.press("4")
        await view.sees("failures")
        await view.sees("✖ dead")
        await view.press("slash", *"queue", "equals_sign", *"mail", "enter")
        await view.sees("failures queue=mail")
        assert b'"queue":"mail"' in next(one.body for one in reversed(playback.asked) if one.method == "POST")
        await view.press("slash", "space", *"color", "equals_sign", "x", "enter")
        await view.sees("there is no filter")
        await view.press("enter")
        await view.sees("it died yesterday")
        await view.press("escape")
        await view.sees("it died yesterday", False)
        await view.press("colon", *"help", "enter")
        await view.sees("FILTER")
        await view.resize(120, 40)
        await view.sees("LEAVE")
        assert len(view.text.splitlines()) == 40
        await view.press("q")

    watched(playback, play)


def test_an_action_is_confirmed_done_and_told(playback: Playback) -> None:
    prepare(playback)
    playback.answer("POST", "/queues/mail/pause", {"status": "paused"})
    playback.refuse("POST", f"/jobs/{ID}/retry", 409, "WRONG_STATE", "cannot retry a job that is active")

    async def play(view: View) -> None:
        await view.sees("P pause")
        await view.press("P")
        await view.sees("pause queue mail? y/n")
        await view.press("y")
        await view.sees("pause queue mail: paused")
        await view.press("8")
        await view.sees("✖ dead")
        await view.press("R", "y")
        await view.sees("retry: cannot retry a job that is active (WRONG_STATE)")

    watched(playback, play)


def test_read_only_sends_nothing_that_changes(playback: Playback) -> None:
    prepare(playback)

    async def play(view: View) -> None:
        await view.sees("mail")
        await view.press("P", "y", "P")
        await view.sees("read-only: start corvo top without")

    watched(playback, play, is_read_only=True)
    assert {one.method for one in playback.asked} == {"GET"}


def test_a_server_that_goes_and_comes_is_a_mark_not_an_end(playback: Playback) -> None:
    prepare(playback)

    async def play(view: View) -> None:
        await view.sees("mail")
        playback.refuse("GET", "/cluster/status", 500, "INTERNAL_ERROR", "the server is going down")
        await view.sees("STALE")
        await view.sees("the server is going down")
        assert "mail" in view.text
        prepare(playback)
        playback.answer("GET", "/queues", [a_queue("other")])
        await view.sees("other")
        await view.sees("STALE", False)

    watched(playback, play)


def test_a_key_that_may_not_read_is_a_sentence(playback: Playback) -> None:
    for path in ("/cluster/status", "/queues", "/workers"):
        playback.refuse("GET", path, 401, "UNAUTHORIZED", "the API key is not known")

    async def play(view: View) -> None:
        await view.sees("the API key is not known (401)")
        assert "STALE" not in view.text

    watched(playback, play)


def test_a_server_that_was_never_there_is_tried_again(playback: Playback) -> None:
    playback.refuse("GET", "/cluster/status", 500, "INTERNAL_ERROR", "not yet")

    async def play(view: View) -> None:
        await view.sees("trying again in")
        prepare(playback)
        await view.sees("mail")

    watched(playback, play)


def test_frozen_asks_nothing_until_it_is_thawed(playback: Playback) -> None:
    prepare(playback)

    async def play(view: View) -> None:
        await view.sees("mail")
        await view.press("p")
        await view.sees("FROZEN")
        playback.answer("GET", "/queues", [a_queue("other")])
        await view.press("r", "1")
        await view.sees("other")  # what is asked for by a key is shown all the same
        await view.press("p")
        await view.sees("FROZEN", False)

    watched(playback, play)


def test_ctrl_c_leaves_even_from_a_line_that_is_typed(playback: Playback) -> None:
    prepare(playback)
    playback.answer("POST", "/jobs/search", a_search_answer(a_summary()))

    async def play(view: View) -> None:
        await view.sees("mail")
        await view.press("slash", "x", "escape", "slash", "y", "ctrl+c")
        deadline = time.monotonic() + PATIENCE_S
        while view.app.is_running:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)

    watched(playback, play)


def test_what_is_typed_ahead_belongs_to_the_line(playback: Playback) -> None:
    """Over a slow line, keys come in bursts."""
    prepare(playback)

    async def play(view: View) -> None:
        await view.sees("mail")
        for key, character in (("slash", "/"), ("R", "R"), ("q", "q"), ("m", "m"), ("enter", "\r")):
            view.app.post_message(events.Key(key, character))
        await view.sees("queues Rqm")
        assert view.app.is_running

    watched(playback, play)
