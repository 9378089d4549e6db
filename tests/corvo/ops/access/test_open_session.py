"""OpenSession: a person's browser, while the issuer of the settings vouches for it."""

from typing import Any

import msgspec
import pytest

from corvo.model.access_records import ApiKey
from corvo.model.errors import Refused
from corvo.model.limits import SESSIONS_PER_PERSON_MAX
from corvo.ops.access.open_session import OpenSession
from tests.support.access import Desk, a_desk
from tests.support.builders import NOW
from tests.support.machine import nothing_changes

ISSUER = "https://issuer.example"
HOUR = 3_600_000_000_000


def a_session(number: int = 1, **changes: Any) -> ApiKey:
    session = ApiKey(
        f"{number:064x}", "ada", "sk_1", role="operator", expires_at=NOW + HOUR, issuer=ISSUER, subject="u-1"
    )
    return msgspec.structs.replace(session, **changes)


def a_desk_with_sign_on(**settings: Any) -> Desk:
    desk = a_desk("acme")
    desk.ask("set_sso_settings", **{"provider": "oidc", "oidc_issuer_url": ISSUER, "oidc_client_id": "c", **settings})
    return desk


def test_a_session_is_a_key_of_a_person() -> None:
    desk = a_desk_with_sign_on()
    session = a_session(roles=("nobody-made-this", "readonly"))

    assert desk.one(OpenSession(session), at=NOW) == desk.version
    kept = desk.key(session.key_hash)
    assert (kept.role, kept.roles, kept.created_at) == ("operator", ("readonly",), NOW)
    assert desk.tables.access.state.principal_of(kept).kind == "person"
    [view] = desk.ask("api_keys").body
    assert (view.name, view.issuer) == ("ada", ISSUER)
    with nothing_changes(desk):
        assert desk.one(OpenSession(session)) == desk.version


@pytest.mark.parametrize(
    ("changes", "settings", "code"),
    [
        ({}, {"provider": ""}, "SIGN_ON_FAILED"),
        ({}, {"oidc_issuer_url": "https://other.example"}, "SIGN_ON_FAILED"),
        ({"issuer": ""}, {}, "SIGN_ON_FAILED"),
        ({"role": "unknown"}, {}, "FORBIDDEN"),
        ({"namespace": "unknown"}, {}, "NAMESPACE_NOT_FOUND"),
    ],
)
def test_what_the_settings_do_not_allow_is_refused(changes: Any, settings: Any, code: str) -> None:
    desk = a_desk_with_sign_on(**settings)
    with nothing_changes(desk):
        refused = desk.one(OpenSession(a_session(**changes)))
    assert isinstance(refused, Refused) and refused.code == code


def test_a_person_has_a_bounded_number_of_sessions_and_ended_ones_are_forgotten() -> None:
    desk = a_desk_with_sign_on()
    mailer = desk.make_key(expires_at="2100-01-01")
    desk.one(OpenSession(a_session(99, subject="u-2", expires_at=NOW + 1)), at=NOW)
    for number in range(1, SESSIONS_PER_PERSON_MAX + 3):
        desk.one(OpenSession(a_session(number)), at=NOW + number)

    left = desk.tables.access.state.keys
    assert mailer in left
    assert sorted(key for key in left if key != mailer) == [
        f"{number:064x}" for number in range(3, SESSIONS_PER_PERSON_MAX + 3)
    ]
