"""Contexts: servers by name, with their keys, in a file that only its user can read."""

import io
import json
import stat
import sys
from pathlib import Path

import pytest

from corvo.cli.commands.contexts import BadContexts, ServerContext, ServerContexts, Source, choose
from corvo.cli.main import run
from tests.cli.answers import prepare
from tests.client.playback import Playback, playing


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CORVO_SERVER", "CORVO_URL", "CORVO_API_KEY", "CORVO_API_KEY_FILE", "CORVO_CONTEXT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "corvo" / "contexts.json"


@pytest.fixture
def prod(file: Path, playback: Playback) -> Playback:
    """The server of the current context."""
    prepare(playback)
    assert run(["context", "add", "prod", "--server", playback.url, "--api-key", "secret-1"]) == 0
    return playback


def key_sent(playback: Playback) -> str | None:
    return playback.headers[-1].get("x-api-key")


def test_the_first_context_is_used_at_once_with_its_key(prod: Playback) -> None:
    assert run(["queues"]) == 0

    assert key_sent(prod) == "secret-1"


def test_only_the_user_can_read_the_file(prod: Playback, file: Path) -> None:
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [one.name for one in file.parent.iterdir()] == ["contexts.json"]


def test_a_file_that_others_can_read_is_refused(prod: Playback, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.chmod(0o640)

    assert run(["queues"]) == 2

    assert "others can read it (mode 640); chmod 600" in capsys.readouterr().err
    assert prod.asked == []


def test_flags_win_over_variables_and_variables_over_the_context(
    prod: Playback, monkeypatch: pytest.MonkeyPatch
) -> None:
    with playing() as other:
        prepare(other)
        assert run(["context", "add", "other", "--server", other.url]) == 0
        monkeypatch.setenv("CORVO_CONTEXT", "other")
        assert run(["queues"]) == 0 and len(other.asked) == 1
        assert run(["queues", "--context", "prod"]) == 0 and len(prod.asked) == 1
        monkeypatch.setenv("CORVO_SERVER", other.url)
        assert run(["queues"]) == 0 and len(other.asked) == 2
        assert run(["queues", "--context", "prod"]) == 0 and len(prod.asked) == 2
        assert run(["queues", "--server", prod.url]) == 0 and len(prod.asked) == 3
        monkeypatch.setenv("CORVO_API_KEY", "variable")
        assert run(["queues", "--context", "prod"]) == 0 and key_sent(prod) == "variable"


def test_the_key_of_a_context_goes_to_its_server_only(prod: Playback, monkeypatch: pytest.MonkeyPatch) -> None:
    with playing() as other:
        prepare(other)
        assert run(["queues", "--server", other.url]) == 0
        monkeypatch.setenv("CORVO_URL", other.url)
        assert run(["queues"]) == 0

        assert [one.get("x-api-key") for one in other.headers] == [None, None]


def test_a_key_in_a_file_is_read_at_each_use(file: Path, playback: Playback, tmp_path: Path) -> None:
    prepare(playback)
    key = tmp_path / "key"
    key.write_text("first\n")
    assert run(["context", "add", "prod", "--server", playback.url, "--api-key-file", str(key)]) == 0
    assert run(["queues"]) == 0 and key_sent(playback) == "first"

    key.write_text("second\n")

    assert run(["queues"]) == 0 and key_sent(playback) == "second"
    assert "first" not in file.read_text()


def test_a_key_comes_on_standard_input_too(file: Path, playback: Playback, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(playback)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"secret-2\n")))
    assert run(["context", "add", "prod", "--server", playback.url, "--api-key", "-"]) == 0

    assert run(["queues"]) == 0 and key_sent(playback) == "secret-2"


def test_contexts_are_listed_without_keys_chosen_and_removed(
    prod: Playback, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["context", "add", "local", "--server", "localhost:8080"]) == 0
    assert run(["context", "use", "local"]) == 0
    capsys.readouterr()

    assert run(["context", "list", "--output", "json"]) == 0
    listed = capsys.readouterr().out
    assert [(one["name"], one["current"]) for one in json.loads(listed)] == [("local", True), ("prod", False)]
    assert "secret" not in listed

    assert run(["context", "remove", "local"]) == 0
    assert json.loads(file.read_text())["current"] == ""
    assert run(["context", "use", "local"]) == 1
    assert "there is no context 'local'; known: prod" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["context", "add", "a b", "--server", "localhost"], "no name of a context"),
        (["context", "add", "a", "--server", "ftp://x"], "no address"),
        (["context", "add", "a", "--server", "x", "--api-key", "k", "--api-key-file", "f"], "exclude"),
        (["context", "add", "a", "--server", "x", "--api-key-file", "/no/such"], "no such file"),
        (["queues", "--context", "nope"], "there is no context 'nope'"),
        (["queues", "--context", "a", "--server", "http://localhost:9"], "exclude"),
    ],
)
def test_what_is_wrong_is_said(
    arguments: list[str], words: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) in (1, 2)

    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"current": "a", "contexts": {"a": {"server": 1}}}', "{", "[" * 9999]
)
def test_a_damaged_file_is_said(text: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.parent.mkdir(parents=True)
    file.touch(0o600)
    file.write_text(text)

    assert run(["queues"]) == 2

    assert "is damaged; remove it" in capsys.readouterr().err


def test_the_choice_is_a_table() -> None:
    here = ServerContext("http://here", "k")
    known = ServerContexts("here", {"here": here, "there": ServerContext("http://there")})

    def chosen(*source: str | None) -> str | None:
        found = choose(Source(*source), known)
        return found and found.server

    assert chosen(None, None, None, None) == "http://here"
    assert chosen(None, None, None, "there") == "http://there"
    assert chosen(None, "http://v", None, "there") == "http://v"
    assert chosen(None, "http://v", "there", None) == "http://there"
    assert chosen("http://f", "http://v", None, "there") == "http://f"
    assert choose(Source(None, None, None, None), ServerContexts("", {})) is None
    with pytest.raises(BadContexts):
        chosen("http://f", None, "there", None)


def test_the_table_marks_the_current_one(prod: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(["context", "list"]) == 0

    head, row = capsys.readouterr().out.splitlines()
    assert head.split() == ["NAME", "IN", "USE", "SERVER", "KEY", "CA", "CERT"]
    assert row.split() == ["prod", "yes", prod.url, "stored"]
