"""What each principal sees of keys, roles and namespaces."""

import msgspec
import pytest

from corvo.model.access import ROLES, Principal
from corvo.model.errors import Refusal
from corvo.model.timestamps import to_rfc3339
from tests.support.access import ACME, KEY_MANAGER, MAILER, ROOT, Desk, a_desk, a_principal
from tests.support.builders import NOW, SECOND


@pytest.fixture
def desk() -> Desk:
    desk = a_desk("acme", "other")
    desk.make_key("root's", role="admin")
    desk.make_key("acme's", namespace="acme")
    desk.make_key("other's", namespace="other")
    return desk


def names(desk: Desk, by: Principal, **query: str) -> list[str]:
    return [key.name for key in desk.ask("api_keys", by=by, **query).body]


@pytest.mark.parametrize(
    ("by", "seen"),
    [
        (ROOT, ["acme's", "other's", "root's"]),
        (ROOT.within("acme"), ["acme's"]),
        (ACME, ["acme's"]),
        (a_principal("readonly", "acme"), ["acme's"]),
        (KEY_MANAGER, ["root's"]),
        (MAILER, ["root's"]),
        (a_principal("operator"), ["root's"]),
    ],
    ids=lambda value: value.name if isinstance(value, Principal) else "",
)
def test_everybody_sees_the_keys_of_their_namespace(desk: Desk, by: Principal, seen: list[str]) -> None:
    assert sorted(names(desk, by)) == seen


def test_keys_are_listed_oldest_first_and_by_namespace(desk: Desk) -> None:
    desk.make_key("newest", at=NOW + SECOND)
    assert names(desk, ROOT)[-1] == "newest"
    assert names(desk, ROOT, namespace="acme") == ["acme's"]
    assert names(desk, ACME, namespace="other") == []
    with pytest.raises(Refusal, match="no name of a namespace"):
        names(desk, ROOT, namespace="No!")


def test_a_key_is_shown_without_what_it_has_not() -> None:
    desk = a_desk()
    key_hash = desk.make_key("mailer", role="worker")
    prefix = desk.key(key_hash).prefix
    plain = {
        "key_hash": key_hash,
        "name": "mailer",
        "prefix": prefix,
        "namespace": "default",
        "role": "worker",
        "enabled": True,
        "created_at": to_rfc3339(NOW),
        "created_by": ROOT.name,
    }
    assert msgspec.to_builtins(desk.ask("api_keys").body) == [plain]
    desk.ask("update_key", key_hash, queue_scope=["b", "a"], expires_at="2100-01-01T00:00:00Z", enabled=False)
    assert msgspec.to_builtins(desk.ask("api_keys").body) == [
        plain | {"queue_scope": "a,b", "expires_at": "2100-01-01T00:00:00.000000000Z", "enabled": False}
    ]


def test_the_roles_of_a_key_of_another_namespace_do_not_exist(desk: Desk) -> None:
    [other] = [key for key in desk.tables.access.state.keys.values() if key.namespace == "other"]
    with pytest.raises(Refusal) as refused:
        desk.ask("key_roles", other.key_hash, by=ACME)
    assert refused.value.code == "KEY_NOT_FOUND"
    assert desk.ask("key_roles", other.key_hash).body.roles == []


def test_roles_are_listed_the_built_in_ones_first() -> None:
    desk = a_desk("acme")
    for name in ("zebra", "auditor"):
        desk.make_role(name)
    roles = desk.ask("roles", by=ACME).body

    assert [role.name for role in roles] == [*ROLES, "auditor", "zebra"]
    assert [role.built_in for role in roles] == [True] * len(ROLES) + [False, False]


@pytest.mark.parametrize(
    ("by", "seen"),
    [
        (ROOT, ["acme", "default", "other"]),
        (ROOT.within("acme"), ["acme", "default", "other"]),
        (a_principal("operator"), ["acme", "default", "other"]),
        (a_principal("readonly"), ["default"]),
        (ACME, ["acme"]),
        (a_principal("operator", "acme"), ["acme"]),
        (MAILER, ["default"]),
    ],
    ids=lambda value: value.name if isinstance(value, Principal) else "",
)
def test_a_tenant_sees_its_own_namespace_only(desk: Desk, by: Principal, seen: list[str]) -> None:
    assert [one.name for one in desk.ask("namespaces", by=by).body] == seen
    for name in ("acme", "default", "other", "nobody"):
        for endpoint in ("namespace_rate_limit", "namespace_quotas"):
            if name in seen:
                assert desk.ask(endpoint, name, by=by).status == 200
            else:
                with pytest.raises(Refusal) as refused:
                    desk.ask(endpoint, name, by=by)
                assert refused.value.code == "NAMESPACE_NOT_FOUND"


def test_a_namespace_is_shown_with_its_limits_quotas_and_state(desk: Desk) -> None:
    desk.ask("set_namespace_rate_limit", "acme", read_rps=5)
    desk.ask("set_namespace_quotas", "acme", max_jobs=7)
    desk.ask("revoke_key", next(k.key_hash for k in desk.tables.access.state.keys.values() if k.namespace == "acme"))
    desk.ask("delete_namespace", "acme")

    assert msgspec.to_builtins(desk.ask("namespaces").body) == [
        {
            "name": "acme",
            "state": "deleting",
            "created_at": to_rfc3339(NOW),
            "rate_limit": {"read_rps": 5.0},
            "quotas": {"max_jobs": 7, "max_payload_bytes": 0, "max_queues": 0},
        },
        {"name": "default", "state": "active"},
        {"name": "other", "state": "active", "created_at": to_rfc3339(NOW)},
    ]
