"""The nodes and replicas of a cluster on the screen. Text from outside is made harmless, as in `show.py`."""

from rich.console import Group, RenderableType
from rich.text import Text

from corvo.cli.screen.show import columns, headline, incidents, plain
from corvo.client.answers import ClusterStatus, MembersView, ReplicaView, ShardView

UNKNOWN = "?"
_BYTES = ("B", "KiB", "MiB", "GiB", "TiB")


def status(view: ClusterStatus) -> Group:
    """Nodes first, then a row for each replica under the row of its shard."""
    parts: list[RenderableType] = [headline(view), Text(), _nodes(view), Text(), _groups(view)]
    if transfers := _transfers(view):
        parts += [Text(), transfers]
    return Group(*parts, *incidents(view))


def members(view: MembersView) -> RenderableType:
    grid = columns(">SHARD", "VOTERS", "LEARNERS", "CHANGE")
    for group in view.groups:
        grid.add_row(
            str(group.shard),
            plain(", ".join(group.voters)),
            plain(", ".join(group.learners)),
            Text("under way", "yellow") if group.is_changing else "",
        )
    return grid


def span(milliseconds: float | None) -> str:
    if milliseconds is None:
        return ""
    return f"{milliseconds:.0f} ms" if milliseconds < 10_000 else f"{milliseconds / 1000:.0f} s"


def size(count: int) -> str:
    amount = float(count)
    for unit in _BYTES[:-1]:
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} {_BYTES[-1]}"


def _nodes(view: ClusterStatus) -> RenderableType:
    grid = columns("NODE", "ADDRESS", "STATE", ">LEADS")
    for node in view.nodes:
        leads = sum(group.leader_id == node.node_id for group in view.groups)
        reachable = Text("reachable", "green") if node.is_reachable else Text("does not answer", "red")
        grid.add_row(plain(node.node_id), plain(node.address or "alone"), reachable, f"{leads} of {view.shards}")
    return grid


def _groups(view: ClusterStatus) -> RenderableType:
    of_shard = (">SHARD", "LEADER", ">TERM")
    of_replica = ("REPLICA", "ROLE", ">COMMIT", ">APPLIED", ">LAG", ">HEARD", "FED BY", ">LOG", ">BYTES", "TROUBLE")
    grid = columns(*of_shard, *of_replica)
    for group in view.groups:
        leader = plain(group.leader_id) if group.leader_id else Text("none", "red")
        if group.error:
            blanks = [""] * (len(of_replica) - 1)
            grid.add_row(str(group.shard), Text(UNKNOWN, "red"), "", *blanks, plain(group.error))
        for place, replica in enumerate(group.replicas):
            first = [str(group.shard), leader, str(group.term)] if place == 0 else [""] * len(of_shard)
            grid.add_row(*first, *_replica_cells(group, replica))
    return grid


def _replica_cells(group: ShardView, replica: ReplicaView) -> list[Text | str]:
    name = plain(replica.node_id)
    if replica.node_id in group.members.outgoing and replica.node_id not in group.members.voters:
        name.append(" (leaving)", "yellow")
    heard = span(replica.last_contact_ms)
    if replica.error:
        role = Text(replica.role, "red")
        return [name, role, "", "", UNKNOWN, heard, replica.mode, "", "", plain(replica.error)]
    return [
        name,
        Text(replica.role, {"leader": "green", "learner": "yellow"}.get(replica.role, "")),
        str(replica.commit_index),
        str(replica.applied_index),
        UNKNOWN if replica.lag is None else str(replica.lag),
        heard,
        replica.mode,
        str(replica.log_entries),
        size(replica.log_bytes),
        "",
    ]


def _transfers(view: ClusterStatus) -> RenderableType | None:
    """Snapshots being sent; None when there are none, as usual."""
    rows = [(group.shard, transfer) for group in view.groups for transfer in group.transfers]
    if not rows:
        return None
    grid = columns(">SHARD", "STATE FROM", "TO", ">UP TO ENTRY", ">RECORDS", ">BYTES")
    for shard, transfer in rows:
        names = (plain(transfer.sender), plain(transfer.receiver))
        grid.add_row(str(shard), *names, str(transfer.index), str(transfer.records), size(transfer.bytes))
    return grid
