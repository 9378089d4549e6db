"""SetSso: settings that can work, and no group with more than their setter has."""

from typing import Any

import msgspec
import pytest

from corvo.model.access import Permission
from corvo.model.access_records import SsoSettings
from corvo.model.errors import Refusal
from corvo.model.timestamps import to_rfc3339
from tests.support.access import ACME, MAILER, a_desk, a_principal
from tests.support.builders import NOW
from tests.support.machine import nothing_changes

OIDC: dict[str, Any] = {
    "provider": "oidc",
    "oidc_issuer_url": "https://login.example.com/realms/corvo",
    "oidc_client_id": "corvo",
    "oidc_group_claim": "teams",
    "group_role_mappings": {"sre": "operator", "everybody": "readonly"},
}


def test_settings_are_stored_and_shown() -> None:
    desk = a_desk()
    answer = desk.ask("set_sso_settings", **OIDC)
    assert (answer.body.status, answer.version) == ("ok", desk.version)
    assert desk.tables.access.state.sso == SsoSettings(**OIDC, updated_at=NOW)
    assert msgspec.to_builtins(desk.ask("sso_settings").body) == {
        **OIDC,
        "saml_enabled": False,
        "updated_at": to_rfc3339(NOW),
    }
    with nothing_changes(desk):
        desk.ask("set_sso_settings", **OIDC, at=NOW + 1)
    desk.ask("set_sso_settings", provider="")
    assert desk.tables.access.state.sso.oidc_client_id == ""


def test_before_anything_is_set_there_is_no_sign_on() -> None:
    shown = msgspec.to_builtins(a_desk().ask("sso_settings").body)

    assert (shown["provider"], shown["oidc_group_claim"], shown["updated_at"]) == ("", "groups", None)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"provider": "ldap"}, "VALIDATION_ERROR"),
        ({"oidc_client_id": ""}, "VALIDATION_ERROR"),
        *(
            ({"oidc_issuer_url": url}, "VALIDATION_ERROR")
            for url in ("", "login.example.com", "ftp://x", "https://", "https://a:b@x", "https://x?a=b", "https://[")
        ),
        ({"group_role_mappings": {"": "admin"}}, "VALIDATION_ERROR"),
        ({"group_role_mappings": {"sre": ""}}, "VALIDATION_ERROR"),
        ({"group_role_mappings": {"sre": "nothing"}}, "ROLE_NOT_FOUND"),
        ({"group_role_mappings": {str(n): "admin" for n in range(1_001)}}, "VALIDATION_ERROR"),
    ],
)
def test_what_cannot_work_is_refused(change: dict[str, Any], code: str) -> None:
    desk = a_desk()
    with nothing_changes(desk), pytest.raises(Refusal) as refused:
        desk.ask("set_sso_settings", **OIDC | change)
    assert refused.value.code == code


def test_nobody_maps_a_group_to_more_than_they_have() -> None:
    desk = a_desk()
    by = a_principal((Permission("sso", ("*",)), Permission("*", ("read", "list"))))
    desk.ask("set_sso_settings", **OIDC | {"group_role_mappings": {"everybody": "readonly"}}, by=by)
    with nothing_changes(desk), pytest.raises(Refusal) as refused:
        desk.ask("set_sso_settings", **OIDC | {"group_role_mappings": {"sre": "admin"}}, by=by)
    assert refused.value.code == "FORBIDDEN"
    desk.ask("set_sso_settings", **OIDC)
    with nothing_changes(desk), pytest.raises(Refusal):
        desk.ask("set_sso_settings", provider="", by=by)


@pytest.mark.parametrize("by", [ACME, MAILER, a_principal("operator")], ids=lambda by: str(by.name))
def test_sign_on_belongs_to_the_cluster(by: object) -> None:
    with pytest.raises(Refusal) as refused:
        a_desk().ask("set_sso_settings", **OIDC, by=by)
    assert refused.value.code == "FORBIDDEN"
