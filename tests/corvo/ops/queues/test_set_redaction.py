"""Paths of redaction: a record of access that every gateway follows."""

import pytest

from corvo.model.errors import Refusal
from corvo.model.limits import REDACTED_QUEUES_MAX
from corvo.ops.queues.set_redaction import SetRedaction
from tests.support.access import a_desk, a_principal
from tests.support.machine import nothing_changes


def test_paths_are_set_shown_replaced_and_removed() -> None:
    desk = a_desk()
    version = desk.version
    desk.ask("set_redaction", "mail", paths=["customer.email", "customer.email", "**.note"])
    assert desk.ask("redaction", "mail").body.paths == ["customer.email", "**.note"]
    assert "password" in desk.ask("redaction", "other").body.words
    assert desk.version == version + 1
    with nothing_changes(desk):
        desk.ask("set_redaction", "mail", paths=["customer.email", "**.note"])
    desk.ask("set_redaction", "mail", paths=[])
    assert desk.tables.access.state.redaction.queues == {}


def test_a_gateway_is_told() -> None:
    desk = a_desk()
    before = desk.version
    desk.ask("set_redaction", "mail", paths=["a"])
    news = desk.tables.access.news(before, is_current=True)
    assert news.redaction is not None and news.redaction.queues == {"mail": ("a",)}
    assert desk.tables.access.news(0, is_current=True).redaction == news.redaction


def test_what_is_no_path_and_one_queue_too_many_are_refused() -> None:
    desk = a_desk()
    with pytest.raises(Refusal, match=r"paths\[1\]: 'a\.\.b' is no path"):
        desk.ask("set_redaction", "mail", paths=["a", "a..b"])
    for number in range(REDACTED_QUEUES_MAX):
        desk.one(SetRedaction(f"q{number}", ("a",)))
    with nothing_changes(desk), pytest.raises(Refusal) as refused:
        desk.ask("set_redaction", "mail", paths=["a"])
    assert refused.value.code == "TOO_MANY_REDACTIONS"
    desk.ask("set_redaction", "q1", paths=["b"])


def test_operators_do_not_change_what_is_hidden() -> None:
    with pytest.raises(Refusal, match="redaction:write"):
        a_desk().ask("set_redaction", "mail", by=a_principal("operator"), paths=["a"])
