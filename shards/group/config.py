"""What a replica needs to know of the others of its group, handed in by the process that runs it."""

from typing import Protocol

import msgspec

from shards import raft
from shards.group.messages import MessageBody, PeerMessage
from shards.snapshots.transfer import Snapshots
from shards.storage.sync_thread import Writing, at_once


class Links(Protocol):
    """The ways to the other replicas (`peers.py`)."""

    refused: int  # messages and connections that were not from a replica of this group

    def send(self, node: str, body: MessageBody) -> bool:
        """False: it is lost."""

    def receive(self) -> list[PeerMessage]:
        """What has arrived."""

    def lost(self) -> set[str]:
        """Nodes whose link broke since this was last asked."""

    def carries(self, node: str) -> bool:
        """Whether answers can be sent there."""


class NoLinks:
    """Of a replica that is alone."""

    refused = 0

    def send(self, node: str, body: MessageBody) -> bool:
        return False

    def receive(self) -> list[PeerMessage]:
        return []

    def lost(self) -> set[str]:
        return set()

    def carries(self, node: str) -> bool:
        return False


class GroupConfig(msgspec.Struct, frozen=True):
    founders: tuple[str, ...]  # voters from the first entry on; empty: it joins a group that exists
    address: str = ""  # where this node is reached; empty: it has no links
    nodes: tuple[str, ...] = ()  # names to ask while there is no leader
    links: Links = NoLinks()
    writing: Writing = at_once  # how a replica with others waits for its disk
    snapshots: Snapshots | None = None
    options: raft.Options = raft.Options()
