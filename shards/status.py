"""What a replica says about itself when it is asked."""

from corvo.queries.cluster import ReplicaStatus, ShardStatus
from corvo.state.tables import Tables
from shards import raft
from shards.feed import Feed
from shards.group.member_changes import members_of
from shards.intake.admission import Admission
from shards.metrics import ShardMetrics, resident_bytes
from shards.snapshots.transfer import Snapshots
from shards.storage.raft_log import RaftLog


def status_of(
    *,
    shard: int,
    core: raft.Raft,
    tables: Tables,
    log: RaftLog,
    admission: Admission,
    feed: Feed,
    metrics: ShardMetrics,
    snapshots: Snapshots | None,
    refused: int,
    waits_for: str,
    is_synced: bool,
    uptime_s: float,
    state_bytes: int,
) -> ShardStatus:
    return ShardStatus(
        shard=shard,
        node_id=core.id,
        role=core.role.value,
        leader=core.leader_id or "",
        term=core.term,
        commit_index=core.commit_index,
        applied_index=tables.applied.index,
        log_first_index=log.first_index,
        log_last_index=core.last_index,
        state_hash=tables.applied.hash.hex(),
        fsync=is_synced,
        uptime_s=uptime_s,
        operations_total=metrics.operations,
        entries_total=metrics.entries,
        overloads_total=admission.overloads,
        calls_waiting=len(admission.operations),
        fetches_parked=len(admission.waiters),
        pulls_parked=len(admission.pulls),
        leases=len(tables.leases),
        queues=len(tables.queues()),
        mirror_cursor=feed.receipt,
        batch_size=metrics.batch_size,
        queue_time_s=metrics.queue_time,
        apply_time_s=metrics.apply_time,
        sync_time_s=metrics.sync_time,
        memory_bytes=resident_bytes(),
        turns_total=metrics.turns,
        members=members_of(core.membership),
        replicas=[
            ReplicaStatus(peer.replica, peer.match, peer.mode, peer.is_learner, peer.is_caught_up, peer.silent_ns / 1e6)
            for peer in core.progress()
        ],
        transfers=snapshots.transfers() if snapshots is not None else [],
        log_bytes=log.bytes,
        elections_total=metrics.elections,
        nodes=tables.nodes,
        refused_total=refused,
        jobs=metrics.jobs,
        waits_for=waits_for,
        snapshot_term=core.log.snapshot_term,
        state_bytes=state_bytes,
    )
