"""CreateKey: shown once, stored as a hash, and never stronger than its maker."""

import msgspec
import pytest

from corvo.model import limits
from corvo.model.access import Permission, Principal
from corvo.model.access_records import ApiKey
from corvo.model.api_key_text import has_checksum, hash_of
from corvo.model.errors import Refusal
from corvo.ops.access import create_key as module
from corvo.rules import access as rules
from tests.support.access import ACME, KEY_MANAGER, MAILER, ROOT, a_desk, a_principal
from tests.support.builders import NOW, SECOND
from tests.support.machine import nothing_changes

DAY = 86_400 * SECOND


def test_a_key_is_shown_once_and_only_its_hash_is_stored() -> None:
    desk = a_desk()

    answer = desk.ask("create_key", name="mailer", role="worker", queue_scope="mail.*,reports", by=ROOT)

    created = answer.body
    assert (answer.status, created.status, answer.version) == (200, "ok", desk.version)
    assert has_checksum(created.api_key) and hash_of(created.api_key) == created.key_hash
    assert desk.key(created.key_hash) == ApiKey(
        created.key_hash,
        "mailer",
        created.api_key[:11],
        "default",
        "worker",
        queue_scope=("mail.*", "reports"),
        created_at=NOW,
        created_by=ROOT.name,
    )
    everything = b"".join([*desk.log, *desk.records().values()])
    assert created.api_key.encode() not in everything and created.api_key[11:].encode() not in everything


def test_two_keys_differ() -> None:
    desk = a_desk()

    assert desk.make_key() != desk.make_key()


def test_the_defaults_are_those_of_the_original() -> None:
    desk = a_desk()
    key = desk.key(desk.make_key())

    assert (key.role, key.namespace, key.queue_scope, key.is_enabled, key.expires_at) == (
        *("readonly", "default", (), True, 0),
    )


def test_a_client_may_choose_the_key_and_give_it_new_terms_later() -> None:
    desk = a_desk("acme")
    mine = "a-key-of-my-own-making"
    first = desk.ask("create_key", name="one", key=mine, role="worker").body
    assert (first.api_key, first.key_hash, first.prefix) == (mine, hash_of(mine), "")
    desk.make_role()
    desk.ask("bind_role", first.key_hash, role="auditor")
    before = desk.key(first.key_hash)

    desk.ask("create_key", name="two", key=mine, role="readonly", namespace="acme", enabled=False, at=NOW + SECOND)

    assert desk.key(first.key_hash) == msgspec.structs.replace(
        before, name="two", role="readonly", namespace="acme", is_enabled=False
    )
    with nothing_changes(desk):
        desk.ask("create_key", name="two", key=mine, role="readonly", namespace="acme", enabled=False)


def test_expiry_is_in_the_future() -> None:
    desk = a_desk()

    key = desk.key(desk.make_key(expires_at="2190-01-01"))
    assert key.expires_at > NOW and not key.is_valid(key.expires_at) and key.is_valid(key.expires_at - 1)
    for text in ("2001-01-01", "soon"):
        with nothing_changes(desk), pytest.raises(Refusal, match="expires_at"):
            desk.make_key(expires_at=text)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"name": ""}, "VALIDATION_ERROR"),
        ({"name": "with\nnewline"}, "VALIDATION_ERROR"),
        ({"name": "k", "key": "too short"}, "VALIDATION_ERROR"),
        ({"name": "k", "namespace": "Acme"}, "VALIDATION_ERROR"),
        ({"name": "k", "namespace": "*"}, "VALIDATION_ERROR"),
        ({"name": "k", "namespace": "nobody"}, "NAMESPACE_NOT_FOUND"),
        ({"name": "k", "role": "nothing"}, "ROLE_NOT_FOUND"),
        ({"name": "k", "role": "a|b"}, "VALIDATION_ERROR"),
        ({"name": "k", "queue_scope": "acme|mail"}, "VALIDATION_ERROR"),
        ({"name": "k", "queue_scope": ["x" * 200] * 10}, "VALIDATION_ERROR"),
        ({"name": "k", "surprise": 1}, "VALIDATION_ERROR"),
    ],
)
def test_what_is_wrong_is_refused_and_changes_nothing(body: dict[str, object], code: str) -> None:
    desk = a_desk()

    with nothing_changes(desk), pytest.raises(Refusal) as refused:
        desk.ask("create_key", **body)
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("by", "body"),
    [
        (a_principal("operator"), {}),
        (a_principal("worker"), {}),
        (a_principal("readonly"), {}),
        (KEY_MANAGER, {"role": "admin"}),
        (KEY_MANAGER, {"role": "worker"}),
        (KEY_MANAGER, {"role": "readonly"}),
        (KEY_MANAGER, {"role": "jobber", "namespace": "acme"}),
        (ACME, {"role": "worker", "namespace": "default"}),
        (ACME, {"role": "worker", "namespace": "other"}),
        (MAILER, {"role": "worker"}),
        (MAILER, {"role": "worker", "queue_scope": "*"}),
        (MAILER, {"role": "worker", "queue_scope": "mail.*,billing"}),
        (ROOT.within("acme"), {"role": "worker", "namespace": "other"}),
    ],
)
def test_nobody_makes_a_key_with_more_than_they_have(by: Principal, body: dict[str, str]) -> None:
    desk = a_desk("acme", "other")
    desk.make_role("jobber", Permission("jobs", ("*",)))

    with nothing_changes(desk), pytest.raises(Refusal) as refused:
        desk.make_key(by=by, **body)
    assert refused.value.code == "FORBIDDEN"


@pytest.mark.parametrize(
    ("by", "body", "namespace"),
    [
        (ROOT, {"role": "admin", "namespace": "acme"}, "acme"),
        (ROOT.within("acme"), {"role": "admin"}, "acme"),
        (ACME, {"role": "admin"}, "acme"),
        (KEY_MANAGER, {"role": "jobber"}, "default"),
        (MAILER, {"role": "admin", "queue_scope": "mail.slow.*"}, "default"),
    ],
)
def test_everybody_makes_keys_with_what_they_have(by: Principal, body: dict[str, str], namespace: str) -> None:
    desk = a_desk("acme")
    desk.make_role("jobber", Permission("jobs", ("*",)))

    key = desk.key(desk.make_key(by=by, **body))

    assert (key.namespace, key.created_by) == (namespace, by.name)
    made = desk.tables.access.state.principal_of(key)
    assert made.is_cluster_wide == (by is KEY_MANAGER)


def test_a_key_of_somebody_else_cannot_be_taken_over() -> None:
    desk = a_desk("acme")
    mine = "a-key-of-my-own-making"
    desk.make_key(key=mine, role="worker")

    with nothing_changes(desk), pytest.raises(Refusal) as refused:
        desk.make_key(by=ACME, key=mine)
    assert refused.value.code == "KEY_EXISTS"


def test_a_stronger_key_cannot_be_weakened_by_a_weaker_one() -> None:
    desk = a_desk()
    mine = "a-key-of-my-own-making"
    desk.make_key(key=mine, role="admin")
    desk.make_role("jobber", Permission("jobs", ("*",)))

    with nothing_changes(desk), pytest.raises(Refusal) as refused:
        desk.make_key(by=KEY_MANAGER, key=mine, role="jobber")
    assert refused.value.code == "FORBIDDEN"


def test_a_namespace_that_is_being_deleted_gets_no_keys() -> None:
    desk = a_desk("acme")
    desk.ask("delete_namespace", "acme")

    with nothing_changes(desk), pytest.raises(Refusal) as refused:
        desk.make_key(namespace="acme")
    assert refused.value.code == "NAMESPACE_IN_USE"


def test_keys_are_bounded_and_those_that_expired_long_ago_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "KEYS_MAX", 2)
    desk = a_desk()
    desk.make_key("stays")
    desk.make_key("expires", expires_at="2100-01-01")
    expired = max(key.expires_at for key in desk.tables.access.state.keys.values())
    kept_until = expired + limits.EXPIRED_KEY_KEPT_MS * 1_000_000
    with nothing_changes(desk), pytest.raises(Refusal) as refused:
        desk.make_key("third")
    assert refused.value.code == "TOO_MANY_KEYS"
    desk.now = kept_until
    with pytest.raises(Refusal):
        desk.make_key("third")
    desk.now = kept_until + 1
    desk.make_key("third")

    assert desk.key_names == ["stays", "third"]


def test_a_tenant_cannot_use_up_the_keys_of_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "KEYS_PER_NAMESPACE_MAX", 1)
    desk = a_desk("acme")
    desk.make_key(by=ACME)
    with nothing_changes(desk), pytest.raises(Refusal) as refused:
        desk.make_key(by=ACME)
    assert refused.value.code == "TOO_MANY_KEYS"
    desk.make_key()
    desk.make_key()

    assert len(desk.key_names) == 3


def test_the_refusals_are_those_of_the_endpoint() -> None:
    [endpoint] = module.ENDPOINTS

    assert {"KEY_EXISTS", "TOO_MANY_KEYS", "ROLE_NOT_FOUND", "NAMESPACE_NOT_FOUND"} <= set(endpoint.refusals)
