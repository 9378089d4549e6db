"""DeleteNamespace: only without keys, and its name is not free before everything is gone."""

import pytest

from corvo.model.access_records import NamespaceState
from corvo.model.errors import Refusal
from tests.support.access import ACME, a_desk
from tests.support.machine import nothing_changes


def test_a_namespace_without_keys_is_marked() -> None:
    desk = a_desk("acme")
    desk.ask("set_namespace_quotas", "acme", max_jobs=7)
    before = desk.tables.access.state.namespaces["acme"]

    answer = desk.ask("delete_namespace", "acme")

    after = desk.tables.access.state.namespaces["acme"]
    assert (answer.body.status, answer.version) == ("deleting", desk.version)
    assert (after.state, after.quotas, after.created_at) == (NamespaceState.DELETING, before.quotas, before.created_at)
    with nothing_changes(desk):
        desk.ask("delete_namespace", "acme")


def test_a_namespace_with_keys_stays() -> None:
    desk = a_desk("acme")
    key_hash = desk.make_key(namespace="acme")
    with nothing_changes(desk), pytest.raises(Refusal, match="has 1 API keys") as refused:
        desk.ask("delete_namespace", "acme")
    assert refused.value.code == "NAMESPACE_IN_USE"
    desk.ask("revoke_key", key_hash)
    desk.ask("delete_namespace", "acme")


@pytest.mark.parametrize(("name", "code"), [("default", "VALIDATION_ERROR"), ("other", "NAMESPACE_NOT_FOUND")])
def test_some_cannot_be_deleted(name: str, code: str) -> None:
    with pytest.raises(Refusal) as refused:
        a_desk().ask("delete_namespace", name)
    assert refused.value.code == code


def test_a_tenant_cannot_delete_itself() -> None:
    with pytest.raises(Refusal) as refused:
        a_desk("acme").ask("delete_namespace", "acme", by=ACME)
    assert refused.value.code == "FORBIDDEN"
