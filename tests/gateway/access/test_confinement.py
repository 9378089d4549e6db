"""Keys with a queue scope use what is about jobs and queues, and nothing that is about a whole namespace."""

from corvo.model.access import ANONYMOUS, Principal, built_in
from corvo.model.errors import Refusal
from gateway.access.confinement import OF_QUEUES, require_confined
from gateway.app import ENDPOINTS

TENANT = Principal(
    name="k", kind="key", roles=("admin",), permissions=ANONYMOUS.permissions, namespace="acme", home="acme"
)
SCOPED = Principal(name="k", kind="key", roles=("admin",), permissions=ANONYMOUS.permissions, queue_scope=("mail.*",))
RESOURCES = {endpoint.access.partition(":")[0] for endpoint in ENDPOINTS}


def refused_to(principal: Principal) -> set[str]:
    names = set()
    for endpoint in ENDPOINTS:
        try:
            require_confined(principal, endpoint)
        except Refusal as refusal:
            assert refusal.code == "FORBIDDEN"
            names.add(endpoint.name)
    return names


def test_principals_without_a_scope_are_kept_from_nothing() -> None:
    for principal in (ANONYMOUS, built_in("k", "key", "readonly"), TENANT):
        assert refused_to(principal) == set()


def test_the_resources_of_queues_exist() -> None:
    assert RESOURCES >= OF_QUEUES


def test_a_scoped_key_uses_jobs_and_queues_and_administers_nothing() -> None:
    refused = refused_to(SCOPED)

    assert {
        "create_key",
        "audit_logs",
        "export_audit_logs",
        "create_namespace",
        "put_role",
        "cluster_status",
    } <= refused
    assert not refused & {
        "enqueue",
        "ack",
        "search",
        "cancel",
        "bulk",
        "events",
        "why",
        "create_batch",
        "info",
        "whoami",
    }
