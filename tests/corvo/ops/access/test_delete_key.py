"""DeleteKey: gone at once, and only by those who manage it."""

import pytest

from corvo.model.errors import Refusal
from corvo.model.granting import granter_of
from corvo.ops.access.delete_key import DeleteKey
from tests.support.access import ACME, KEY_MANAGER, ROOT, a_desk
from tests.support.machine import nothing_changes


@pytest.mark.parametrize("is_by_path", [True, False])
def test_a_key_is_deleted(is_by_path: bool) -> None:
    desk = a_desk()
    key_hash = desk.make_key()

    answer = desk.ask("revoke_key", key_hash) if is_by_path else desk.ask("delete_key", key_hash=key_hash)

    assert (answer.status, answer.body.status, answer.version) == (200, "deleted", desk.version)
    assert desk.key_names == []


def test_an_unknown_key_is_not_found() -> None:
    desk = a_desk()
    for key_hash in ("0" * 64, "nonsense"):
        with pytest.raises(Refusal) as refused:
            desk.ask("revoke_key", key_hash)
        assert refused.value.code == "KEY_NOT_FOUND"
    with pytest.raises(Refusal, match="key_hash"):
        desk.ask("delete_key", key_hash="nonsense")


def test_a_repeated_deletion_has_nothing_to_do() -> None:
    desk = a_desk()
    delete = DeleteKey(granter_of(ROOT), desk.make_key())
    desk.one(delete)

    with nothing_changes(desk):
        assert desk.one(delete) == desk.version


def test_a_key_of_another_namespace_or_a_stronger_one_stays() -> None:
    desk = a_desk("acme")
    key_hash = desk.make_key(role="admin")
    for by, code in ((ACME, "KEY_NOT_FOUND"), (KEY_MANAGER, "FORBIDDEN")):
        with nothing_changes(desk), pytest.raises(Refusal) as refused:
            desk.ask("revoke_key", key_hash, by=by)
        assert refused.value.code == code
    with nothing_changes(desk):
        desk.one(DeleteKey(granter_of(ACME), key_hash))


def test_an_administrator_of_a_namespace_deletes_its_keys() -> None:
    desk = a_desk("acme")
    key_hash = desk.make_key(namespace="acme", role="admin")
    desk.ask("revoke_key", key_hash, by=ACME)

    assert desk.key_names == []
