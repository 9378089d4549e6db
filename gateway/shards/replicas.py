"""Builds the views of shards and nodes from the statuses of the replicas. Pure.

A gateway reaches the replicas of its own node, and those on other nodes through them. A replica reports its own
progress; the leader also reports when it last heard from each of the others.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from corvo.queries.cluster import (
    BucketView,
    Histogram,
    HistogramView,
    MembershipView,
    NodeView,
    ReplicaStatus,
    ReplicaView,
    ShardStatus,
    ShardView,
    SnapshotView,
    TransferView,
)

StatusOrError = ShardStatus | BaseException
Group = Mapping[str, StatusOrError]  # the answer of the replica on each node, by the node's name

UNREACHABLE = "unreachable"


def members_of(status: ShardStatus) -> list[str]:
    """All nodes that have a replica, or are to get one; always with the node that answers."""
    members = status.members
    return sorted({status.node_id, *members.voters, *members.learners, *members.outgoing})


def is_cluster(statuses: Sequence[ShardStatus]) -> bool:
    """A node with an address for other nodes is a cluster, even if it is the only one."""
    return any(status.nodes or len(members_of(status)) > 1 for status in statuses)


def leader_of(group: Group) -> ShardStatus | None:
    """The leader of the latest term: an old leader that was cut off may not know of it yet."""
    leaders = [status for status in _known(group) if status.role == "leader"]
    return max(leaders, key=lambda status: status.term, default=None)


def shard_view(shard: int, own: StatusOrError, group: Group) -> ShardView:
    if isinstance(own, BaseException):
        return ShardView(shard, "", UNREACHABLE, "", 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0, 0, 0, 0, 0, error=str(own))
    entries, writes = own.batch_size.count, own.sync_time_s.count
    return ShardView(
        shard=shard,
        node_id=own.node_id,
        state=own.role,
        leader_id=own.leader,
        term=own.term,
        commit_index=own.commit_index,
        applied_index=own.applied_index,
        log_entries=_log_entries(own),
        operations_total=own.operations_total,
        entries_total=own.entries_total,
        batch_size_avg=round(own.batch_size.total / entries, 2) if entries else 0.0,
        sync_ms_avg=round(own.sync_time_s.total / writes * 1000, 3) if writes else 0.0,
        waiting=own.calls_waiting,
        fetches_parked=own.fetches_parked,
        leases=own.leases,
        mirror_lag_entries=max(own.applied_index - own.mirror_cursor, 0),
        memory_bytes=own.memory_bytes,
        members=_membership_view(own),
        replicas=list(_replica_views(group)),
        transfers=_transfer_views(group),
        queue_time_hist=histogram_view([own.queue_time_s]),
        apply_time_hist=histogram_view([own.apply_time_s]),
        snapshot=_snapshot_view(own),
    )


def _snapshot_view(own: ShardStatus) -> SnapshotView:
    index = own.log_first_index - 1
    return SnapshotView(
        count=int(index > 0),
        latest_index=index,
        transfers=sum(one.is_outgoing for one in own.transfers),
        latest_term=own.snapshot_term,
        latest_id=f"{own.snapshot_term}-{index}" if index else "",
        latest_size=own.state_bytes,
    )


def histogram_view(histograms: Sequence[Histogram]) -> HistogramView | None:
    """Of one, or of several with the same bounds together; None of none."""
    if not histograms:
        return None
    counts = [sum(column) for column in zip(*(one.counts for one in histograms), strict=True)]
    whole = Histogram(histograms[0].bounds, counts, sum(one.total for one in histograms))
    bounds = [*whole.bounds, None]
    p50, p90, p99 = (round(whole.quantile(part), 9) for part in (0.5, 0.9, 0.99))
    return HistogramView(
        count=whole.count,
        avg=round(whole.total / whole.count, 9) if whole.count else 0.0,
        p50=p50,
        p90=p90,
        p99=p99,
        buckets=[BucketView(bound, upto) for bound, upto in zip(bounds, accumulate(counts), strict=True)],
    )


def node_views(own_id: str, groups: Sequence[Group]) -> list[NodeView]:
    """Every node that a shard knows. A node is reachable if it answered for at least one shard."""
    addresses: dict[str, str] = {own_id: ""}
    answered: set[str] = set()
    for group in groups:
        for node_id, outcome in group.items():
            addresses.setdefault(node_id, "")
            if isinstance(outcome, ShardStatus):
                answered.add(node_id)
                addresses.update(outcome.nodes)
    return [NodeView(node_id, addresses[node_id], node_id in answered) for node_id in sorted(addresses)]


def _replica_views(group: Group) -> Iterator[ReplicaView]:
    leader = leader_of(group)
    seen = {replica.node_id: replica for replica in leader.replicas} if leader else {}
    for node_id, outcome in sorted(group.items()):
        belief = seen.get(node_id) if leader and node_id != leader.node_id else None
        silent_ms = None if belief is None else round(belief.silent_ms, 3)
        mode = "" if belief is None else belief.mode
        if isinstance(outcome, BaseException):
            yield ReplicaView(node_id, UNREACHABLE, last_contact_ms=silent_ms, mode=mode, error=str(outcome))
            continue
        yield ReplicaView(
            node_id=node_id,
            role=_role(outcome, belief),
            term=outcome.term,
            commit_index=outcome.commit_index,
            applied_index=outcome.applied_index,
            lag=None if leader is None else max(leader.commit_index - outcome.applied_index, 0),
            last_contact_ms=silent_ms,
            mode=mode,
            log_entries=_log_entries(outcome),
            log_bytes=outcome.log_bytes,
            state_hash=outcome.state_hash,
        )


def _role(status: ShardStatus, belief: ReplicaStatus | None) -> str:
    return "learner" if belief is not None and belief.is_learner else status.role


def _transfer_views(group: Group) -> list[TransferView]:
    """Both ends report a transfer. The sender's report is used, or the receiver's if the sender does not answer."""
    found: dict[tuple[str, str], TransferView] = {}
    for is_outgoing in (False, True):
        for status in _known(group):
            for one in status.transfers:
                if one.is_outgoing == is_outgoing:
                    ends = (status.node_id, one.node_id) if is_outgoing else (one.node_id, status.node_id)
                    found[ends] = TransferView(*ends, one.index, one.records, one.bytes)
    return [found[ends] for ends in sorted(found)]


def _membership_view(status: ShardStatus) -> MembershipView:
    members = status.members
    if not members.voters:  # a group of one that has never changed
        return MembershipView(voters=[status.node_id])
    return MembershipView(members.voters, members.learners, members.outgoing)


def _log_entries(status: ShardStatus) -> int:
    return status.log_last_index - status.log_first_index + 1


def _known(group: Group) -> list[ShardStatus]:
    return [outcome for outcome in group.values() if isinstance(outcome, ShardStatus)]
