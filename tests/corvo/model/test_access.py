"""Permissions, roles, scopes."""

import msgspec
import pytest

from corvo.endpoint import Endpoint
from corvo.model.access import NOBODY, OPEN, OWN, ROLES, Permission, Principal, built_in
from corvo.model.errors import Refusal
from corvo.model.namespaces import qualify
from corvo.model.reach import Reach
from gateway.app import ENDPOINTS


def a_principal(*permissions: Permission, scope: tuple[str, ...] = ()) -> Principal:
    return Principal(name="k", kind="key", roles=(), permissions=permissions, queue_scope=scope)


@pytest.mark.parametrize(
    ("permission", "allowed", "denied"),
    [
        (Permission("jobs", ("cancel",)), ["jobs:cancel"], ["jobs:retry", "queues:cancel", "jobs:read"]),
        (Permission("jobs", ("*",)), ["jobs:cancel", "jobs:list"], ["queues:read"]),
        (Permission("jobs", ("write",)), ["jobs:cancel", "jobs:write"], ["jobs:read", "jobs:list"]),
        (Permission("*", ("read",)), ["jobs:read", "queues:read"], ["jobs:list", "queues:pause"]),
        (Permission("jobs", ()), [], ["jobs:read", "jobs:cancel"]),
    ],
)
def test_a_permission_allows_its_actions_on_its_resource(
    permission: Permission, allowed: list[str], denied: list[str]
) -> None:
    principal = a_principal(permission)

    assert [access for access in allowed if not principal.may(access)] == []
    assert [access for access in denied if principal.may(access)] == []


def test_permissions_of_several_roles_are_united() -> None:
    principal = a_principal(Permission("jobs", ("read",)), Permission("queues", ("pause",)))

    assert principal.may("jobs:read") and principal.may("queues:pause")
    assert not principal.may("queues:read")


def test_what_is_open_needs_no_permission() -> None:
    assert a_principal().may(OPEN)


def test_a_refusal_names_the_permission() -> None:
    with pytest.raises(Refusal, match="queues:pause") as refused:
        built_in("dashboard", "key", "readonly").require("queues:pause")

    assert (refused.value.code, refused.value.status) == ("FORBIDDEN", 403)


def test_every_endpoint_names_a_permission_in_one_form() -> None:
    for endpoint in ENDPOINTS:
        resource, _, action = endpoint.access.partition(":")
        assert endpoint.access == OPEN or (resource.isidentifier() and action.isidentifier()), endpoint.name


def test_only_readers_may_use_the_built_in_role_of_readers() -> None:
    readonly = built_in("dashboard", "key", "readonly")
    writes = [e.name for e in ENDPOINTS if e.method != "GET" and readonly.may(e.access)]

    assert writes == ["bulk_get", "search", "login", "logout"]  # reads with a body, and what is open to all
    assert not readonly.may("payloads:see")


def test_workers_work_and_nothing_else() -> None:
    worker = built_in("w", "key", "worker")
    allowed = {endpoint.access for endpoint in ENDPOINTS if worker.may(endpoint.access)}

    assert allowed == {
        OPEN,
        OWN,
        *(f"jobs:{action}" for action in ("enqueue", "fetch", "ack", "fail", "heartbeat", "read")),
        "batches:read",
        "batches:write",
    }


def test_a_scope_is_a_list_of_globs_over_names_as_their_tenant_knows_them() -> None:
    principal = a_principal(scope=("mail.*", "reports"))

    assert principal.reaches("mail.send") and principal.reaches("reports")
    assert principal.reaches(qualify("acme", "mail.send"))
    assert not principal.reaches("mail") and not principal.reaches("reports.daily")
    with pytest.raises(Refusal, match="'billing' is outside the scope"):
        principal.require_queues(["reports", "billing"])


def test_without_a_scope_every_queue_is_in_reach() -> None:
    a_principal().require_queues(["anything", "else"])


def test_operators_read_the_records_of_access_and_never_write_them() -> None:
    operator = built_in("ops", "key", "operator")
    allowed = {access for access in ACCESS_RECORDS if operator.may(access)}

    assert allowed == {"auth:read", "roles:read", "namespaces:read", "sso:read"}


ACCESS_RECORDS = {e.access for e in ENDPOINTS if e.access.split(":")[0] in ("auth", "roles", "namespaces", "sso")}


@pytest.mark.parametrize(
    "tenant",
    [
        Principal(name="k", kind="key", roles=("admin",), permissions=ROLES["admin"], namespace="acme", home="acme"),
        Principal(name="k", kind="key", roles=("admin",), permissions=ROLES["admin"], queue_scope=("mail.*",)),
    ],
    ids=["of a tenant", "with a scope"],
)
def test_no_role_gives_a_tenant_what_concerns_the_cluster(tenant: Principal) -> None:
    assert {access for access in ACCESS_RECORDS if tenant.may(access)} == {
        *("auth:read", "auth:write", "roles:read", "namespaces:read"),
    }
    for access in ("namespaces:choose", "cluster:write", "cluster:anything", "admin:read", "admin:write"):
        assert not tenant.may(access)
    assert tenant.may("jobs:cancel")


def test_a_chosen_namespace_takes_nothing_away_and_gives_nothing() -> None:
    assert built_in("root", "password", "admin").within("acme").may("roles:write")
    tenant = Principal(name="k", kind="key", roles=(), permissions=ROLES["admin"], namespace="acme", home="acme")
    assert not tenant.within("default").may("roles:write")


def test_everybody_with_a_credential_may_ask_who_they_are() -> None:
    assert a_principal().may(OWN) and built_in("anonymous", "anonymous", "admin").may(OWN)
    assert not NOBODY.may(OWN)


def test_the_roles_are_those_of_the_original() -> None:
    assert list(ROLES) == ["admin", "operator", "worker", "readonly"]


@pytest.mark.parametrize("endpoint", [e for e in ENDPOINTS if e.access.startswith(("cluster:", "admin:"))])
def test_what_is_of_the_whole_installation_is_refused_to_tenants(endpoint: Endpoint) -> None:
    admin = built_in("root", "key", "admin")
    tenant = msgspec.structs.replace(admin, namespace="acme", home="acme", known={})
    scoped = msgspec.structs.replace(admin, queue_scope=("mail.*",), known={})

    admin.require(endpoint.access)
    admin.within("acme").require(endpoint.access)  # who has chosen another namespace is still at home here
    for principal in (tenant, scoped):
        with pytest.raises(Refusal, match="of the whole installation") as refused:
            principal.require(endpoint.access)
        assert refused.value.code == "FORBIDDEN"


def test_the_reach_of_a_principal_is_its_namespace_and_its_scope() -> None:
    assert a_principal(scope=("mail.*",)).within("acme").reach == Reach("acme", ("mail.*",))
