"""NameNode: every replica learns where a node is, and forgets it when it has left."""

from corvo.ops.upkeep.name_node import NameNode
from corvo.state import keys
from tests.support.machine import Machine


def test_an_address_is_kept_and_replaced() -> None:
    machine = Machine()

    assert machine.one(NameNode("node-1", "a:1")) is True
    assert machine.one(NameNode("node-1", "a:1")) is False
    assert machine.changes.writes == {}
    assert machine.one(NameNode("node-1", "b:2")) is True
    assert machine.tables.nodes == {"node-1": "b:2"}


def test_a_node_that_left_is_forgotten_and_may_leave_twice() -> None:
    machine = Machine()
    machine.apply(NameNode("node-1", "a:1"), NameNode("node-2", "b:2"))

    assert machine.apply(NameNode("node-1", ""), NameNode("node-1", "")) == [True, False]
    assert machine.changes.writes == {keys.node("node-1"): None}
    assert machine.tables.nodes == {"node-2": "b:2"}


def test_addresses_are_there_after_a_restart() -> None:
    machine = Machine()
    machine.apply(NameNode("node-1", "a:1"), NameNode("node-2", "b:2"))
    machine.flush()

    machine.restart()

    assert machine.tables.nodes == {"node-1": "a:1", "node-2": "b:2"}
