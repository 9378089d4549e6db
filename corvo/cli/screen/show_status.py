"""`corvo status`: health, queues and shards in one answer."""

from typing import Any

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from corvo.cli.screen import show
from corvo.client.answers import ClusterStatus, QueueView
from corvo.client.calls import ServerRefused
from corvo.client.http import Client


class ServerStatus(msgspec.Struct):
    cluster: ClusterStatus
    queues: list[QueueView] | None
    trouble: str = ""  # why there are no queues

    @classmethod
    def of(cls, client: Client) -> "ServerStatus":
        """Health is shown even while read.db, where the queues are counted, is being rebuilt."""
        cluster = client.cluster_status()
        try:
            return cls(cluster, client.queues())
        except ServerRefused as refused:
            return cls(cluster, None, refused.message)

    def as_json(self) -> dict[str, Any]:
        """The status of the cluster, and beside its fields the queues."""
        return {**msgspec.to_builtins(self.cluster), "queues": msgspec.to_builtins(self.queues)}


def show_status(status: ServerStatus) -> Group:
    queues: RenderableType = show.plain(f"the queues cannot be listed: {status.trouble}")
    if status.queues is not None:
        queues = show.queues(status.queues) if status.queues else Text("no queues yet", "dim")
    cluster = status.cluster
    return Group(show.headline(cluster), Text(), queues, Text(), show.shards(cluster), *show.incidents(cluster))
