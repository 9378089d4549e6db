"""`corvo search`: every filter of the body has a flag; a pipe gets every job that matches."""

import json
from typing import Literal, get_args

import msgspec
import pytest

from corvo.cli.commands import job_pages
from corvo.cli.commands import search as command
from corvo.cli.commands.bodies import BadArgument
from corvo.cli.commands.job_ids import ids_in
from corvo.cli.commands.requests import PriorityName
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


def test_without_flags_the_server_s_defaults_hold(playback: Playback, monkeypatch: pytest.MonkeyPatch) -> None:
    at_a_terminal(monkeypatch)
    playback.answer("POST", "/jobs/search", a_search_answer())

    assert run(["search", "--no-errors"]) == 0

    assert asked(playback) == [SearchBody(has_errors=False)]


def at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_pages, "is_terminal", lambda: True)


def test_a_tag_may_be_a_number_or_a_truth(playback: Playback) -> None:
    playback.answer("POST", "/jobs/search", a_search_answer())

    assert run(["search", "--tag", "tier:=1", "--tag", "vip:=true", "--tag", "n=1", "--tag", "u=a=b"]) == 0

    assert asked(playback)[0].tags == {"tier": 1, "vip": True, "n": "1", "u": "a=b"}


@pytest.mark.parametrize("tag", ["plain", "=x", "tier:=one", "tier:=[1]", "tier:=null"])
def test_what_is_no_tag_is_refused_here(playback: Playback, capsys: pytest.CaptureFixture[str], tag: str) -> None:
    assert run(["search", "--tag", tag]) == 2

    assert repr(tag) in capsys.readouterr().err
    assert playback.asked == []


IDS = [f"s01_job_01hzy3v7k2m4n6p8q0r2s4t6v{number}" for number in range(3)]


def pages(playback: Playback) -> None:
    """Two full ones, with an empty one between them for which the server had no time left."""
    for jobs, cursor, is_complete in [(IDS[:2], "c1", True), ([], "c2", False), (IDS[2:], None, True)]:
        answer = SearchAnswer([a_summary(id=name) for name in jobs], 3, True, cursor is not None, cursor, 1.0, 1.0)
        answer.is_complete = is_complete
        playback.answer("POST", "/jobs/search", answer)


@pytest.mark.parametrize("every", [["--all"], []])
def test_a_pipe_gets_every_page_as_one_array(
    playback: Playback, capsys: pytest.CaptureFixture[str], every: list[str]
) -> None:
    pages(playback)

    assert run(["search", *every, "--output", "json"]) == 0

    shown = capsys.readouterr().out
    assert [job["id"] for job in json.loads(shown)] == IDS == ids_in(shown)
    assert len(shown.splitlines()) == len(IDS) + 2  # a line a job
    assert [(body.cursor, body.limit, body.consistent) for body in asked(playback)] == [
        (None, 1000, True),
        ("c1", 1000, False),
        ("c2", 1000, False),
    ]


def test_a_pipe_gets_every_page_as_one_table(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    pages(playback)

    assert run(["search"]) == 0

    shown = capsys.readouterr().out
    assert ids_in(shown) == IDS
    assert shown.count("QUEUE") == 1 and "3 of 3 jobs" in shown.splitlines()[-1] and " high " in shown


@pytest.mark.parametrize("output", ["json", "table"])
def test_a_list_that_fails_half_way_is_refused_by_bulk(
    playback: Playback, capsys: pytest.CaptureFixture[str], output: str
) -> None:
    playback.answer("POST", "/jobs/search", SearchAnswer([a_summary(id=IDS[0])], 2, True, True, "c1", 1.0, 1.0))
    playback.refuse("POST", "/jobs/search", 400, "VALIDATION_ERROR", "the cursor is no cursor")

    assert run(["search", "--output", output]) == 1

    with pytest.raises(BadArgument, match="cut off"):
        ids_in(capsys.readouterr().out)


def test_nothing_found_is_an_empty_array(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("POST", "/jobs/search", a_search_answer())

    assert run(["search", "--output-json"]) == 0

    assert capsys.readouterr().out == "[]\n"


def test_a_limit_holds_in_a_pipe_too(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    """Also over a page that is short because the server's time was up."""
    for jobs, cursor in ((IDS[:1], "c1"), (IDS[1:2], "c2")):
        answer = SearchAnswer([a_summary(id=name) for name in jobs], 3, True, True, cursor, 1.0, 1.0)
        answer.is_complete = False
        playback.answer("POST", "/jobs/search", answer)

    assert run(["search", "--limit", "2", "-o", "json"]) == 0

    assert ids_in(capsys.readouterr().out) == IDS[:2]
    assert [body.limit for body in asked(playback)] == [2, 1]


def test_total_and_cursor_are_printed_on_request(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    page = SearchAnswer([a_summary(id=IDS[0])], 3, True, True, "c1", 1.0, 1.0)
    playback.answer("POST", "/jobs/search", page)

    assert run(["search", "--page", "--limit", "1", "--output", "json"]) == 0

    shown = capsys.readouterr().out
    assert msgspec.json.decode(shown, type=SearchAnswer) == page
    with pytest.raises(BadArgument, match="one page of a longer list"):
        ids_in(shown)


@pytest.mark.parametrize(
    "flags", [["--all", "--limit", "5"], ["--all", "--page"], ["--page", "--limit", "1001"], ["--created-after", "x"]]
)
def test_flags_that_make_no_sense_are_refused(playback: Playback, flags: list[str]) -> None:
    assert run(["search", *flags]) == 2
    assert playback.asked == []


@pytest.mark.parametrize(
    ("is_complete", "told"), [(True, "next page: --cursor c1"), (False, "continue with --cursor c1")]
)
def test_a_terminal_gets_one_page_and_how_to_go_on(
    playback: Playback,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    is_complete: bool,
    told: str,
) -> None:
    at_a_terminal(monkeypatch)
    jobs = [a_summary()] * (50 if is_complete else 3)
    relation: Literal["exact", "at_least"] = "exact" if is_complete else "at_least"
    answer = SearchAnswer(jobs, 55, is_complete, True, "c1", 1_600.0, 1.0, relation, is_complete)
    playback.answer("POST", "/jobs/search", answer)

    assert run(["search"]) == 0

    shown = capsys.readouterr().out
    assert told in shown and " 55 jobs" in shown
    assert len(asked(playback)) == 1


@pytest.mark.parametrize("command", ["dead", "held"])
def test_lists_by_state_are_whole_in_a_pipe_too(
    playback: Playback, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    for names, cursor in ((IDS[:2], "c1"), (IDS[2:], None)):
        answer = SearchAnswer([a_summary(id=name) for name in names], 3, True, cursor is not None, cursor, 1.0, 1.0)
        playback.answer("GET", f"/jobs/{command}", answer)

    assert run([command, "--output", "json"]) == 0

    assert ids_in(capsys.readouterr().out) == IDS


def test_the_choices_are_those_of_the_core() -> None:
    assert get_args(SortName) == get_args(command.SortName)
    assert get_args(command.OrderName) == get_args(SearchBody.__annotations__["order"])
    assert get_args(PriorityName) == (*get_args(get_args(SearchBody.__annotations__["priority"])[0]), "low")
