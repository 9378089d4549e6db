"""Queues as clients see them."""

from corvo.model.lifecycle import STATE_NAMES
from corvo.queries.queues import QueueView


def test_a_queue_shows_a_count_for_every_state() -> None:
    assert set(STATE_NAMES) <= set(QueueView.__struct_fields__)
