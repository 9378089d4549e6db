"""Batches, chains and a schedule over four shards, with kills: `chaos.exactly_once` in its short form."""

import pytest

from chaos.exactly_once import missing_slots, run
from chaos.node import Node

pytestmark = pytest.mark.system


def test_callbacks_steps_and_slots_come_once_while_processes_are_killed(node: Node) -> None:
    assert run(node, batches=60, chains=30, seconds=8.0, seed=4, pause_s=0.7) == []


def test_a_missing_second_is_noticed() -> None:
    assert missing_slots(["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"]) == []
    assert len(missing_slots(["2026-01-01T00:00:00Z", "2026-01-01T00:00:02Z"])) == 1
