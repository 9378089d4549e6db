"""`corvo namespaces`: what each command asks, and what it prints."""

import json

import pytest

from corvo.cli.main import run
from corvo.ops.access.create_namespace import NamespaceMade
from corvo.ops.access.fields import AccessChanged
from corvo.queries.access.namespaces import RateLimitAnswer
from corvo.queries.access.views import NamespaceView, QuotasView, RateLimitView
from tests.cli.answers import NOON
from tests.client.playback import Playback


@pytest.fixture(autouse=True)
def _use_the_playback(playback: Playback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORVO_SERVER", playback.url)


@pytest.mark.parametrize("command", ["list", "create", "delete", "rate-limit", "quotas"])
def test_each_command_explains_itself_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["namespaces", command, "--help"]) == 0

    shown = capsys.readouterr().out
    assert "Example" in shown and f"  corvo namespaces {command}" in shown


@pytest.mark.parametrize("words", [["namespaces"], ["namespaces", "list"]])
def test_namespaces_are_listed(playback: Playback, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    playback.answer(
        "GET",
        "/namespaces",
        [
            NamespaceView(
                name="acme",
                state="deleting",
                created_at=NOON,
                rate_limit=RateLimitView(read_rps=500),
                quotas=QuotasView(max_jobs=70),
            ),
            NamespaceView(name="default", state="active"),
        ],
    )

    assert run(words) == 0

    shown = capsys.readouterr().out
    assert "acme" in shown and "deleting" in shown and "500" in shown and "70" in shown and "default" in shown


def test_create_and_delete(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("POST", "/namespaces", NamespaceMade("acme", "created"), 201)
    playback.answer("DELETE", "/namespaces/acme", AccessChanged("deleting"))

    assert run(["namespaces", "create", "acme"]) == 0
    assert run(["namespaces", "delete", "acme"]) == 2
    assert run(["namespaces", "delete", "acme", "--yes"]) == 0

    assert [asked.method for asked in playback.asked] == ["POST", "DELETE"]
    shown = capsys.readouterr().out
    assert "created" in shown and "deleting" in shown


def test_a_rate_limit_is_shown_set_and_taken_back(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("GET", "/namespaces/acme/rate-limit", RateLimitAnswer(False, read_rps=5))
    playback.answer("PUT", "/namespaces/acme/rate-limit", AccessChanged("updated"))

    assert run(["namespaces", "rate-limit", "acme"]) == 0
    shown = capsys.readouterr().out
    assert "5" in shown and "the server's setting" in shown
    assert run(["namespaces", "rate-limit", "acme", "--read-rps", "5", "--write-burst", "0.5"]) == 0
    assert run(["namespaces", "rate-limit", "acme", "--defaults"]) == 0

    bodies = [json.loads(asked.body) for asked in playback.asked if asked.method == "PUT"]
    assert bodies == [{"read_rps": 5.0, "write_burst": 0.5}, {}]


def test_quotas_that_are_not_given_stay(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("GET", "/namespaces/acme/quotas", QuotasView(max_jobs=7, max_queues=3))
    playback.answer("PUT", "/namespaces/acme/quotas", AccessChanged("updated"))

    assert run(["namespaces", "quotas", "acme"]) == 0
    assert "no limit" in capsys.readouterr().out
    assert [asked.method for asked in playback.asked] == ["GET"]
    assert run(["namespaces", "quotas", "acme", "--max-jobs", "0"]) == 0

    [asked] = [asked for asked in playback.asked if asked.method == "PUT"]
    assert json.loads(asked.body) == {"max_queues": 3}
