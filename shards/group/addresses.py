"""The addresses of the other nodes: as the settings say, else as the group agreed, else as at the start."""

from corvo.runtime.addresses import is_reachable
from corvo.runtime.clustering import shard_address
from shards.group.peers import Peers


class AddressBook:
    def __init__(self, node_id: str, shard: int, told: dict[str, str], founded: dict[str, str]) -> None:
        self._node_id = node_id
        self._shard = shard
        self._told = told
        self._founded = founded
        self._reached: object = None

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._told.keys() | self._founded.keys()))

    def addresses(self, agreed: dict[str, str]) -> dict[str, str]:
        return self._founded | agreed | self._told

    def reach(self, peers: Peers, members: tuple[str, ...], agreed: dict[str, str]) -> None:
        """Keep a link to every member of the group; until this node is a member, to every node it knows of."""
        key = (members, tuple(agreed.items()))
        if key == self._reached:
            return
        self._reached = key
        addresses = self.addresses(agreed)
        wanted = set(members if self._node_id in members else (*members, *addresses)) | agreed.keys()
        for node in sorted(wanted - {self._node_id}):
            if is_reachable(addresses.get(node, "")):
                peers.connect(node, shard_address(addresses[node], self._shard))
        for node in peers.nodes() - wanted:
            peers.disconnect(node)
