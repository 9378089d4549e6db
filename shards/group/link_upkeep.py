"""The links of a replica: one to every member of the group, and an answer for every node that introduces itself."""

from corvo.runtime.process import Identity
from corvo.state.tables import Tables
from shards import raft
from shards.group.addresses import AddressBook
from shards.group.messages import Introduction, Welcome
from shards.group.peers import Peers


class LinkUpkeep:
    def __init__(
        self,
        peers: Peers,
        address_book: AddressBook,
        identity: Identity,
        address: str,
        core: raft.Raft,
        tables: Tables,
    ) -> None:
        self._peers = peers
        self._address_book = address_book
        self._identity = identity
        self._address = address
        self._core = core
        self._tables = tables

    def turn(self, now_ns: int) -> None:
        self._address_book.reach(self._peers, self._core.membership.members(), self._tables.nodes)
        for sender, introduction in self._peers.introductions():
            self._peers.welcome(sender, self._answer(introduction))

    def next_ns(self) -> int | None:
        return None

    def _answer(self, introduction: Introduction) -> Welcome:
        identity, agreed = self._identity, self._tables.nodes
        return Welcome(
            identity.node_id,
            self._address,
            identity.shards,
            identity.cluster_id,
            founders_of(identity),
            {**self._address_book.addresses(agreed), identity.node_id: self._address},
            knows_you=introduction.node_id in agreed or self._has_met(introduction.node_id),
        )

    def _has_met(self, node: str) -> bool:
        return self._core.membership.is_member(node) and self._core.incarnations.of(node) > 0


def founders_of(identity: Identity) -> tuple[str, ...]:
    return (identity.node_id,) if identity.founders is None else identity.founders
