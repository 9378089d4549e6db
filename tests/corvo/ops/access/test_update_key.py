"""UpdateKey: what is given changes, the rest stays, and nobody changes a key that has more than they."""

import msgspec
import pytest

from corvo.model.access import Principal
from corvo.model.errors import Refusal
from tests.support.access import ACME, KEY_MANAGER, MAILER, ROOT, a_desk
from tests.support.builders import NOW
from tests.support.machine import nothing_changes


def test_what_is_given_changes_and_the_rest_stays() -> None:
    desk = a_desk()
    key_hash = desk.make_key(role="worker", queue_scope="mail.*", expires_at="2100-01-01")
    before = desk.key(key_hash)

    answer = desk.ask("update_key", key_hash, enabled=False)
    assert (answer.status, answer.version, answer.body.enabled) == (200, desk.version, False)
    assert desk.key(key_hash) == msgspec.structs.replace(before, is_enabled=False)

    desk.ask("update_key", key_hash, name="new", enabled=True, role="readonly", queue_scope=None, expires_at=None)
    assert desk.key(key_hash) == msgspec.structs.replace(
        before, name="new", role="readonly", queue_scope=(), expires_at=0
    )


def test_a_key_that_is_disabled_or_expired_is_not_valid() -> None:
    desk = a_desk()
    key_hash = desk.make_key()
    assert desk.key(key_hash).is_valid(NOW)
    desk.ask("update_key", key_hash, enabled=False)

    assert not desk.key(key_hash).is_valid(NOW)


def test_the_same_once_more_changes_nothing() -> None:
    desk = a_desk()
    key_hash = desk.make_key(name="mailer")

    with nothing_changes(desk):
        assert desk.ask("update_key", key_hash, name="mailer").version == desk.version


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "VALIDATION_ERROR"),
        ({"role": "nothing"}, "ROLE_NOT_FOUND"),
        ({"expires_at": "2001-01-01"}, "VALIDATION_ERROR"),
        ({"queue_scope": "a b"}, "VALIDATION_ERROR"),
        ({"namespace": "acme"}, "VALIDATION_ERROR"),
    ],
)
def test_what_is_wrong_is_refused(body: dict[str, object], code: str) -> None:
    desk = a_desk()
    key_hash = desk.make_key()

    with nothing_changes(desk), pytest.raises(Refusal) as refused:
        desk.ask("update_key", key_hash, **body)
    assert refused.value.code == code


@pytest.mark.parametrize("key_hash", ["0" * 64, "nonsense", "x" * 10_000])
def test_an_unknown_key_is_not_found(key_hash: str) -> None:
    with pytest.raises(Refusal) as refused:
        a_desk().ask("update_key", key_hash, enabled=False)
    assert refused.value.code == "KEY_NOT_FOUND"


@pytest.mark.parametrize(
    ("by", "code"), [(ACME, "KEY_NOT_FOUND"), (KEY_MANAGER, "FORBIDDEN"), (MAILER, "FORBIDDEN")], ids=lambda by: str(by)
)
def test_a_stronger_key_cannot_be_disabled(by: Principal, code: str) -> None:
    desk = a_desk("acme")
    key_hash = desk.make_key(role="admin")

    with nothing_changes(desk), pytest.raises(Refusal) as refused:
        desk.ask("update_key", key_hash, enabled=False, by=by)
    assert refused.value.code == code


def test_a_scope_is_not_left_by_a_key_that_has_one() -> None:
    desk = a_desk()
    key_hash = desk.make_key(role="worker", queue_scope="mail.slow", by=MAILER)
    desk.ask("update_key", key_hash, queue_scope="mail.fast", by=MAILER)
    for scope in (None, "billing"):
        with nothing_changes(desk), pytest.raises(Refusal) as refused:
            desk.ask("update_key", key_hash, queue_scope=scope, by=MAILER)
        assert refused.value.code == "FORBIDDEN"
    desk.ask("update_key", key_hash, queue_scope=None, by=ROOT)

    assert desk.key(key_hash).queue_scope == ()
