"""`corvo why`: a state, a reason, a sentence."""

import json

import pytest

from corvo.cli.main import run
from corvo.queries.why import WhyView
from tests.cli.answers import ID
from tests.client.playback import Playback


@pytest.fixture(autouse=True)
def _use_the_playback(playback: Playback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORVO_SERVER", playback.url)


def test_the_reason_is_said(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    view = WhyView(ID, "mail", "pending", "PAUSED", "the queue mail is paused", also=["CONCURRENCY"])
    playback.answer("GET", f"/jobs/{ID}/why", view)

    assert run(["why", ID]) == 0
    assert capsys.readouterr().out == "pending  PAUSED\nthe queue mail is paused. Then: CONCURRENCY.\n"

    assert run(["why", ID, "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["also"] == ["CONCURRENCY"]


def test_a_job_that_is_not_there_is_said_to_be_so(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.refuse("GET", f"/jobs/{ID}/why", 404, "JOB_NOT_FOUND", f"no job has the id {ID!r}")

    assert run(["why", ID]) == 1
    assert "JOB_NOT_FOUND" in capsys.readouterr().err


def test_it_explains_itself_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["why", "--help"]) == 0
    assert "  corvo why" in capsys.readouterr().out
