"""`corvo keys` and `corvo whoami`: what each command asks, and what it prints."""

import io
import json
import sys
from typing import Any

import pytest

from corvo.cli.main import run
from corvo.model.access import Permission
from corvo.model.api_key_text import has_checksum, hash_of
from corvo.ops.access.fields import AccessChanged, KeyCreated
from corvo.queries.access.principal import PrincipalView
from corvo.queries.access.views import KeyView
from tests.cli.answers import NOON
from tests.client.playback import Playback

HASH, OTHER = "ab" * 32, "cd" * 32
SECRET = "sk_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf1Yo7hP"
MADE = KeyCreated(status="ok", api_key=SECRET, key_hash=HASH, prefix=SECRET[:11])


def a_key(**fields: Any) -> KeyView:
    fixed: dict[str, Any] = {"key_hash": HASH, "name": "mailer", "namespace": "default", "role": "worker"}
    return KeyView(**(fixed | {"enabled": True, "created_at": NOON, "prefix": SECRET[:11]} | fields))


@pytest.fixture(autouse=True)
def _use_the_playback(playback: Playback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORVO_SERVER", playback.url)


@pytest.mark.parametrize("command", ["list", "create", "update", "disable", "enable", "rotate", "delete", "generate"])
def test_each_command_explains_itself_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["keys", command, "--help"]) == 0

    shown = capsys.readouterr().out
    assert "Example" in shown and f"  corvo keys {command}" in shown


@pytest.mark.parametrize("words", [["keys"], ["keys", "list"]])
def test_keys_are_listed_without_the_keys(
    playback: Playback, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    playback.answer(
        "GET", "/auth/keys", [a_key(), a_key(name="\x1b[31mred", enabled=False, prefix="", queue_scope="mail.*")]
    )

    assert run(words) == 0

    shown = capsys.readouterr().out
    assert "mailer" in shown and HASH[:12] in shown and "disabled" in shown and "mail.*" in shown
    assert "\x1b[31m" not in shown and SECRET not in shown


def test_keys_of_one_namespace(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("GET", "/auth/keys", [])

    assert run(["keys", "list", "--namespace", "acme", "--output", "json"]) == 0

    assert capsys.readouterr().out == "[]\n"
    assert playback.asked[0].path.endswith("/auth/keys?namespace=acme")


def test_create_sends_what_was_asked_and_prints_the_key_once(
    playback: Playback, capsys: pytest.CaptureFixture[str]
) -> None:
    playback.answer("POST", "/auth/keys", MADE)
    options = ["--role", "worker", "--namespace", "acme", "--scope", "mail.*", "--expires", "2100-01-01", "--disabled"]

    assert run(["keys", "create", "mailer", *options]) == 0

    assert json.loads(playback.asked[0].body) == {
        "name": "mailer",
        "namespace": "acme",
        "role": "worker",
        "queue_scope": "mail.*",
        "expires_at": "2100-01-01T00:00:00Z",
        "enabled": False,
    }
    shown = capsys.readouterr().out
    assert shown.count(SECRET) == 1 and "not shown again" in shown


def test_create_leaves_what_is_not_said_to_the_server(playback: Playback, monkeypatch: pytest.MonkeyPatch) -> None:
    playback.answer("POST", "/auth/keys", MADE)
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{SECRET}\n{HASH}\n"))

    assert run(["keys", "create", "mailer", "--key-stdin", "--output", "json"]) == 0

    assert json.loads(playback.asked[0].body) == {"name": "mailer", "key": SECRET}


def test_a_bad_moment_is_a_mistake_of_the_user(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["keys", "create", "mailer", "--expires", "soon"]) == 2

    assert "--expires soon" in capsys.readouterr().err and playback.asked == []


@pytest.mark.parametrize("text", [HASH, HASH[:8], SECRET[:8], SECRET[:11], SECRET, "mailer"])
def test_a_key_is_named_by_its_hash_its_beginning_or_its_name(playback: Playback, text: str) -> None:
    playback.answer("GET", "/auth/keys", [a_key(), a_key(key_hash=OTHER, name="other", prefix="sk_zzzzzzzz")])
    playback.answer("PUT", f"/auth/keys/{HASH}", a_key(enabled=False))

    assert run(["keys", "disable", text]) == 0

    assert json.loads(playback.asked[-1].body) == {"enabled": False}


@pytest.mark.parametrize(("text", "word"), [("nobody", "no API key"), ("mailer", "2 API keys")])
def test_a_key_that_cannot_be_told_is_a_mistake_of_the_user(
    playback: Playback, capsys: pytest.CaptureFixture[str], text: str, word: str
) -> None:
    playback.answer("GET", "/auth/keys", [a_key(), a_key(key_hash=OTHER)])

    assert run(["keys", "enable", text]) == 2

    assert word in capsys.readouterr().err
    assert [asked.method for asked in playback.asked] == ["GET"]


def test_enable_and_update_change_what_is_given(playback: Playback) -> None:
    playback.answer("PUT", f"/auth/keys/{HASH}", a_key())

    assert run(["keys", "enable", HASH]) == 0
    assert run(["keys", "update", HASH, "--name", "new", "--role", "admin"]) == 0
    assert run(["keys", "update", HASH, "--scope", "", "--expires", ""]) == 0

    bodies = [json.loads(asked.body) for asked in playback.asked]
    assert bodies == [
        {"enabled": True},
        {"name": "new", "role": "admin"},
        {"queue_scope": None, "expires_at": None},
    ]


def test_rotate_prints_the_new_key(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("POST", f"/auth/keys/{HASH}/rotate", MADE)

    assert run(["keys", "rotate", HASH, "--overlap", "1h", "--output", "json"]) == 0

    assert json.loads(playback.asked[0].body) == {"overlap": "1h"}
    assert json.loads(capsys.readouterr().out)["api_key"] == SECRET


def test_delete_asks_first(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("DELETE", f"/auth/keys/{HASH}", AccessChanged("deleted"))

    assert run(["keys", "delete", HASH]) == 2
    assert "give --yes" in capsys.readouterr().err and playback.asked == []
    assert run(["keys", "delete", HASH, "--yes"]) == 0

    assert [asked.method for asked in playback.asked] == ["DELETE"]
    assert "deleted" in capsys.readouterr().out


def test_generate_needs_no_server(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["keys", "generate"]) == 0
    key, key_hash = capsys.readouterr().out.split()
    assert has_checksum(key) and hash_of(key) == key_hash
    assert run(["keys", "generate", "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["api_key"] != key
    assert playback.asked == []


def test_whoami_shows_the_principal(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer(
        "GET",
        "/auth/whoami",
        PrincipalView(
            name="mailer",
            kind="key",
            roles=["worker"],
            permissions=[Permission("jobs", ("fetch", "ack"))],
            namespace="acme",
            home="default",
            cluster_admin=False,
            queue_scope="mail.*",
            key_hash=HASH,
        ),
    )

    assert run(["whoami"]) == 0

    shown = capsys.readouterr().out
    for word in ("mailer", "acme (of default)", "jobs:fetch,ack", "mail.*"):
        assert word in shown
