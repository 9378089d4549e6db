"""What a key with a queue scope may use: what is about jobs and queues.

Everything else is about all queues of a namespace: its keys, its audit log, its limits. Lists show such a key its own
queues only (`gateway/search/tenancy.py`), and ids outside its scope do not exist for it (`gateway/api/hiding.py`).
"""

from corvo.endpoint import Endpoint
from corvo.model.access import OPEN, OWN, Principal
from corvo.model.errors import Refusal

OF_QUEUES = frozenset({"jobs", "bulk", "batches", "schedules", "queues", "workers", "metrics", "events"})


def require_confined(principal: Principal, endpoint: Endpoint) -> None:
    if principal.queue_scope and endpoint.access not in (OPEN, OWN):
        resource = endpoint.access.partition(":")[0]
        if resource not in OF_QUEUES:
            raise Refusal(
                "FORBIDDEN", f"{resource}: this is about all queues of the namespace, and this key has a queue scope"
            )
