"""PutRole: for the cluster only, and never with more than its maker has."""

import pytest

from corvo.model.access import ROLES, Permission
from corvo.model.access_records import RoleRecord
from corvo.model.errors import Refusal
from corvo.ops.access import put_role as module
from tests.support.access import ACME, MAILER, a_desk, a_principal
from tests.support.builders import NOW, SECOND
from tests.support.machine import nothing_changes

ROLE_MAKER = a_principal((Permission("roles", ("*",)), Permission("queues", ("read", "pause"))))
READ, PAUSE, CLEAR = (Permission("queues", (action,)) for action in ("read", "pause", "clear"))


def test_a_role_is_made_and_changed() -> None:
    desk = a_desk()
    answer = desk.ask("put_role", name="auditor", permissions=[READ])
    assert (answer.body.status, answer.version) == ("ok", desk.version)
    assert desk.tables.access.state.roles["auditor"] == RoleRecord("auditor", (READ,), NOW)

    desk.ask("put_role", name="auditor", permissions=[READ, PAUSE], at=NOW + SECOND)
    assert desk.tables.access.state.roles["auditor"] == RoleRecord("auditor", (READ, PAUSE), NOW, NOW + SECOND)
    with nothing_changes(desk):
        desk.ask("put_role", name="auditor", permissions=[READ, PAUSE])


def test_a_change_reaches_all_keys_with_the_role() -> None:
    desk = a_desk()
    desk.make_role("auditor", READ)
    key = desk.key(desk.make_key(role="auditor"))
    assert not desk.tables.access.state.principal_of(key).may("queues:pause")
    desk.make_role("auditor", PAUSE)

    assert desk.tables.access.state.principal_of(key).may("queues:pause")


@pytest.mark.parametrize("name", [*ROLES, "with space", "", "a|b", "x" * 65])
def test_some_names_are_no_custom_roles(name: str) -> None:
    desk = a_desk()
    with nothing_changes(desk), pytest.raises(Refusal) as refused:
        desk.ask("put_role", name=name, permissions=[READ])
    assert refused.value.code == "VALIDATION_ERROR"


def test_permissions_are_bounded() -> None:
    desk = a_desk()
    for permissions in ([{"resource": "", "actions": []}], [Permission("q" * 60, ("a" * 60,) * 60)] * 2):
        with nothing_changes(desk), pytest.raises(Refusal) as refused:
            desk.ask("put_role", name="auditor", permissions=permissions)
        assert refused.value.code == "VALIDATION_ERROR"


@pytest.mark.parametrize("by", [ACME, MAILER, a_principal("operator")], ids=lambda by: str(by.name))
def test_roles_belong_to_the_cluster(by: object) -> None:
    with pytest.raises(Refusal) as refused:
        a_desk("acme").ask("put_role", name="auditor", permissions=[READ], by=by)  # type: ignore[arg-type]
    assert refused.value.code == "FORBIDDEN"


def test_nobody_makes_or_changes_a_role_that_has_more_than_they() -> None:
    desk = a_desk()
    desk.ask("put_role", name="pauser", permissions=[READ, PAUSE], by=ROLE_MAKER)
    desk.make_role("clearer", CLEAR)
    for name, permissions in (("mine", [CLEAR]), ("pauser", [READ, CLEAR]), ("clearer", [READ])):
        with nothing_changes(desk), pytest.raises(Refusal) as refused:
            desk.ask("put_role", name=name, permissions=permissions, by=ROLE_MAKER)
        assert refused.value.code == "FORBIDDEN"


def test_roles_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROLES_MAX", 1)
    desk = a_desk()
    desk.make_role("one")
    with nothing_changes(desk), pytest.raises(Refusal) as refused:
        desk.make_role("two")
    assert refused.value.code == "TOO_MANY_ROLES"
    desk.make_role("one", PAUSE)
