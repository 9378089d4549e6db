"""What a replica needs to know of the others of its group, handed in by the process that runs it."""

from collections.abc import Callable

import msgspec

from shards import raft
from shards.group.messages import PeerMessage
from shards.snapshots.transfer import Snapshots
from shards.storage.sync_thread import Writing, at_once


def nobody(posted: PeerMessage) -> bool:
    """The post office of a replica that is alone."""
    return False


def nothing() -> list[PeerMessage]:
    """What such a replica hears."""
    return []


class GroupConfig(msgspec.Struct, frozen=True):
    founders: tuple[str, ...]  # voters from the first entry on; empty: it joins a group that exists
    address: str = ""  # where this node is reached; empty: there are no others
    nodes: tuple[str, ...] = ()  # names to turn to while there is no leader
    post: Callable[[PeerMessage], bool] = nobody
    hear: Callable[[], list[PeerMessage]] = nothing  # what has arrived; asked while the disk is slow
    writing: Writing = at_once
    snapshots: Snapshots | None = None
    options: raft.Options = raft.Options()
