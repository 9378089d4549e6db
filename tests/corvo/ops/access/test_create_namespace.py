"""CreateNamespace: names that fit into queues and ids, once each, and not without end."""

import pytest

from corvo.model.errors import Refusal
from corvo.ops.access import create_namespace as module
from tests.support.access import ACME, MAILER, a_desk, a_principal
from tests.support.builders import NOW
from tests.support.machine import nothing_changes


def test_a_namespace_is_made_once() -> None:
    desk = a_desk()
    first = desk.ask("create_namespace", name="acme")
    assert (first.status, first.body.name, first.body.status, first.version) == (201, "acme", "created", desk.version)
    with nothing_changes(desk):
        second = desk.ask("create_namespace", name="acme", at=NOW + 1)
    assert (second.status, second.body.status) == (200, "exists")


def test_the_default_namespace_exists() -> None:
    desk = a_desk()
    with nothing_changes(desk):
        assert desk.ask("create_namespace", name="default").status == 200


@pytest.mark.parametrize("name", ["", "Acme", "a_b", "-a", "a-", "a|b", "a\0", "x" * 64, "*"])
def test_a_name_fits_into_queues_and_ids(name: str) -> None:
    with pytest.raises(Refusal) as refused:
        a_desk().ask("create_namespace", name=name)
    assert refused.value.code == "VALIDATION_ERROR"


@pytest.mark.parametrize("by", [ACME, MAILER, a_principal("operator")], ids=lambda by: str(by.name))
def test_namespaces_belong_to_the_cluster(by: object) -> None:
    with pytest.raises(Refusal) as refused:
        a_desk().ask("create_namespace", name="other", by=by)  # type: ignore[arg-type]
    assert refused.value.code == "FORBIDDEN"


def test_namespaces_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "NAMESPACES_MAX", 1)
    desk = a_desk("acme")
    with nothing_changes(desk), pytest.raises(Refusal) as refused:
        desk.ask("create_namespace", name="other")
    assert refused.value.code == "TOO_MANY_NAMESPACES"


def test_one_that_is_being_deleted_cannot_be_made_again_yet() -> None:
    desk = a_desk("acme")
    desk.ask("delete_namespace", "acme")
    with nothing_changes(desk), pytest.raises(Refusal) as refused:
        desk.ask("create_namespace", name="acme")
    assert refused.value.code == "NAMESPACE_IN_USE"
