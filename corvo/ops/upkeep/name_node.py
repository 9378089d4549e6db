"""NameNode: store the address of a node in the replicated state, where every replica finds it."""

from typing import Any, ClassVar

from corvo.endpoint import Operation
from corvo.state.tables import Tables


class NameNode(Operation, tag=102):
    node_id: str
    address: str  # empty: the node has left

    result: ClassVar[Any] = bool

    def apply(self, tables: Tables) -> bool:
        """Whether it changed anything."""
        if tables.nodes.get(self.node_id, "") == self.address:
            return False
        tables.name_node(self.node_id, self.address)
        return True
