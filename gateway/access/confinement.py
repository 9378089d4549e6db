"""Endpoints that do not separate namespaces and queue scopes yet, refused to principals that are confined to one.

The lists of the read database hold the rows of all namespaces. Until each statement selects one, a tenant must not
read them. A key with a queue scope may use what names its queues, and the jobs that it fetched: an operation on any
other id would have to look up the queue first.
"""

from corvo.endpoint import Endpoint
from corvo.model.access import OPEN, OWN, Principal
from corvo.model.errors import Refusal
from corvo.model.namespaces import DEFAULT

OF_ALL_NAMESPACES = frozenset(
    {
        *("search", "fulltext", "queues", "workers", "get_worker", "dead", "held", "throughput", "queue_throughput"),
        *("error_groups", "batches", "bulk", "bulks", "get_bulk", "bulk_progress", "cancel_bulk"),
    }
)
OF_A_SCOPE = frozenset(
    {
        *("enqueue", "enqueue_batch", "fetch", "fetch_batch"),
        *("ack", "ack_batch", "fail", "fail_batch", "heartbeat"),
    }
)


def require_confined(principal: Principal, endpoint: Endpoint) -> None:
    """Refuse what could show a principal more than its namespace or its queues."""
    if principal.namespace == DEFAULT and not principal.queue_scope:
        return
    if endpoint.name in OF_ALL_NAMESPACES:
        raise Refusal(
            "FORBIDDEN", "this list is about all namespaces: it needs an unscoped key of the namespace default"
        )
    is_of_queues = endpoint.name in OF_A_SCOPE or "{name}" in endpoint.path or endpoint.access in (OPEN, OWN)
    if principal.queue_scope and not is_of_queues:
        raise Refusal(
            "FORBIDDEN", "a key with a queue scope may enqueue, fetch, report and use its queues, nothing else"
        )
