"""`corvo events` against a server that plays back: pages, streams, breaks."""

import json

import pytest

from corvo.cli.commands import events as module
from corvo.cli.main import run
from corvo.queries.events import EventsPage, EventView
from tests.cli.answers import ID, NOON_NS
from tests.client.playback import Playback

STREAM = {"content_type": "text/event-stream"}


@pytest.fixture(autouse=True)
def _use_the_playback(playback: Playback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORVO_SERVER", playback.url)
    monkeypatch.setattr(module, "PAUSE_S", 0.0)


def an_event(seq: int = 1, kind: str = "enqueued", data: object = None) -> EventView:
    return EventView(seq, 0, kind, NOON_NS + seq * 1_000_000, ID, "mail", data)


def frames(*seqs: int) -> bytes:
    text = "retry: 1000\n\nid: 0:0\n\n"
    for seq in seqs:
        data = {"seq": seq, "shard": 0, "type": "started", "at_ns": NOON_NS, "job_id": ID, "queue": "mail"}
        text += f"id: 0:{seq}\nevent: started\ndata: {json.dumps(data)}\n\n:keepalive\nid: 0:{seq}\n\n"
    return text.encode()


def asked(playback: Playback) -> list[str]:
    return [one.path.removeprefix("/api/v1") for one in playback.asked]


def test_events_that_are_kept_are_printed_a_line_each(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    path = "/cluster/events?limit=1000&queues=mail&types=failed%2Cdead"
    playback.answer("GET", path, EventsPage([an_event(1), an_event(2, "progress", {"n": 1})], "0:2"))

    assert run(["events", "--queue", "mail", "--type", "failed", "--type", "dead"]) == 0

    first, second = capsys.readouterr().out.splitlines()
    assert first.split() == ["2026-01-31", "12:00:00.001Z", "enqueued", ID, "mail"]
    assert second.endswith('mail  {"n":1}')


def test_pages_are_followed_up_to_the_count(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("GET", "/cluster/events?after_seq=0%3A7&limit=3", EventsPage([an_event(8)], "0:8", True))
    playback.answer("GET", "/cluster/events?after_seq=0%3A8&limit=2", EventsPage([an_event(9)] * 2, "0:10", True))

    assert run(["events", "--after", "0:7", "-n", "3", "--output", "json"]) == 0

    shown = capsys.readouterr()
    assert [json.loads(line)["seq"] for line in shown.out.splitlines()] == [8, 9, 9]
    assert shown.err == "corvo: there are more events: --after 0:10\n"


def test_a_stream_that_ends_is_taken_up_where_it_stopped(
    playback: Playback, capsys: pytest.CaptureFixture[str]
) -> None:
    playback.answer("GET", "/events?from=start", frames(1, 2), **STREAM)
    playback.answer("GET", "/events", frames(3), **STREAM)

    assert run(["events", "--follow", "--from-start", "-n", "3", "--output", "json"]) == 0

    shown = capsys.readouterr()
    assert [json.loads(line)["seq"] for line in shown.out.splitlines()] == [1, 2, 3]
    assert "the server ended the stream; reconnecting" in shown.err
    assert asked(playback) == ["/events?from=start", "/events"]


def test_a_gap_is_complained_of(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    gap = b'id: 0:5\nevent: gap\ndata: {"shard": 0, "missed": 5}\n\n'
    playback.answer("GET", "/events", gap + frames(6), **STREAM)

    assert run(["events", "-f", "-n", "2"]) == 0

    assert capsys.readouterr().err == "corvo: shard 0: 5 events were deleted before they could be read\n"


def test_a_refusal_at_the_beginning_ends_the_command(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.refuse("GET", "/events?types=x", 400, "VALIDATION_ERROR", "types: 'x' is no type of event")

    assert run(["events", "--follow", "--type", "x"]) == 1

    assert capsys.readouterr().err == "corvo: types: 'x' is no type of event (VALIDATION_ERROR)\n"


def test_an_event_that_cannot_be_read_ends_the_command(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("GET", "/events", frames(1) + b"id: 0:2\nevent: started\ndata: nonsense\n\n", **STREAM)

    assert run(["events", "--follow"]) == 1

    assert "(UNREADABLE_ANSWER)" in capsys.readouterr().err


def test_text_of_others_reaches_the_terminal_harmless(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    page = EventsPage([an_event(1, "progress", "\x1b[31mred")], "0:1")
    playback.answer("GET", "/cluster/events?limit=1000", page)

    assert run(["events"]) == 0

    assert "\x1b" not in capsys.readouterr().out


def test_it_explains_itself_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["events", "--help"]) == 0
    assert "  corvo events --follow" in capsys.readouterr().out
