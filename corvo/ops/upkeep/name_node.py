"""NameNode: where a node of the cluster is reached, known to every replica as soon as it is applied."""

from typing import Any, ClassVar

from corvo.endpoint import Operation
from corvo.state.tables import Tables


class NameNode(Operation, tag=102):
    node_id: str
    address: str  # empty: the node has left

    result: ClassVar[Any] = bool

    def apply(self, tables: Tables) -> bool:
        """Whether that is news."""
        if tables.nodes.get(self.node_id, "") == self.address:
            return False
        tables.name_node(self.node_id, self.address)
        return True
