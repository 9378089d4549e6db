"""DeleteRole: its bindings go with it, and nobody loses the only role that they have."""

import pytest

from corvo.model.access import Permission
from corvo.model.errors import Refusal
from corvo.model.granting import granter_of
from corvo.ops.access.delete_role import DeleteRole
from tests.support.access import ACME, ROOT, a_desk, a_principal
from tests.support.machine import nothing_changes


def test_a_role_goes_with_its_bindings_which_do_not_come_back() -> None:
    desk = a_desk()
    desk.make_role()
    key_hash = desk.make_key(role="worker")
    desk.ask("bind_role", key_hash, role="auditor")

    answer = desk.ask("delete_role", "auditor")
    assert (answer.body.status, answer.version) == ("deleted", desk.version)
    desk.make_role("auditor", Permission("*", ("*",)))

    assert desk.key(key_hash).all_roles == ("worker",)


def test_a_role_that_keys_or_groups_depend_on_stays() -> None:
    desk = a_desk()
    desk.make_role("of_key")
    desk.make_key(role="of_key")
    desk.make_role("of_group")
    desk.ask("set_sso_settings", group_role_mappings={"sre": "of_group"})
    for role in ("of_key", "of_group"):
        with nothing_changes(desk), pytest.raises(Refusal) as refused:
            desk.ask("delete_role", role)
        assert refused.value.code == "ROLE_IN_USE"


def test_an_unknown_role_is_not_found_and_a_built_in_one_stays() -> None:
    for role, code in (("nothing", "ROLE_NOT_FOUND"), ("admin", "VALIDATION_ERROR")):
        with pytest.raises(Refusal) as refused:
            a_desk().ask("delete_role", role)
        assert refused.value.code == code


def test_a_repeated_deletion_has_nothing_to_do() -> None:
    desk = a_desk()
    desk.make_role()
    desk.ask("delete_role", "auditor")

    with nothing_changes(desk):
        assert desk.one(DeleteRole(granter_of(ROOT), "auditor")) == desk.version


def test_nobody_deletes_a_role_that_has_more_than_they() -> None:
    desk = a_desk("acme")
    desk.make_role()
    for by in (ACME, a_principal((Permission("roles", ("*",)),))):
        with nothing_changes(desk), pytest.raises(Refusal) as refused:
            desk.ask("delete_role", "auditor", by=by)
        assert refused.value.code == "FORBIDDEN"
