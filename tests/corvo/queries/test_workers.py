"""Workers as clients see them."""

from corvo.model.job import Worker
from corvo.queries.workers import WorkerView


def test_a_worker_shows_every_stored_fact_under_the_name_that_clients_know() -> None:
    renamed = {"last_seen_at": "last_heartbeat"}

    assert {renamed.get(name, name) for name in Worker.__struct_fields__} <= set(WorkerView.__struct_fields__)
