"""Streams of events: read, and resumed where they broke, by both clients."""

import asyncio
from collections.abc import Callable
from itertools import islice
from typing import Any

import msgspec
import pytest

from corvo.client.aio import AsyncClient
from corvo.client.answers import BulkProgress, Gap
from corvo.client.bodies import EventsQuery
from corvo.client.errors import Forbidden
from corvo.client.http import Client
from corvo.client.sse import EventCursor, FrameReader, SseFrame, Unreadable
from tests.client.playback import Playback


def event_text(number: int) -> str:
    event = {"type": "enqueued", "job_id": "j", "queue": "mail", "at_ns": number, "seq": number, "shard": 0}
    return f"id: 0.{number}\nevent: enqueued\ndata: {msgspec.json.encode(event).decode()}\n\n"


def synchronously(playback: Playback, count: int, query: EventsQuery | None = None) -> list[Any]:
    with Client(playback.url, sleep=lambda _: None) as client:
        return list(islice(client.events(query), count))


def asynchronously(playback: Playback, count: int, query: EventsQuery | None = None) -> list[Any]:
    async def no_sleep(_: float) -> None:
        return None

    async def read() -> list[Any]:
        async with AsyncClient(playback.url, sleep=no_sleep) as client:
            heard = []
            async for one in client.events(query):
                heard.append(one)
                if len(heard) == count:
                    break
            return heard

    return asyncio.run(read())


BOTH = pytest.mark.parametrize("read", [synchronously, asynchronously])
Read = Callable[..., list[Any]]


@BOTH
def test_a_broken_stream_goes_on_behind_the_last_event(playback: Playback, read: Read) -> None:
    playback.answer("GET", "/events", (event_text(1) + event_text(2)).encode())
    playback.refuse("GET", "/events", 503, "OVERLOADED", "too many listeners")
    playback.answer("GET", "/events", (":keepalive\n\n" + event_text(3)).encode())

    heard = read(playback, 3, EventsQuery(begin="start", queues="mail"))

    assert [one.seq for one in heard] == [1, 2, 3]
    assert [asked.path.partition("?")[2] for asked in playback.asked[:3]] == [
        "from=start&queues=mail",
        "queues=mail",
        "queues=mail",
    ]
    assert [heads.get("last-event-id") for heads in playback.headers[:3]] == [None, "0.2", "0.2"]


@BOTH
def test_a_gap_is_told(playback: Playback, read: Read) -> None:
    playback.answer("GET", "/events", b'id: 0.9\nevent: gap\ndata: {"shard": 0, "missed": 4}\n\n')

    assert read(playback, 1) == [Gap(0, 4)]


@BOTH
def test_a_server_that_refuses_at_first_is_the_caller_s_to_know(playback: Playback, read: Read) -> None:
    playback.refuse("GET", "/events", 403, "FORBIDDEN", "not you")

    with pytest.raises(Forbidden):
        read(playback, 1)


@BOTH
def test_an_event_that_cannot_be_read_is_not_asked_for_again(playback: Playback, read: Read) -> None:
    playback.answer("GET", "/events", (event_text(1) + "id: 0.2\ndata: [1]\n\n").encode())

    with pytest.raises(Unreadable):
        read(playback, 2)
    assert len(playback.asked) == 1


@pytest.mark.parametrize("statuses", [["running", "completed"], ["running", "running", "failed"]])
def test_progress_ends_with_the_operation(playback: Playback, statuses: list[str]) -> None:
    for status in statuses:
        told = BulkProgress("progress", "bulk_1", status, 9, 1, 1, 0, None, None, None, 0)
        playback.answer("GET", "/bulk/bulk_1/progress", b"data: " + msgspec.json.encode(told) + b"\n\n")

    with Client(playback.url, sleep=lambda _: None) as client:
        assert [one.status for one in client.bulk_progress("bulk_1")] == statuses


def test_frames_are_read_line_by_line() -> None:
    reader = FrameReader()

    fed = [reader.feed(line) for line in (":hello", "event:x", "id: 7", "data: {}", "", "id: 8", "")]

    assert [one for one in fed if one] == [SseFrame("x", "7", "{}"), SseFrame("message", "8", None)]


def test_a_sign_of_life_moves_the_cursor_too() -> None:
    cursor = EventCursor(None, "0.1")

    assert cursor.read(SseFrame("message", "0.5", None)) is None
    assert cursor.request()[2]["last-event-id"] == "0.5"
