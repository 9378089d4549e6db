"""BindRole: a key gets one more role, never one that its giver lacks."""

import pytest

from corvo.model.access import Permission
from corvo.model.errors import Refusal
from corvo.model.limits import ROLES_PER_KEY_MAX
from tests.support.access import ACME, KEY_MANAGER, a_desk
from tests.support.machine import nothing_changes


def test_the_permissions_of_all_roles_are_united() -> None:
    desk = a_desk()
    desk.make_role("auditor", Permission("queues", ("read",)))
    key_hash = desk.make_key(role="worker")

    answer = desk.ask("bind_role", key_hash, role="auditor")

    assert (answer.body.status, answer.version) == ("ok", desk.version)
    principal = desk.tables.access.state.principal_of(desk.key(key_hash))
    assert principal.roles == ("worker", "auditor")
    assert principal.may("jobs:fetch") and principal.may("queues:read") and not principal.may("queues:pause")
    assert desk.ask("key_roles", key_hash).body.roles == ["auditor"]


@pytest.mark.parametrize("role", ["auditor", "worker"])
def test_a_role_that_it_has_already_changes_nothing(role: str) -> None:
    desk = a_desk()
    desk.make_role()
    key_hash = desk.make_key(role="worker")
    desk.ask("bind_role", key_hash, role="auditor")

    with nothing_changes(desk):
        desk.ask("bind_role", key_hash, role=role)


def test_a_role_must_exist_and_so_must_the_key() -> None:
    desk = a_desk()
    with pytest.raises(Refusal) as refused:
        desk.ask("bind_role", desk.make_key(), role="auditor")
    assert refused.value.code == "ROLE_NOT_FOUND"
    with pytest.raises(Refusal) as refused:
        desk.ask("bind_role", "0" * 64, role="admin")
    assert refused.value.code == "KEY_NOT_FOUND"


def test_nobody_gives_themselves_more() -> None:
    desk = a_desk("acme")
    desk.make_role("jobber", Permission("jobs", ("*",)), Permission("auth", ("*",)))
    own = desk.make_key(role="jobber")
    with nothing_changes(desk), pytest.raises(Refusal) as refused:
        desk.ask("bind_role", own, role="admin", by=KEY_MANAGER)
    assert refused.value.code == "FORBIDDEN"
    with nothing_changes(desk), pytest.raises(Refusal) as refused:
        desk.ask("bind_role", own, role="readonly", by=ACME)
    assert refused.value.code == "KEY_NOT_FOUND"


def test_the_roles_of_a_key_are_bounded() -> None:
    desk = a_desk()
    key_hash = desk.make_key()
    for number in range(ROLES_PER_KEY_MAX):
        desk.make_role(f"role{number}")
        desk.ask("bind_role", key_hash, role=f"role{number}")
    with nothing_changes(desk), pytest.raises(Refusal) as refused:
        desk.ask("bind_role", key_hash, role="worker")
    assert refused.value.code == "TOO_MANY_ROLES"
