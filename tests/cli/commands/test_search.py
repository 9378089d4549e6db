"""`corvo search`: every filter of the body has a flag, and --all goes from page to page."""

import json
from typing import get_args

import msgspec
import pytest

from corvo.cli.commands import search as command
from corvo.cli.main import run
from corvo.queries.search import SearchAnswer, SearchBody, SortName
from tests.cli.answers import a_search_answer, a_summary
from tests.client.playback import Playback

MOMENT = "2026-01-01T00:00:00Z"
MOMENTS = [
    f"{name}_{side}"
    for name in ("created", "scheduled", "started", "completed", "expire")
    for side in ("after", "before")
]


@pytest.fixture(autouse=True)
def _use_the_playback(playback: Playback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORVO_SERVER", playback.url)


def asked(playback: Playback) -> list[SearchBody]:
    return [msgspec.json.decode(one.body, type=SearchBody) for one in playback.asked]


def test_every_filter_has_a_flag(playback: Playback) -> None:
    playback.answer("POST", "/jobs/search", a_search_answer())
    flags = {
        "queue": "mail",
        "state": "dead",
        "priority": "high",
        "tag": "team=billing",
        "payload-contains": "a b",
        "payload-jq": ".a == 1",
        "error-contains": "SMTP",
        "attempt-min": "1",
        "attempt-max": "2",
        "worker": "w1",
        "batch": "b",
        "chain": "c",
        "parent": "p",
        "unique-key": "k",
        "id-prefix": "s00",
        "sort": "priority",
        "order": "asc",
        "limit": "7",
        "cursor": "x",
        **{name.replace("_", "-"): MOMENT for name in MOMENTS},
    }
    words = [word for name, value in flags.items() for word in (f"--{name}", value)]

    assert run(["search", *words, "--state", "held", "--has-errors", "--consistent"]) == 0

    (body,) = asked(playback)
    assert body == SearchBody(
        queue="mail",
        state=["dead", "held"],
        priority="high",
        tags={"team": "billing"},
        payload_contains="a b",
        payload_jq=".a == 1",
        error_contains="SMTP",
        has_errors=True,
        attempt_min=1,
        attempt_max=2,
        worker_id="w1",
        batch_id="b",
        chain_id="c",
        parent_id="p",
        unique_key="k",
        job_id_prefix="s00",
        sort="priority",
        order="asc",
        limit=7,
        cursor="x",
        consistent=True,
        **dict.fromkeys(MOMENTS, MOMENT),  # type: ignore[arg-type]
    )
    untouched = [field for field in body.__struct_fields__ if getattr(body, field) == getattr(SearchBody(), field)]
    assert untouched == []  # a new filter needs a flag


def test_without_flags_the_server_s_defaults_hold(playback: Playback) -> None:
    playback.answer("POST", "/jobs/search", a_search_answer())

    assert run(["search", "--no-errors"]) == 0

    assert asked(playback) == [SearchBody(has_errors=False)]


def test_a_tag_may_be_a_number_or_a_truth(playback: Playback) -> None:
    playback.answer("POST", "/jobs/search", a_search_answer())

    assert run(["search", "--tag", "tier:=1", "--tag", "vip:=true", "--tag", "n=1", "--tag", "u=a=b"]) == 0

    assert asked(playback)[0].tags == {"tier": 1, "vip": True, "n": "1", "u": "a=b"}


@pytest.mark.parametrize("tag", ["plain", "=x", "tier:=one", "tier:=[1]", "tier:=null"])
def test_what_is_no_tag_is_refused_here(playback: Playback, capsys: pytest.CaptureFixture[str], tag: str) -> None:
    assert run(["search", "--tag", tag]) == 2

    assert repr(tag) in capsys.readouterr().err
    assert playback.asked == []


def pages(playback: Playback) -> None:
    """Two full ones, with an empty one between them for which the server had no time left."""
    for jobs, cursor, is_complete in [(["j1", "j2"], "c1", True), ([], "c2", False), (["j3"], None, True)]:
        answer = SearchAnswer([a_summary(id=name) for name in jobs], 3, True, cursor is not None, cursor, 1.0, 1.0)
        answer.is_complete = is_complete
        playback.answer("POST", "/jobs/search", answer)


def test_all_pages_are_a_job_a_line(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    pages(playback)

    assert run(["search", "--all", "--consistent", "--output", "json"]) == 0

    assert [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()] == ["j1", "j2", "j3"]
    assert [(body.cursor, body.limit, body.consistent) for body in asked(playback)] == [
        (None, 1000, True),
        ("c1", 1000, False),
        ("c2", 1000, False),
    ]


def test_all_pages_as_tables(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    pages(playback)

    assert run(["search", "--all"]) == 0

    shown = capsys.readouterr().out
    assert all(name in shown for name in ("j1", "j2", "j3"))


def test_a_page_that_is_not_complete_says_so(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    answer = SearchAnswer([], 0, False, True, "c1", 1_600.0, 1.0, "at_least", False)
    playback.answer("POST", "/jobs/search", answer)

    assert run(["search"]) == 0
    assert "--cursor c1" in capsys.readouterr().out


def test_the_choices_are_those_of_the_core() -> None:
    assert get_args(SortName) == get_args(command.SortName)
    assert get_args(command.OrderName) == get_args(SearchBody.__annotations__["order"])
    assert get_args(command.PriorityName) == get_args(get_args(SearchBody.__annotations__["priority"])[0])
