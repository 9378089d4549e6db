"""Lists over all shards: what each command asks, and what it prints."""

from typing import get_args
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from corvo.cli.commands import lists, times
from corvo.cli.main import run
from corvo.cli.screen import show_lists
from corvo.cli.screen.show import span
from corvo.model.timestamps import parse_rfc3339, to_rfc3339
from corvo.queries import search
from corvo.queries.error_groups import ErrorGroup, ErrorGroupsAnswer
from corvo.queries.throughput import ThroughputPoint
from corvo.queries.worker import WorkerDetail, WorkerJob
from tests.cli.answers import ID, NOON, NOON_NS, a_queue, a_search_answer, a_summary
from tests.client.playback import Playback

GROUP = ErrorGroup("ab" * 8, "mail", "user <number> not found", 17, NOON, NOON, "user 4 not found\x1b[2J", ID)


@pytest.fixture(autouse=True)
def _use_the_playback(playback: Playback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORVO_SERVER", playback.url)


def asked(playback: Playback) -> tuple[str, dict[str, list[str]]]:
    parts = urlsplit(playback.asked[-1].path)
    return parts.path, parse_qs(parts.query)


@pytest.mark.parametrize("command", [command.__name__ for command in lists.COMMANDS])
def test_each_command_explains_itself_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--help"]) == 0

    shown = capsys.readouterr().out
    assert "Example" in shown and f"  corvo {command}" in shown


def test_the_choices_are_those_of_the_core() -> None:
    assert get_args(lists.OrderName) == get_args(search.SearchBody.__annotations__["order"])


@pytest.mark.parametrize("state", ["dead", "held"])
def test_dead_and_held_jobs_are_asked_for_page_by_page(
    state: str, playback: Playback, capsys: pytest.CaptureFixture[str]
) -> None:
    page = msgspec.structs.replace(a_search_answer(a_summary(state=state)), has_more=True, cursor="behind-this")
    playback.answer("GET", f"/jobs/{state}", page)

    assert run([state, "--queue", "a/b", "--limit", "1", "--order", "asc", "--cursor", "c"]) == 0

    assert asked(playback) == (
        f"/api/v1/jobs/{state}",
        {"queue": ["a/b"], "limit": ["1"], "order": ["asc"], "cursor": ["c"]},
    )
    shown = capsys.readouterr().out
    assert ID in shown and state in shown and "--cursor behind-this" in shown


def test_a_worker_is_shown_with_its_jobs(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    job = WorkerJob(id=ID, queue="video", attempt=2, started_at=NOON, lease_expires_at=NOON, progress={"done": 3})
    fixed = {"id": "host/w1", "hostname": "host-a", "queues": ["video"], "last_heartbeat": NOON, "started_at": NOON}
    playback.answer("GET", "/workers/host%2Fw1", WorkerDetail(**fixed, active_jobs=5, jobs=[job]))

    assert run(["workers", "host/w1"]) == 0

    shown = capsys.readouterr().out
    assert all(word in shown for word in ("host/w1", ID, "video", '{"done":3}', "and 4 more"))


def test_throughput_is_drawn_with_its_totals(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    points = [ThroughputPoint(to_rfc3339(NOON_NS + n * 60 * 10**9), n, 2 * n, 1, 0) for n in range(4)]
    playback.answer("GET", "/queues/mail/throughput", points)

    assert run(["throughput", "mail", "--minutes", "4"]) == 0

    assert asked(playback) == ("/api/v1/queues/mail/throughput", {"minutes": ["4"]})
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["enqueued", "6", "1.5", "3", "▁▃▆█"]
    assert lines[2].split() == ["completed", "12", "3", "6", "▁▃▆█"]
    assert lines[4].split() == ["dead", "0", "0", "0", "▁▁▁▁"]
    assert "1 minute per bar" in lines[5]


def test_a_day_has_no_more_bars_than_fit_and_loses_nothing(
    playback: Playback, capsys: pytest.CaptureFixture[str]
) -> None:
    points = [ThroughputPoint(NOON, 1, 0, 0, 0) for _ in range(1439)]
    playback.answer("GET", "/metrics/throughput", points)

    assert run(["throughput", "--minutes", "1439"]) == 0

    lines = capsys.readouterr().out.splitlines()
    *numbers, bars = lines[1].split()
    assert numbers == ["enqueued", "1439", "1", "1"]
    assert len(bars) == show_lists.BARS_MAX and bars[1:] == "█" * 59
    assert "24 minutes per bar" in lines[-1]


def test_errors_are_listed_by_group(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("GET", "/errors/groups", ErrorGroupsAnswer([GROUP], True, 3.0))

    assert run(["errors", "--queue", "mail", "--since", "2026-01-31T09:00:00Z", "--limit", "1"]) == 0

    query = {"queue": ["mail"], "since": ["2026-01-31T09:00:00Z"], "limit": ["1"]}
    assert asked(playback) == ("/api/v1/errors/groups", query)
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("17", "mail", ID, "user <number> not found", "1 groups, and there are more"))


def test_since_may_be_a_span_counted_back_from_now(playback: Playback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times.time, "time_ns", lambda: NOON_NS)
    playback.answer("GET", "/errors/groups", ErrorGroupsAnswer([], False, 3.0))

    assert run(["errors", "--since", "1h30m"]) == 0

    _, query = asked(playback)
    assert parse_rfc3339(query["since"][0]) == NOON_NS - 90 * 60 * 10**9


def test_since_that_is_neither_is_wrong_usage(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["errors", "--since", "yesterday"]) == 2

    assert "--since yesterday: expected a time" in capsys.readouterr().err
    assert playback.asked == []


def test_queues_are_shown_with_rates_and_the_oldest_job(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    rates = {"enqueued_per_s": 12.34, "completed_per_s": 5.0, "failed_per_s": 0.25}
    playback.answer("GET", "/queues", [a_queue(pending=5, oldest_pending_age_ms=3_900_000, **rates)])

    assert run(["queues"]) == 0

    line = capsys.readouterr().out.splitlines()[1]
    assert line.split() == ["mail", "5", *"0000000", "12.3", "5.0", "0.2", "1h", "5m"]


@pytest.mark.parametrize(
    ("span_ms", "shown"),
    [(None, ""), (0, "0.0s"), (59_940, "59.9s"), (61_000, "1m 1s"), (90_061_000, "1d 1h")],
)
def test_spans_are_shown_in_their_largest_units(span_ms: int | None, shown: str) -> None:
    assert span(span_ms) == shown


@pytest.mark.parametrize(
    ("command", "path", "value"),
    [
        ("errors", "/errors/groups", ErrorGroupsAnswer([GROUP], False, 3.0)),
        ("throughput", "/metrics/throughput", [ThroughputPoint(NOON, 1, 2, 3, 4)]),
    ],
)
def test_json_is_the_answer_itself(
    command: str, path: str, value: object, playback: Playback, capsys: pytest.CaptureFixture[str]
) -> None:
    playback.answer("GET", path, value)

    assert run([command, "--output", "json"]) == 0

    assert msgspec.json.decode(capsys.readouterr().out) == msgspec.to_builtins(value)
