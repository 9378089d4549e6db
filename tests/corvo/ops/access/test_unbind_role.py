"""UnbindRole: the role is gone from the key, the key keeps the rest."""

import pytest

from corvo.model.errors import Refusal
from tests.support.access import ACME, KEY_MANAGER, a_desk
from tests.support.machine import nothing_changes


def test_a_role_is_taken_away() -> None:
    desk = a_desk()
    key_hash = desk.make_key(role="worker")
    for role in ("auditor", "second"):
        desk.make_role(role)
        desk.ask("bind_role", key_hash, role=role)

    answer = desk.ask("unbind_role", key_hash, "auditor")

    assert (answer.body.status, answer.version) == ("deleted", desk.version)
    assert desk.key(key_hash).all_roles == ("worker", "second")


@pytest.mark.parametrize("role", ["auditor", "worker", "x" * 1_000])
def test_a_role_that_is_not_bound_changes_nothing(role: str) -> None:
    desk = a_desk()
    key_hash = desk.make_key(role="worker")

    with nothing_changes(desk):
        desk.ask("unbind_role", key_hash, role)


def test_a_stronger_key_keeps_its_roles() -> None:
    desk = a_desk("acme")
    desk.make_role()
    key_hash = desk.make_key(role="admin")
    desk.ask("bind_role", key_hash, role="auditor")
    for by, code in ((ACME, "KEY_NOT_FOUND"), (KEY_MANAGER, "FORBIDDEN")):
        with nothing_changes(desk), pytest.raises(Refusal) as refused:
            desk.ask("unbind_role", key_hash, "auditor", by=by)
        assert refused.value.code == code
