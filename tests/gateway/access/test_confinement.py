"""Principals of one namespace or of some queues are kept from lists of everything."""

import pytest

from corvo.model.access import ANONYMOUS, Principal, built_in
from corvo.model.errors import Refusal
from gateway.access.confinement import OF_A_SCOPE, OF_ALL_NAMESPACES, require_confined
from gateway.app import ENDPOINTS

TENANT = Principal(
    name="k", kind="key", roles=("admin",), permissions=ANONYMOUS.permissions, namespace="acme", home="acme"
)
SCOPED = Principal(name="k", kind="key", roles=("admin",), permissions=ANONYMOUS.permissions, queue_scope=("mail.*",))
BY_NAME = {endpoint.name: endpoint for endpoint in ENDPOINTS}


def refused_to(principal: Principal) -> set[str]:
    names = set()
    for endpoint in ENDPOINTS:
        try:
            require_confined(principal, endpoint)
        except Refusal as refusal:
            assert refusal.code == "FORBIDDEN"
            names.add(endpoint.name)
    return names


def test_the_tables_name_endpoints() -> None:
    assert set(BY_NAME) >= OF_ALL_NAMESPACES | OF_A_SCOPE


def test_nobody_else_is_kept_from_anything() -> None:
    assert refused_to(ANONYMOUS) == set()
    assert refused_to(built_in("k", "key", "readonly")) == set()


def test_a_tenant_reads_no_list_of_all_namespaces() -> None:
    assert refused_to(TENANT) == OF_ALL_NAMESPACES


def test_a_scoped_key_works_on_its_queues_only() -> None:
    refused = refused_to(SCOPED)

    assert not refused & OF_A_SCOPE
    assert {"get_job", "cancel", "search", "events", "create_schedule", "why", "create_batch"} <= refused
    assert not refused & {"pause_queue", "get_queue", "info"}


@pytest.mark.parametrize("name", sorted(OF_ALL_NAMESPACES))
def test_every_list_without_a_plan_is_considered(name: str) -> None:
    assert BY_NAME[name].access.partition(":")[0] in ("jobs", "queues", "workers", "metrics", "batches", "bulk")
