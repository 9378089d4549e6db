"""`corvo roles`: what each command asks, and what it prints."""

import json

import pytest

from corvo.cli.main import run
from corvo.model.access import Permission
from corvo.ops.access.fields import AccessChanged
from corvo.queries.access.views import RoleView
from tests.client.playback import Playback

HASH = "ab" * 32


@pytest.fixture(autouse=True)
def _use_the_playback(playback: Playback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORVO_SERVER", playback.url)


@pytest.mark.parametrize("command", ["list", "put", "delete", "bind", "unbind"])
def test_each_command_explains_itself_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["roles", command, "--help"]) == 0

    shown = capsys.readouterr().out
    assert "Example" in shown and f"  corvo roles {command}" in shown


@pytest.mark.parametrize("words", [["roles"], ["roles", "list"]])
def test_roles_are_listed(playback: Playback, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    playback.answer(
        "GET",
        "/auth/roles",
        [
            RoleView(name="admin", permissions=[Permission("*", ("*",))], built_in=True),
            RoleView(name="auditor", permissions=[Permission("jobs", ("read", "list"))]),
        ],
    )

    assert run(words) == 0

    shown = capsys.readouterr().out
    assert "built in" in shown and "custom" in shown and "jobs:read,list" in shown


def test_put_sends_permissions(playback: Playback) -> None:
    playback.answer("POST", "/auth/roles", AccessChanged("ok"))

    assert run(["roles", "put", "support", "--allow", "jobs:read,cancel", "--allow", "*:list"]) == 0

    assert json.loads(playback.asked[0].body) == {
        "name": "support",
        "permissions": [
            {"resource": "jobs", "actions": ["read", "cancel"]},
            {"resource": "*", "actions": ["list"]},
        ],
    }


@pytest.mark.parametrize("words", [["--allow", "jobs"], ["--allow", ":read"], []])
def test_put_needs_resource_and_actions(playback: Playback, words: list[str]) -> None:
    assert run(["roles", "put", "support", *words]) == 2
    assert playback.asked == []


def test_delete_asks_first(playback: Playback) -> None:
    playback.answer("DELETE", "/auth/roles/auditor", AccessChanged("deleted"))

    assert run(["roles", "delete", "auditor"]) == 2
    assert playback.asked == []
    assert run(["roles", "delete", "auditor", "--yes"]) == 0
    assert [asked.method for asked in playback.asked] == ["DELETE"]


def test_bind_and_unbind(playback: Playback, capsys: pytest.CaptureFixture[str]) -> None:
    playback.answer("POST", f"/auth/keys/{HASH}/roles", AccessChanged("ok"))
    playback.answer("DELETE", f"/auth/keys/{HASH}/roles/auditor", AccessChanged("deleted"))

    assert run(["roles", "bind", HASH, "auditor"]) == 0
    assert run(["roles", "unbind", HASH, "auditor", "--output", "json"]) == 0

    assert json.loads(playback.asked[0].body) == {"role": "auditor"}
    assert '"deleted"' in capsys.readouterr().out
